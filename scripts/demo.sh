#!/usr/bin/env bash
# From nothing to a tuned program: installs what is missing, builds DeepGen, tunes an example, shows the search, runs it.
# The example is examples/cuda_ffn where an NVIDIA GPU and the CUDA Toolkit are found, else examples/ffn on the CPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true

scripts/install-deps.sh
cmake --preset release -DDEEPGEN_BUILD_TESTS=OFF
cmake --build --preset release
cmake --install build/release --prefix build/demo/deepgen >/dev/null

example=ffn
options=()
devices=$(build/release/bin/deepgen-measure devices --list)
if grep -q '^ *sm_' <<<"$devices" && [ -d "${CUDA_HOME:-/usr/local/cuda}/include" ]; then
  example=cuda_ffn
  options=(-DDEEPGEN_ARCHS=native)
fi
build=build/demo/$example
cmake -G Ninja -S examples/$example -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$PWD/build/demo/deepgen" \
  "${options[@]}"
cmake --build "$build" </dev/null

mapfile -t records < <(find "$build" -name records.jsonl -o -name final.jsonl | sort)
if [ ${#records[@]} -gt 0 ]; then # none when the lock has it all
  echo
  build/release/bin/deepgen report --records "${records[@]}"
fi
echo
"$build/$example"
