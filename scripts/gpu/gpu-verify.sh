#!/usr/bin/env bash
# Verifies random (problem, config) pairs on the attached GPU: all templates, types, layouts and epilogues, sizes of 1 to
# 3000. Each pair is compiled for the GPU's own arch and run in every case of `deepgen-measure verify` (dense, gaps between
# rows, alpha and beta, in place, broadcast), also on the template's awkward shape.
#   scripts/gpu/gpu-verify.sh <folder of deepgen and deepgen-measure> [<pairs>] [<seed>] [<option of deepgen check-ptxas>...]
# Fails when a pair is wrong or does not compile, or when fewer are verified than asked for. Exits with 77 without a GPU.
# The kernel files stay behind when it fails.
set -euo pipefail
bin=${1:?folder of deepgen and deepgen-measure}
count=${2:-2000}
seed=${3:-1}
options=("${@:4}")
export LC_ALL=C

arch=$("$bin/deepgen-measure" devices --list | awk '$1 ~ /^(sm_|gfx)[0-9]/ { print $1; exit }')
# What the reference takes milliseconds for: on AMD's GPUs it is computed on the host.
flops=4e9
case $arch in
  sm_90) arch=sm_90a ;; # what Hopper's own templates are compiled for, and the others too
  "") echo "skipped: no GPU here" && exit 77 ;;
  gfx*) flops=1e8 ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-verify.XXXXXX")

echo "== compiling for $arch"
# More than asked for: what spills is not a candidate of any search, so it leaves no file.
compiled=0
"$bin/deepgen" check-ptxas --arch "$arch" --count $((count * 5 / 4)) --seed "$seed" --most-flops $flops --max-rejected 1 \
  --keep "$work" "${options[@]}" || compiled=$?

echo "== verifying"
verified=0
find "$work" -name '*.dgk' -print0 | sort -z | xargs -0 "$bin/deepgen-measure" verify > "$work/verdicts" || verified=$?
grep -v '^ok ' "$work/verdicts" || true

# "ok   .../00012-mma_sync+reduce-f16.f16.f32.dgk error 0.2"; +reduce: split-K in two launches
awk '$1 == "ok" && split($2, path, "/") && split(path[length(path)], name, "-") == 3 {
    sub(/\.dgk$/, "", name[3]); templates[name[2]]; types[name[3]]; ++pairs[name[3], name[2]]; ++total[name[2]]
  }
  END {
    n = asort_keys(templates, t); m = asort_keys(types, r)
    printf "%-16s", "verified"; for (i = 1; i <= n; ++i) printf "%17s", t[i]; print ""
    for (j = 1; j <= m; ++j) {
      printf "%-16s", r[j]; for (i = 1; i <= n; ++i) printf "%17d", pairs[r[j], t[i]]; print ""
    }
    printf "%-16s", "all"; for (i = 1; i <= n; ++i) printf "%17d", total[t[i]]; print ""
  }
  function asort_keys(from, to,   key, i, k) {
    k = 0
    for (key in from) { for (i = k++; i > 0 && to[i] > key; --i) to[i + 1] = to[i]; to[i + 1] = key }
    return k
  }' "$work/verdicts"

ok=$(grep -c '^ok ' "$work/verdicts" || true)
echo "$ok pairs verified on $arch, $count wanted, seed $seed"
if [ "$compiled" != 0 ] || [ "$verified" != 0 ] || [ "$ok" -lt "$count" ]; then
  echo "FAILED; kernels and verdicts are in $work"
  exit 1
fi
rm -rf "$work"
