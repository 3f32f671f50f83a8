#!/usr/bin/env bash
# Tunes, verifies and times rows on the attached GPU beside the reading kernel of the same run: softmax, layer_norm, rms_norm
# with a residual, and rms_norm quantised to e4m3, of rows of 1024 to 16384 bf16. The bar: 90 % of what reading gets.
#   scripts/gpu/gpu-rows.sh PREFIX OUTDIR        PREFIX: an installed DeepGen, or a folder of deepgen and deepgen-measure
# OUTDIR gets a folder a problem with its kernels and records, and rows.tsv; benchmarks/gpu/rows_torch.py reads it. A problem
# that OUTDIR has already is not tuned again. Exits with 77 without a GPU, with 1 when a kernel is wrong.
# From the environment: SLOTS=32 candidates a round, ROUNDS=2, SECONDS_EACH=12 of measuring a round, COLUMNS_OF="1024 2048 ...",
# KINDS="softmax layer_norm ...", SEARCH=f.json a search file (docs/search.md), SANITIZE=0 leaves compute-sanitizer out.
set -euo pipefail
prefix=${1:?PREFIX} out=${2:?OUTDIR}
slots=${SLOTS:-32} rounds=${ROUNDS:-2} seconds=${SECONDS_EACH:-12}
columns=${COLUMNS_OF:-1024 2048 4096 8192 16384}
kinds=${KINDS:-softmax layer_norm rms_norm_residual rms_norm_e4m3}

# <kind> <M> <N>: the problem's key
key_of() {
  local x="rows m=$2 n=$3 x=bf16"
  case $1 in
    softmax) echo "$x d=bf16 kind=softmax options=none" ;;
    layer_norm) echo "$x d=bf16 kind=layer_norm options=scale+bias" ;;
    rms_norm_residual) echo "$x d=bf16 kind=rms_norm options=residual+output_residual+scale" ;;
    rms_norm_e4m3) echo "$x d=e4m3 kind=rms_norm options=scale" ;;
  esac
}

target=rows
# shellcheck source=scripts/gpu/gpu-tune.sh
source "$(dirname "$0")/gpu-tune.sh"

for kind in $kinds; do
  for n in $columns; do
    m=$((n > 4096 ? 4096 : 16384 * 1024 / n))
    folder=$out/$kind-$n
    [ ! -s "$folder/final.jsonl" ] || continue
    echo "== $kind, $m x $n"
    tune "$folder" "$(key_of "$kind" "$m" "$n")" || { echo "FAILED: $folder"; failed=1; }
    if grep -h -o '"status":"\(wrong\|out_of_bounds\|crash\|timeout\)"' "$folder"/r*/records.jsonl; then
      echo "FAILED: candidates of $folder" && failed=1
    fi
  done
done

# A few small ones, with operands in allocations of their own size.
if [ "${SANITIZE:-1}" != 0 ] && command -v compute-sanitizer > /dev/null && [ "${arch#sm_}" != "$arch" ]; then
  for kind in $kinds; do
    folder=$out/sanitized-$kind
    mkdir -p "$folder/r0"
    printf '{"schema":"deepgen.problem/1","target":"rows","name":"f","namespace":"rows","problem":"%s","untuned":false}\n' \
      "$(key_of "$kind" 37 1000)" > "$folder/problem.json"
    "$bin/deepgen" plan --problem "$folder/problem.json" --arch "$arch" --device "$out/device.json" --round 0 --slots 6 \
      -o "$folder/r0/plan.json"
    slots=6 compile "$folder" 0
    for tool in memcheck racecheck synccheck; do
      log=$folder/$tool.log
      compute-sanitizer --tool $tool --target-processes all "$measure" verify --no-cache --zone 0 --timeout 300 \
        "$folder"/r0/s*.dgk > "$log" 2>&1 || true
      ok=$(grep -c '^ok ' "$log" || true)
      bad=$(grep '^=========' "$log" | grep -c -v -e COMPUTE-SANITIZER -e 'SUMMARY: 0 ' || true)
      echo "$kind, $tool: $ok files ok, $bad lines of findings"
      { [ "$ok" -gt 0 ] && [ "$bad" = 0 ] && ! grep -q -e '^wrong' -e '^crash' -e '^out_of' "$log"; } || failed=1
    done
  done
fi

python3 - "$out" << 'PYTHON'
import glob, json, os, sys
out = sys.argv[1]
rows = []
for path in glob.glob(out + "/*/final.jsonl"):
    lines = [json.loads(line) for line in open(path)]
    env = next(x for x in lines if x["schema"].startswith("deepgen.env"))["environment"]
    best = min((x for x in lines if x.get("stage") == "final" and x.get("status") == "ok" and x.get("timing")),
               key=lambda x: x["timing"]["ratio"], default=None)
    if best is None or "read" not in env:
        print("no result: " + path)
        continue
    kind, n = os.path.basename(os.path.dirname(path)).rsplit("-", 1)
    read = env["read"]
    # The reading kernel reads as many bytes as a call moves.
    share = read["seconds"] / best["timing"]["seconds"]
    rows.append((kind, int(n), best["timing"]["seconds"] * 1e6, read["bytes"] / best["timing"]["seconds"] / 1e9,
                 read["bytes"] / read["seconds"] / 1e9, share, best["template"] if "template" in best else "",
                 json.dumps(best.get("config", {})), best.get("kernel_file", "")))
with open(out + "/rows.tsv", "w") as f:
    print("kind\tn\tus\tGB/s\treading GB/s\tshare of reading\ttemplate\tconfig\tkernel", file=f)
    for r in sorted(rows):
        print("%s\t%d\t%.3f\t%.0f\t%.0f\t%.4f\t%s\t%s\t%s" % r, file=f)
        print("%-20s %6d  %9.2f us  %6.0f GB/s, reading %6.0f GB/s: %.1f %%  %s" % (*r[:5], 100 * r[5], r[7]))
PYTHON
exit $failed
