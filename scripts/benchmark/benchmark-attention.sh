#!/usr/bin/env bash
# Tunes the calls of benchmarks/cpu/attention/attention.txt on this machine and times them on one thread beside compositions of
# OpenBLAS and of oneDNN. Wants a machine that does nothing else. Arguments go to attention_benchmark (e.g. --rounds 31).
#
#   NAME=epyc        files are build/benchmark/attention/NAME-attention.{csv,md,lock.json}; default: this
#   LOCK=f.json      take the kernels of this lock, instead of a search; LOCK=none: the estimate's
#   PREFIX=folder    an installed DeepGen or an unpacked archive; else it is built. Needs libdnnl-dev and libopenblas0-pthread,
#                    which are not installed then
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export DEEPGEN_CACHE=off # everything is made and measured anew
name=${NAME:-this} out=$PWD/build/benchmark/attention
mkdir -p "$out"
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libdnnl-dev libopenblas0-pthread
lock=$out/$name-attention.lock.json tune=tune mode=auto
if [ "${LOCK:-}" = none ]; then
  rm -f "$lock"
  tune="" mode=lock
elif [ -n "${LOCK:-}" ]; then
  cp "$LOCK" "$lock"
  tune="" mode=lock
fi
cmake -G Ninja -S benchmarks/cpu/attention -B "$out/build" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DLOCK="$lock" -DDEEPGEN_MODE=$mode
if [ -n "$tune" ]; then
  cmake --build "$out/build" --target tune
fi
cmake --build "$out/build"
export OMP_NUM_THREADS=1
"$out/build/attention_benchmark" --csv "$out/$name-attention.csv" "$@" | tee "$out/$name-attention.md"
