#!/usr/bin/env bash
# The whole flow on a host with a GPU, from an unpacked package: build the example, tune, run, build frozen, run.
#   scripts/gpu-flow.sh <folder of the package> [<work folder>]
#   scripts/gpu-flow.sh --frozen <folder of the package> [<work folder>]     on a host without a GPU: compare the sums
# Needs cmake, ninja, a C++ compiler and the CUDA Toolkit. The second form takes the lock that the first one left in the
# example's folder of <work folder>, or that is committed. DEEPGEN_ARCHS in the environment overrides the example's.
set -euo pipefail
frozen_only=false
if [ "${1:-}" = --frozen ]; then
  frozen_only=true
  shift
fi
package=$(realpath "${1:?folder of the unpacked package}")
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../examples/cuda_ffn")
work=$(realpath -m "${2:-build/gpu-flow}")
example=$work/cuda_ffn
mkdir -p "$example"
cp -u "$source"/* "$example"

configure() { # <build folder> <option>...
  local folder=$work/$1
  shift
  rm -rf "$folder"
  cmake -G Ninja -S "$example" -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$package" \
    ${DEEPGEN_ARCHS:+"-DDEEPGEN_ARCHS=$DEEPGEN_ARCHS"} "$@"
}

if ! $frozen_only; then
  "$package/bin/deepgen-measure" devices --list
  echo "== plain build: finds the GPU, searches, links"
  configure build
  cmake --build "$work/build"
  "$work/build/cuda_ffn"
  echo "== tune: merges what was found into the lock"
  cmake --build "$work/build" --target tune
  cmake --build "$work/build" # from the lock
  "$work/build/cuda_ffn"
fi

echo "== frozen: from the lock alone"
configure frozen -DDEEPGEN_MODE=frozen
cmake --build "$work/frozen"
if ! $frozen_only; then
  "$work/frozen/cuda_ffn"
fi
echo "== sums of the lock and of the frozen build's kernels: equal on every host with the lock's toolchain"
cd "$work"
sha256sum cuda_ffn/deepgen.lock.json frozen/_deepgen/ffn_kernels/*/sm_*/winner.dgk frozen/_deepgen/ffn_kernels/ffn_kernels.cpp
