#!/usr/bin/env bash
# Tunes the functions of benchmarks/cpu/ranges.txt on this machine, and times them at 20 sizes each beside the best of OpenBLAS
# and oneDNN. The table goes to build/benchmark/ranges.md, raw samples to ranges.csv, the lock to ranges.lock.json there.
# Arguments go to cpu_ranges (e.g. --rounds 15). PREFIX: an installed DeepGen; else the release is built and installed.
set -euo pipefail
export DEEPGEN_CACHE=off # everything is made and measured anew
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/benchmark/benchmark-prefix.sh
find_deepgen libopenblas0-pthread libdnnl-dev
tree=build/benchmark/ranges
cmake -G Ninja -S benchmarks/cpu -B $tree -DSUITE=ranges.txt -DLOCK="$PWD/$tree.lock.json" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Release
cmake --build $tree --target tune
cmake --build $tree
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
$tree/cpu_ranges --csv $tree.csv "$@" | tee $tree.md
