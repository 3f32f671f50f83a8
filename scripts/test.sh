#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs the whole suite. Arguments go to ctest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true
# What one checkout has compiled serves the others: paths below this folder count as relative ones.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

scripts/install-deps.sh
# The unit and numeric tests once more under AddressSanitizer and UndefinedBehaviorSanitizer. First, so that the last
# lines are those of the whole suite. DEEPGEN_SKIP_SANITIZERS=1 saves the second build.
if [ -z "${DEEPGEN_SKIP_SANITIZERS:-}" ]; then
  cmake --preset asan
  cmake --build --preset asan
  ctest --preset asan --label-regex 'unit|numerics' </dev/null
fi
cmake --preset ci
cmake --build --preset ci
ctest --preset ci "$@" </dev/null
