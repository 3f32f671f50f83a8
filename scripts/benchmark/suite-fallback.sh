#!/usr/bin/env bash
# Tunes a suite with FALLBACK vendor on this machine, and says whether a row is left under 0.99 of the vendor's library.
#   scripts/benchmark/suite-fallback.sh PREFIX SUITE ARCH OUT [ROW...]
#   CAP=420 scripts/benchmark/suite-fallback.sh /opt/deepgen benchmarks/gpu/suite.txt sm_90a fallback-h200 sq1024 dec16     on a GPU host
#   scripts/benchmark/suite-fallback.sh /opt/deepgen benchmarks/cpu/suite.txt cpu fallback-cpu c128 c512   on a CPU, of f32 and f64
# PREFIX is an unpacked package; beside it cmake, ninja, python3 and a C++ compiler are needed. OUT gets CMakeLists.txt, the lock
# and results/*.csv. Rows follow each other, in the order of the suite; CAP (seconds): none begins that would not end by then, by
# the longest before it. A second run goes on where the first has stopped. BUDGET=quick is for trying it, OPTIONS for more of
# CMake's. Exit status 1: a row is under 0.99 in a regime that was tuned for, and its function does not call the library.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,10s/^# //p' "$0" >&2; exit 2; }
prefix=$(realpath "$1") suite=$(realpath "$2") arch=$3 out=$4
shift 4
mkdir -p "$out"
out=$(realpath "$out")
rows() { grep -o '^deepgen_add_gemm(suite_[^ ]*' "$out/CMakeLists.txt" | sed 's/.*suite_//'; }
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
    echo "deepgen_add_gemm(suite_$name NAME $name SHAPE $m $n $k TYPES $types LAYOUT $layout BATCH $batch$words ARCHS $arch FALLBACK vendor)"
  done
} > "$out/CMakeLists.txt"
# shellcheck disable=SC2086 # words
cmake -G Ninja -S "$out" -B "$out/build" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$prefix" \
  "-DDEEPGEN_BUDGET=${BUDGET:-default}" ${OPTIONS:-}
longest=0
for row in $(rows); do
  began=$SECONDS
  if [ "${CAP:-0}" -gt 0 ] && [ $((began + longest)) -gt "$CAP" ]; then
    echo "$row: not begun, as $began s of $CAP have passed and a row took $longest s"
    continue
  fi
  # What was disturbed is measured again.
  for _ in 1 2 3; do cmake --build "$out/build" --target "suite_$row.tune" && break; done
  echo "$row: $((SECONDS - began)) s"
  [ $((SECONDS - began)) -le "$longest" ] || longest=$((SECONDS - began))
done
cmake --build "$out/build" --target tune-results
python3 - "$out/build/results/raw_results.csv" << 'PYTHON'
import csv
import sys

def ratios(row):
    """The vendor's time over ours in each regime that was tuned for."""
    names = {"balanced": ("sustained", "bursts"), "burst": ("bursts",)}.get(row["regime"], ())
    found = [float(row[name]) for name in names if row[name]]
    return found or [float(row["uplift"])]


under = 0
for row in csv.DictReader(open(sys.argv[1])):
    if not row["uplift"]:
        print(f"{row['name']:12} not compared: {row['verdict']}")
        continue
    worst, called = min(ratios(row)), "called" in row["verdict"]
    under += worst < 0.99 and not called
    print(f"{row['name']:12} kernel {' '.join(f'{x:6.3f}' for x in ratios(row))}  "
          f"{'1.0: the library is called' if called else 'the kernel runs'}: {row['verdict']}")
print(f"{under} rows under 0.99 whose functions do not call the library")
sys.exit(under > 0)
PYTHON
