#!/usr/bin/env bash
# Tunes the rows of benchmarks/cpu/suite.txt on this machine and times them beside OpenBLAS, BLIS, oneDNN and libxsmm.
# Prints the table; raw samples go to build/benchmark/cpu.csv. Arguments go to cpu_benchmark (e.g. --rounds 31).
# PREFIX: an installed DeepGen; else the release is built and installed.
set -euo pipefail
export DEEPGEN_CACHE=off # everything is made and measured anew
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libopenblas0-pthread libblis4-openmp libdnnl-dev libxsmm-dev
cmake -G Ninja -S benchmarks/cpu -B build/benchmark/cpu -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
cmake --build build/benchmark/cpu
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1
build/benchmark/cpu/cpu_benchmark --csv build/benchmark/cpu.csv "$@"
