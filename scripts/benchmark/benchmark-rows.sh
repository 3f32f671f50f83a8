#!/usr/bin/env bash
# Tunes the softmaxes and normalisations of benchmarks/rows/rows.txt on this machine and times them on one thread beside oneDNN, a
# loop that reads, and memcpy. Wants a machine that does nothing else. Arguments go to rows_benchmark (e.g. --rounds 31).
#
#   NAME=epyc        files are build/benchmark/rows/NAME.{csv,md,lock.json}; default: this
#   LOCK=f.json      take the kernels of this lock, instead of a search; LOCK=none: the estimate's
#   PREFIX=folder    an installed DeepGen or an unpacked archive; else it is built. Needs libdnnl-dev, which is not installed then
#   BUDGET= ROWS=    the search's budget; "norm_f32_1024;rms_bf16_1024": only these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export DEEPGEN_CACHE=off # everything is made and measured anew
name=${NAME:-this} out=$PWD/build/benchmark/rows
mkdir -p "$out"
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libdnnl-dev
lock=$out/$name.lock.json tune=tune mode=auto
if [ "${LOCK:-}" = none ]; then
  rm -f "$lock"
  tune="" mode=lock
elif [ -n "${LOCK:-}" ]; then
  cp "$LOCK" "$lock"
  tune="" mode=lock
fi
cmake -G Ninja -S benchmarks/rows -B "$out/build" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DLOCK="$lock" -DROWS="${ROWS:-}" -DDEEPGEN_MODE=$mode -DDEEPGEN_BUDGET="${BUDGET:-}"
if [ -n "$tune" ]; then
  cmake --build "$out/build" --target tune
fi
cmake --build "$out/build"
export OMP_NUM_THREADS=1
"$out/build/rows_benchmark" --csv "$out/$name.csv" "$@" | tee "$out/$name.md"
