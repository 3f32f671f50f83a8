#!/usr/bin/env bash
# Tunes the rows of benchmarks/cpu/suite.txt on this machine and times them beside OpenBLAS, BLIS, oneDNN and libxsmm.
# Prints the table; raw samples go to build/benchmark/NAME.csv. Arguments go to cpu_benchmark (e.g. --rounds 31).
# PREFIX: an installed DeepGen; else the release is built and installed.
# PREPACKED=1: B is packed ahead of the calls, and what oneDNN packs ahead counts as a peer. NAME: of the files, cpu or cpu-packed.
# CPU: run the benchmark on this CPU alone (taskset).
set -euo pipefail
export DEEPGEN_CACHE=off # everything is made and measured anew
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libopenblas0-pthread libblis4-openmp libdnnl-dev libxsmm-dev
packed=${PREPACKED:+-packed}
name=${NAME:-cpu$packed} build=build/benchmark/cpu$packed
cmake -G Ninja -S benchmarks/cpu -B "$build" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DPREPACKED="${PREPACKED:-OFF}" -DLOCK="$PWD/build/benchmark/$name.lock.json"
cmake --build "$build"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1
${CPU:+taskset -c "$CPU"} "$build/cpu_benchmark" --csv "build/benchmark/$name.csv" "$@"
