#!/usr/bin/env bash
# Times the products of 16 and 8 bits of benchmarks/cpu/dot.txt on one thread beside oneDNN, in one process. Wants a machine that does
# nothing else: 3 minutes for 31 rounds, and 20 minutes more for a search. Arguments go to cpu_dot_benchmark (--rounds 31 --row bf_gelu).
#
#   scripts/benchmark/benchmark-dot.sh [--rounds n] [--row name]
#
#   NAME=epyc        files are build/benchmark/dot/NAME-dot.{csv,md}; default: this
#   TUNED=1          search first; otherwise these are the configs that the estimate puts first
#   LOCK=f.json      take the kernels of this lock, instead of a search
#   PREFIX=folder    an installed DeepGen or an unpacked archive, where there is no LLVM to build one; else it is built.
#                    Needs g++, cmake, ninja-build and libdnnl-dev, which are not installed then
#   CPU=1            run on this CPU alone (taskset)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ -n "${LOCK:-}" ] && [ -n "${TUNED:-}" ]; then
  echo "LOCK takes kernels of a lock, TUNED searches: name one" >&2
  exit 2
fi
name=${NAME:-this} out=$PWD/build/benchmark/dot
mkdir -p "$out"
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libdnnl-dev
lock=$out/$name-dot.lock.json mode=auto untuned=ON
if [ -n "${LOCK:-}" ]; then
  cp "$LOCK" "$lock"
  mode=lock untuned=OFF
elif [ -n "${TUNED:-}" ]; then
  untuned=OFF
fi
cmake -G Ninja -S benchmarks/cpu -B "$out/build" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release -DSUITE=dot.txt \
  -DLOCK="$lock" -DDEEPGEN_MODE=$mode -DUNTUNED=$untuned >/dev/null
if [ -n "${TUNED:-}" ]; then
  cmake --build "$out/build" --target tune
fi
cmake --build "$out/build" >/dev/null
OMP_NUM_THREADS=1 ${CPU:+taskset -c "$CPU"} "$out/build/cpu_dot_benchmark" --csv "$out/$name-dot.csv" "$@" | tee "$out/$name-dot.md"
