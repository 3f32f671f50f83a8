#!/usr/bin/env bash
# Runs compute-sanitizer (memcheck, racecheck, initcheck, synccheck) over random configs, spread over the templates and the
# types of A, on the attached GPU, in every case of `deepgen-measure verify`. Operands lie in allocations of their own size, so
# that memcheck sees a read beside them. Beside small problems it takes large ones: K above 1200, or blocks in clusters.
#   scripts/gpu/gpu-sanitize.sh <folder of deepgen and deepgen-measure> [<count>] [<seed>] [<count of large ones>] \
#                            [<option of deepgen check-ptxas>...]   such as --op attention, with 0 large ones
# Needs compute-sanitizer in PATH or in /usr/local/cuda/bin. Exits with 77 without it or without a GPU. Where gpu_test lies
# in the folder too, it first shows that memcheck notices an illegal access of a worker.
set -euo pipefail
bin=${1:?folder of deepgen and deepgen-measure}
count=${2:-40}
seed=${3:-1}
large=${4:-8}
chosen=("${@:5}")
export PATH=$PATH:/usr/local/cuda/bin LC_ALL=C

arch=$("$bin/deepgen-measure" devices --list | awk '$1 ~ /^sm_/ { print $1; exit }')
if [ -z "$arch" ] || ! command -v compute-sanitizer > /dev/null; then
  echo "skipped: no NVIDIA GPU here, or no compute-sanitizer"
  exit 77
fi
[ "$arch" != sm_90 ] || arch=sm_90a # Hopper's own templates too
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-sanitize.XXXXXX")

# What the tool says besides its header and an empty summary.
findings() { grep '^=========' "$1" | grep -v -e 'COMPUTE-SANITIZER' -e 'SUMMARY: 0 ' || true; }
run() {
  local tool=$1 log=$2
  shift 2
  compute-sanitizer --tool "$tool" --target-processes all "$@" > "$log" 2>&1 || true
  grep -q COMPUTE-SANITIZER "$log" || { echo "compute-sanitizer did not start; see $log"; exit 1; }
}

if [ -x "$bin/gpu_test" ]; then
  run memcheck "$work/control" "$bin/gpu_test" --gtest_filter=GpuTest.ATrapIsOneVerdictAndTheNextKernelRuns
  if [ -z "$(findings "$work/control")" ]; then
    echo "memcheck does not see what the workers do; see $work/control"
    exit 1
  fi
fi

echo "== compiling for $arch"
"$bin/deepgen" check-ptxas --arch "$arch" --count "$count" --seed "$seed" --largest 200 --most-flops 4e6 --max-rejected 1 --keep "$work" \
  "${chosen[@]}"
mapfile -t files < <(find "$work" -name '*.dgk' | sort)

# A random problem seldom has a long loop and a small output, and few have clusters: of many samples those that do.
is_large() {
  local head k
  head=$(head -n 1 "$1")
  k=$(sed -n 's/.*"problem":"gemm [^"]* k=\([0-9]*\) .*/\1/p' <<< "$head")
  [ "${k:-0}" -gt 1200 ] || { [ "${k:-0}" -gt 128 ] && grep -q '"cluster_[mnk]":[2-9]' <<< "$head"; }
}
# add_large <count> [<options of check-ptxas>]
add_large() {
  local wanted=$1 folder taken=0
  shift
  folder=$(mktemp -d "$work/large.XXXXXX")
  "$bin/deepgen" check-ptxas --arch "$arch" --count $((8 * wanted)) --seed "$seed" --largest 4000 --most-flops 4e8 --max-rejected 1 \
    --no-awkward --keep "$folder" "$@"
  while read -r file; do
    if [ "$taken" -lt "$wanted" ] && is_large "$file"; then
      files+=("$file")
      taken=$((taken + 1))
    fi
  done < <(find "$folder" -name '*.dgk' | sort)
  echo "$taken large ones, of $wanted asked for"
}
if [ "$large" -gt 1 ]; then
  echo "== compiling large ones"
  add_large $((large / 2))
  if [ "$arch" = sm_90a ]; then
    add_large $((large / 2)) --template hopper_ws
  fi
fi

# The mbarriers of PTX are no objects that the tool is told of: it counts them up to so many. Over 16 kernels of one process
# synccheck's count ran over, with a limit of 64 as of 256: it has a process for each file, and a file whose rings have more
# has a higher limit.
limits=(0)
if [[ $(compute-sanitizer --help 2>&1) == *--num-cuda-barriers* ]]; then
  limits=(64 512 4096)
fi
# synccheck_one <file>
synccheck_one() {
  local limit options
  for limit in "${limits[@]}"; do
    options=()
    [ "$limit" = 0 ] || options=(--num-cuda-barriers "$limit")
    run synccheck "$work/synccheck.one" "${options[@]}" "$bin/deepgen-measure" verify --zone 0 --timeout 300 "$1"
    grep -q 'overflow of tracked cuda::barrier' "$work/synccheck.one" || break
  done
  cat "$work/synccheck.one" >> "$work/synccheck"
}

failed=0
for tool in memcheck racecheck initcheck synccheck; do
  echo "== $tool"
  options=()
  [ "$tool" != racecheck ] || [ "${limits[0]}" = 0 ] || options=(--num-cuda-barriers "${limits[0]}")
  if [ "$tool" = synccheck ]; then
    for file in "${files[@]}"; do synccheck_one "$file"; done
  else
    run "$tool" "$work/$tool" "${options[@]}" "$bin/deepgen-measure" verify --zone 0 --timeout 300 "${files[@]}"
  fi
  ok=$(grep -c '^ok ' "$work/$tool" || true)
  bad=$(findings "$work/$tool" | wc -l)
  echo "$ok of ${#files[@]} files ok, $bad lines of findings"
  if [ "$ok" != "${#files[@]}" ] || [ "$bad" != 0 ]; then
    findings "$work/$tool" | head -20
    failed=1
  fi
done
if [ "$failed" != 0 ]; then
  echo "FAILED; kernels and logs are in $work"
  exit 1
fi
rm -rf "$work"
