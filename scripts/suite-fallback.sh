#!/usr/bin/env bash
# Tunes a suite with FALLBACK vendor on this machine, and says whether a row is left under 0.99 of the vendor's library.
#   scripts/suite-fallback.sh PREFIX SUITE ARCH OUT [ROW...]
#   scripts/suite-fallback.sh /opt/deepgen benchmarks/gpu/suite.txt sm_90a fallback-h200        on a GPU host: about a minute a row
#   scripts/suite-fallback.sh /opt/deepgen benchmarks/cpu/suite.txt cpu fallback-cpu c128 c512   on a CPU, of f32 and f64
# OUT gets CMakeLists.txt, the lock and results/*.csv. A second run goes on where the first has stopped. BUDGET=quick is for trying
# it. Exit status 1: a row is under 0.99, and its function does not call the library.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
prefix=$(realpath "$1") suite=$(realpath "$2") arch=$3 out=$4
shift 4
mkdir -p "$out"
out=$(realpath "$out")
{
  echo "cmake_minimum_required(VERSION 3.25)"
  echo "project(fallback CXX)"
  echo "find_package(DeepGen REQUIRED)"
  # name types layout batch M N K epilogue; xG rows of G groups, which have no call to fall back on
  grep -v '^#' "$suite" | while read -r name types layout batch m n k epilogue _; do
    [ -n "$name" ] || continue
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    [[ $batch =~ ^[0-9]+$ ]] || { echo "# $name is no plain product: left out"; continue; }
    types=${types//,/ }
    [ "$(wc -w <<< "$types")" -eq 3 ] || types="$types $types $types"
    case $types in # the suite names inputs alone where D follows
      tf32*) types="tf32 tf32 f32" ;;
      e4m3* | e5m2*) types="${types%% *} ${types%% *} bf16" ;;
      "i8 i8 i8") types="i8 i8 i32" ;;
    esac
    words=""
    case $epilogue in
      none) ;;
      gate=*) words=" GATED ${epilogue#gate=}" ;;
      *) words=" EPILOGUE ${epilogue//[_+]/ }" ;;
    esac
    [ "$arch" = cpu ] || words=${words/gelu/gelu_tanh} # as benchmarks/gpu/tables.py has it: what cuBLASLt fuses
    echo "deepgen_add_gemm(suite NAME $name SHAPE $m $n $k TYPES $types LAYOUT $layout BATCH $batch$words ARCHS $arch FALLBACK vendor)"
  done
} > "$out/CMakeLists.txt"
cmake -G Ninja -S "$out" -B "$out/build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$prefix" "-DDEEPGEN_BUDGET=${BUDGET:-default}"
# What was disturbed is measured again.
for _ in 1 2 3; do cmake --build "$out/build" --target tune && break; done
cmake --build "$out/build" --target tune-results
python3 - "$out/build/results/raw_results.csv" << 'PYTHON'
import csv
import sys

under = 0
for row in csv.DictReader(open(sys.argv[1])):
    if not row["uplift"]:
        print(f"{row['name']:12} not compared: {row['verdict']}")
        continue
    ratio, called = float(row["uplift"]), "called" in row["verdict"]
    under += ratio < 0.99 and not called
    print(f"{row['name']:12} {ratio:6.3f}  {'the library is called' if called else 'the kernel runs'}: {row['verdict']}")
print(f"{under} rows under 0.99 whose functions do not call the library")
sys.exit(under > 0)
PYTHON
