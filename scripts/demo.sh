#!/usr/bin/env bash
# From nothing to a tuned program: installs what is missing, builds DeepGen, tunes examples/ffn, shows the search, runs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true
build=build/demo/ffn

scripts/install-deps.sh
cmake --preset release -DDEEPGEN_BUILD_TESTS=OFF
cmake --build --preset release
cmake --install build/release --prefix build/demo/deepgen >/dev/null
cmake -G Ninja -S examples/ffn -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$PWD/build/demo/deepgen"
cmake --build "$build" </dev/null

mapfile -t records < <(find "$build" -name records.jsonl -o -name final.jsonl | sort)
if [ ${#records[@]} -gt 0 ]; then # none when the lock has it all
  echo
  build/release/bin/deepgen report --records "${records[@]}"
fi
echo
"$build/ffn"
