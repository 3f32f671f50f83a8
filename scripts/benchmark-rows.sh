#!/usr/bin/env bash
# Tunes the softmaxes and normalisations of benchmarks/rows/rows.txt on this machine and times them beside oneDNN and beside a
# loop that reads. Wants a machine that does nothing else.
#
#   scripts/benchmark-rows.sh [1 2 ...]        numbers of threads; default: 1
#
#   NAME=epyc        files are build/benchmark/rows/NAME-<threads>.{csv,md} and NAME.lock.json; default: this
#   LOCK=f.json      take the kernels of this lock, instead of a search
#   PREFIX=folder    an installed DeepGen or an unpacked archive; else it is built. Needs libdnnl-dev, which is not installed then
#   ROUNDS=21 SAMPLE=0.05 BUDGET= ROWS=        rounds; seconds of a sample; the search's budget; "norm_768;softmax_256": only these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export DEEPGEN_CACHE=off # everything is made and measured anew
name=${NAME:-this} out=$PWD/build/benchmark/rows prefix=${PREFIX:-$PWD/build/benchmark/deepgen}
mkdir -p "$out"
if [ -z "${PREFIX:-}" ]; then
  scripts/install-deps.sh libdnnl-dev
  cmake --preset release -DDEEPGEN_BUILD_TESTS=OFF
  cmake --build --preset release
  cmake --install build/release --prefix "$prefix" >/dev/null
fi
lock=$out/$name.lock.json tune=tune mode=auto
if [ -n "${LOCK:-}" ]; then
  cp "$LOCK" "$lock"
  tune="" mode=lock
fi
cmake -G Ninja -S benchmarks/rows -B "$out/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DLOCK="$lock" -DROWS="${ROWS:-}" -DDEEPGEN_MODE=$mode -DDEEPGEN_BUDGET="${BUDGET:-}"
if [ -n "$tune" ]; then
  cmake --build "$out/build" --target tune
fi
cmake --build "$out/build"
unset OMP_NUM_THREADS DEEPGEN_NUM_THREADS
for threads in "${@:-1}"; do
  "$out/build/rows_benchmark" --threads "$threads" --rounds "${ROUNDS:-21}" --sample "${SAMPLE:-0.05}" \
    --csv "$out/$name-$threads.csv" | tee "$out/$name-$threads.md"
done
