#!/usr/bin/env bash
# Tunes, verifies and times attention on the attached GPU in the cells of FlashAttention 3's figures: 16384 tokens, heads * dimension
# 2048, dimensions 64, 128 and 256, causal and not. benchmarks/gpu/attention_torch.py OUTDIR compares the winners with torch's.
#   scripts/gpu-attention.sh PREFIX OUTDIR   PREFIX: an installed DeepGen, or a folder of deepgen and deepgen-measure
# OUTDIR gets a folder a problem with its kernels and records. A problem that OUTDIR has already is not tuned again. Exits with
# 77 without a GPU, with 1 when a kernel is wrong.
# With DECODE="1 8 64" it does so with one query of so many entries instead, 32 heads of Q and 8 of K, dimension 128:
# KEYS="1024 4096 32768" of each, in pages of PAGES="0 16 64" tokens (0: none). benchmarks/gpu/decode.py OUTDIR makes the table.
# PREFILL_PAGES="0 64" has keys and values of the cells in pages, too, in folders that end with the page's size.
# From the environment: SLOTS=24 candidates a round, ROUNDS=1, SECONDS_EACH=8 of measuring a round, LENGTHS="512 2048 8192",
# DIMENSIONS="64 128 256", MASKS="none causal", TYPE=bf16, SEARCH=f.json a search file (docs/search.md), or
# TEMPLATE=hopper_attention for configs of that template alone.
set -euo pipefail
prefix=${1:?PREFIX} out=${2:?OUTDIR}
target=attention
slots=${SLOTS:-24} rounds=${ROUNDS:-1} seconds=${SECONDS_EACH:-8} type=${TYPE:-bf16}
if [ -n "${TEMPLATE:-}" ]; then
  mkdir -p "$out"
  SEARCH=$out/search.json
  printf '{"schema":"deepgen.search/1","templates":{"%s":{}}}\n' "$TEMPLATE" > "$SEARCH"
fi
# shellcheck source=scripts/gpu-tune.sh
source "$(dirname "$0")/gpu-tune.sh"

# <folder> <key>, unless it is done
attention() {
  [ ! -s "$1/final.jsonl" ] || return 0
  echo "== $(basename "$1")"
  tune "$1" "$2" || { echo "FAILED: $1"; failed=1; }
  if grep -h -o '"status":"\(wrong\|out_of_bounds\|crash\|timeout\)"' "$1"/r*/records.jsonl; then
    echo "FAILED: candidates of $1" && failed=1
  fi
}

for batch in ${DECODE:-}; do
  for keys in ${KEYS:-1024 4096 32768}; do
    for page in ${PAGES:-0 16 64}; do
      attention "$out/decode-$batch-$keys-$page" "attention heads=32 kv_heads=8 head_dim=128 value_dim=128 q=$type kv=$type out=$type \
mask=causal queries=16 keys=$keys options=none $( ((page == 0)) || echo "page=$page ")at_batch=$batch at_queries=1 at_keys=$keys"
    done
  done
done
[ -z "${DECODE:-}" ] || exit $failed
for d in ${DIMENSIONS:-64 128 256}; do
  for mask in ${MASKS:-none causal}; do
    for s in ${LENGTHS:-512 2048 8192}; do
      heads=$((2048 / d))
      for page in ${PREFILL_PAGES:-0}; do
        attention "$out/d$d-$mask-$s$( ((page == 0)) || echo "-$page")" "attention heads=$heads kv_heads=$heads head_dim=$d \
value_dim=$d q=$type kv=$type out=$type mask=$mask queries=$s keys=$s options=none \
$( ((page == 0)) || echo "page=$page ")at_batch=$((16384 / s)) at_queries=$s at_keys=$s"
      done
    done
  done
done
exit $failed
