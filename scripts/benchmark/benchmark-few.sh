#!/usr/bin/env bash
# Times products of few rows on a packed B (benchmarks/cpu/few) on one thread beside what bounds them. Wants a machine that does
# nothing else: 4 minutes for 21 rounds, and half an hour more for a search.
#
#   scripts/benchmark/benchmark-few.sh [rounds [name]]        default: 21, all rows; "f32_f32" takes the rows with that in their names
#
#   NAME=epyc        files are build/benchmark/few/NAME-few.{csv,md}; default: this
#   TUNED=1          search first; otherwise these are the configs that the estimate puts first
#   PREFIX=folder    an installed DeepGen or an unpacked archive, where there is no LLVM to build one; else it is built
#   CPU=1            run on this CPU alone (taskset)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=${NAME:-this} out=$PWD/build/benchmark/few
mkdir -p "$out"
source scripts/benchmark/benchmark-prefix.sh
find_deepgen
cmake -G Ninja -S benchmarks/cpu/few -B "$out/build" -UDeepGen_DIR -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DLOCK="$out/$name-few.lock.json" -DTUNED="${TUNED:+ON}" >/dev/null
if [ -n "${TUNED:-}" ]; then
  cmake --build "$out/build" --target tune
fi
cmake --build "$out/build" >/dev/null
${CPU:+taskset -c "$CPU"} "$out/build/cpu_few" "${1:-21}" "${2:--}" "$out/$name-few.csv" | tee "$out/$name-few.md"
