#!/usr/bin/env bash
# What DeepGen costs a build: start-up of the tool, one candidate, a library of 100 locked problems, one call.
# Prints a table of medians; needs build/release (cmake --preset release). Takes some minutes: the lock is made by tuning.
set -euo pipefail
export DEEPGEN_CACHE=off # everything is made and measured anew
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$PWD/build/benchmark
prefix=$work/deepgen
cmake --build --preset release >/dev/null
cmake --install build/release --prefix "$prefix" >/dev/null
export TIMEFORMAT='%R %U %S'
runs=5

# median of the n-th column of `time` (1 wall, 2 user, 3 sys) over the runs of a command
timed() { # column command...
  local column=$1
  shift
  for _ in $(seq $runs); do
    { time "$@" >"$work/last.log" 2>&1; } 2>&1 || { echo "failed: $*; see $work/last.log" >&2; return 1; }
  done | awk -v c="$column" '{print (c == 4) ? $2 + $3 : $c}' | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)] " s  [" v[1] ", " v[NR] "]"}'
}

mkdir -p "$work/hundred"
{
  echo 'cmake_minimum_required(VERSION 3.25)'
  echo 'project(hundred CXX)'
  echo 'find_package(DeepGen REQUIRED)'
  for i in $(seq 100); do
    layout=$(echo nn nt tn tt | cut -d' ' -f$((i % 4 + 1)))
    epilogue=$(echo 'bias,bias gelu,relu,bias silu' | cut -d, -f$((i % 4 + 1)))
    echo "deepgen_add_gemm(hundred NAME f$i SHAPE $((i % 13 * 5 + 3)) $((i * 3 + 8)) $((i % 17 * 8 + 5)) TYPES f32 f32 f32 LAYOUT $layout EPILOGUE $epilogue \${VENDORED})"
  done
} >"$work/hundred/CMakeLists.txt"
configure() { cmake -G Ninja -S "$work/hundred" -B "$work/hundred/$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release -DDEEPGEN_ARCHS=cpu "${@:2}"; }
echo "tuning 100 small problems for the lock ..." >&2
rm -rf "$work/hundred/deepgen.lock.json" "$work/hundred/tune"
configure tune -DDEEPGEN_SLOTS=2 -DDEEPGEN_MEASURE_SECONDS=0.1 -DVENDORED=VENDORED >/dev/null
for _ in 1 2 3 4 5; do # a playoff that was disturbed is repeated
  ninja -C "$work/hundred/tune" tune >"$work/hundred/tune.log" 2>&1 && break
done
echo "locked problems: $(grep -c '"problem"' "$work/hundred/deepgen.lock.json") of 100"

key="gemm m=512 n=512 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4"
"$prefix/bin/deepgen-measure" devices --arch cpu -o "$work/device.json"
echo "{\"schema\":\"deepgen.problem/1\",\"target\":\"t\",\"name\":\"t\",\"namespace\":\"t\",\"problem\":\"$key\",\"untuned\":false}" >"$work/problem.json"
"$prefix/bin/deepgen" plan --problem "$work/problem.json" --arch cpu --device "$work/device.json" --round 0 --slots 32 -o "$work/plan.json"
all_slots() { for i in $(seq 0 31); do "$prefix/bin/deepgen" compile --plan "$work/plan.json" --slot "$i" -o "$work/slot.dgk"; done; }
full_build() { rm -rf "$work/hundred/$1" && configure "$1" -DDEEPGEN_MODE="$1" && ninja -C "$work/hundred/$1"; }
configure_fresh() { rm -rf "$work/hundred/$1" && configure "$1" -DDEEPGEN_MODE="$1"; }

echo "deepgen --codegen-id, wall:                      $(timed 1 "$prefix/bin/deepgen" --codegen-id)"
echo "32 candidates of 512^3 bias+gelu, CPU:            $(runs=3 timed 4 all_slots)"
for mode in auto frozen; do # auto declares the search edges for `tune`, frozen has none
  echo "100 locked problems, $mode: first configure, wall:  $(timed 1 configure_fresh $mode)"
  echo "100 locked problems, $mode: full build, wall:       $(runs=3 timed 1 full_build $mode)"
  echo "100 locked problems, $mode: configure again, wall:  $(timed 1 configure $mode)"
  echo "100 locked problems, $mode: null build, wall:       $(timed 1 ninja -C "$work/hundred/$mode")"
done
"$prefix/bin/deepgen" lock check --lock "$work/hundred/deepgen.lock.json" | tail -2
vendored_source() { # all but compiling C++
  rm -rf "$work/hundred/vendored" && configure vendored -DDEEPGEN_MODE=frozen -DVENDORED=VENDORED &&
    ninja -C "$work/hundred/vendored" hundred.header hundred.source
}
vendored_build() { vendored_source && ninja -C "$work/hundred/vendored"; }
frozen_source() { rm -rf "$work/hundred/frozen" && configure frozen -DDEEPGEN_MODE=frozen && ninja -C "$work/hundred/frozen" hundred.header hundred.source; }
echo "100 vendored problems, frozen: configured and embedded, CPU:  $(runs=3 timed 4 vendored_source)"
echo "100 compiled problems, frozen: configured and embedded, CPU:  $(runs=3 timed 4 frozen_source)"
echo "100 vendored problems, frozen: full build, wall:              $(runs=3 timed 1 vendored_build)"
cmake -G Ninja -S benchmarks/call -B "$work/call" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C "$work/call" >/dev/null
"$work/call/call_benchmark"
