#!/usr/bin/env bash
# Tunes the GEMMs of a GPT-2's training step (benchmarks/cpu/gpt2.txt) on this machine and times them on several threads beside
# OpenBLAS and oneDNN. Wants a machine that does nothing else.
#
#   scripts/benchmark/benchmark-cpu-threads.sh [2 ...]        numbers of threads; default: 2
#
#   NAME=epyc        files are build/benchmark/threads/NAME-<threads>.{csv,md} and NAME.lock.json; default: this
#   LOCK=f.json      take the kernels of this lock, instead of a search
#   PREFIX=folder    an installed DeepGen or an unpacked archive, where there is no LLVM to build one; else it is built.
#                    Needs g++, cmake, ninja-build, libopenblas0-pthread, libdnnl-dev and libxsmm-dev, which are not installed then
#   CPUS=0,1         run on these CPUs alone (taskset), e.g. on one thread a core
#   ROUNDS=21 SAMPLE=0.1 BUDGET= ROWS=               rounds; seconds of a sample; the search's budget; "f_qkv;w_fc": only these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export DEEPGEN_CACHE=off # everything is made and measured anew
name=${NAME:-this} out=$PWD/build/benchmark/threads
mkdir -p "$out"
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libopenblas0-pthread libdnnl-dev libxsmm-dev
lock=$out/$name.lock.json tune=tune mode=auto
if [ -n "${LOCK:-}" ]; then
  cp "$LOCK" "$lock"
  tune="" mode=lock
fi
cmake -G Ninja -S benchmarks/cpu -B "$out/build" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release -DSUITE=gpt2.txt \
  -DLOCK="$lock" -DROWS="${ROWS:-}" -DDEEPGEN_MODE=$mode -DDEEPGEN_BUDGET="${BUDGET:-}"
if [ -n "$tune" ]; then
  cmake --build "$out/build" --target tune # the search takes all cores; only then are threads timed
fi
cmake --build "$out/build"
unset OMP_NUM_THREADS OPENBLAS_NUM_THREADS DEEPGEN_NUM_THREADS
for threads in "${@:-2}"; do
  ${CPUS:+taskset -c "$CPUS"} "$out/build/cpu_threads" --threads "$threads" --rounds "${ROUNDS:-21}" --sample "${SAMPLE:-0.1}" \
    --csv "$out/$name-$threads.csv" | tee "$out/$name-$threads.md"
done
