#!/usr/bin/env bash
# Fuzzes for long: many inputs a target, spread over processes, and a line a target of how many were run.
#   scripts/fuzz.sh <fuzz program> <corpus folder> <processes> <inputs of each target> [<seconds of each at most> [<target>...]]
# The program is build/ci/tests/fuzz/fuzz, which needs nothing but glibc; the corpus tests/fuzz/corpus. Every process has a
# seed of its own (FUZZ_SEED and up; 1 unless set) and starts from the corpus. What breaks a reader is left in $FUZZ_FOUND
# (default: fuzz-found), and then the exit status is 1.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
fuzz=$(realpath "$1") corpus=$(realpath "$2") processes=$3 inputs=$4 seconds=${5:-0}
shift $(($# < 5 ? 4 : 5))
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(ls "$corpus"))
found=${FUZZ_FOUND:-fuzz-found}
mkdir -p "$found"
found=$(realpath "$found")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
for target in "${targets[@]}"; do
  began=$SECONDS
  running=()
  for i in $(seq "$processes"); do
    mkdir -p "$work/$target/$i"
    "$fuzz" "$work/$target/$i" "$corpus/$target" --target="$target" -seed=$((${FUZZ_SEED:-1} + i - 1)) \
      -runs=$(((inputs + processes - 1) / processes)) -max_total_time="$seconds" -max_len=2048 -timeout=60 \
      -print_final_stats=1 -artifact_prefix="$found/$target-" > "$work/$target/$i.log" 2>&1 &
    running+=($!)
  done
  for i in $(seq "$processes"); do
    wait "${running[$((i - 1))]}" && continue
    failed=1
    cp "$work/$target/$i.log" "$found/$target-$i.log"
  done
  awk -v target="$target" -v seconds=$((SECONDS - began)) '
    /^stat::number_of_executed_units/ { runs += $2 }
    / cov: / { for (n = 1; n < NF; ++n) if ($n == "cov:" && $(n + 1) > cov) cov = $(n + 1) }
    END { printf "%-8s %10d inputs in %4d s, %d branches covered\n", target, runs, seconds, cov }' "$work/$target"/*.log
  rm -rf "${work:?}/$target"
done
[ $failed -eq 0 ] && echo "no finding" || echo "FINDINGS in $found"
exit $failed
