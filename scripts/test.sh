#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs the whole suite. Arguments go to ctest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true

scripts/install-deps.sh
cmake --preset ci
cmake --build --preset ci
ctest --preset ci "$@" </dev/null
