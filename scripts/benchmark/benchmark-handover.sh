#!/usr/bin/env bash
# What handing a call to several threads costs: builds benchmarks/cpu/handover.cpp with the runtime's pool and runs it. Needs g++
# alone; wants a machine that does nothing else. Some seconds for each number of threads.
#
#   scripts/benchmark/benchmark-handover.sh [threads ...]      default: 2, 4, 8, ... and as many as this process may use
#
#   NAME=this        files are build/benchmark/NAME-handover.{csv,md}
#   STATIC=1         builds build/benchmark/handover for a host without a compiler, and runs nothing; there:
#                    ./handover samples.csv [threads ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=build/benchmark
mkdir -p $out
${CXX:-g++} -std=c++20 -O2 -pthread ${STATIC:+-static} -I. -Iruntime/include -Ibenchmarks/cpu benchmarks/cpu/handover.cpp \
  runtime/core/pool.cpp runtime/core/cpus.cpp runtime/core/scratch.cpp -o $out/handover
[ -z "${STATIC:-}" ] || exit 0
$out/handover "$out/${NAME:-this}-handover.csv" "$@" | tee "$out/${NAME:-this}-handover.md"
