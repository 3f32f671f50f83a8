#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs the whole suite. Arguments go to ctest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true
# What one checkout has compiled serves the others: paths below this folder count as relative ones.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# suite PRESET ARGUMENT...: its tests, and at the end why some failed.
suite() {
  local build=build/$1
  if ! ctest --preset "$@" </dev/null | tee "$build/suite.log"; then
    scripts/why-failed.py "$build" "$build/suite.log"
    exit 8
  fi
}

scripts/install-deps.sh
# What LLVM and ptxas made in earlier runs, by the content of what they read: bounded.
scripts/trim-store.py ~/.cache/deepgen-tests 1000
cmake --preset ci
cmake --build --preset ci
suite ci "$@"
# The unit and numeric tests once more under AddressSanitizer and UndefinedBehaviorSanitizer. Second, so that the first run
# has kept the objects that LLVM makes of kernels' IR. DEEPGEN_SKIP_SANITIZERS=1 leaves them out,
# DEEPGEN_SANITIZED_PRESET=asan makes them by g++, in twice the time. They take a third of what all before does: where half of
# DEEPGEN_TEST_MINUTES is over, nothing at all would come to its end with them.
sanitized=${DEEPGEN_SANITIZED_PRESET:-asan-clang}
if [ -n "${DEEPGEN_SKIP_SANITIZERS:-}" ]; then
  exit 0
elif [ -n "${DEEPGEN_TEST_MINUTES:-}" ] && [ $((2 * SECONDS)) -gt $((60 * DEEPGEN_TEST_MINUTES)) ]; then
  echo "NOT RUN: the sanitized tests, as $((SECONDS / 60)) of $DEEPGEN_TEST_MINUTES minutes are over"
else
  cmake --preset "$sanitized"
  cmake --build --preset "$sanitized"
  suite "$sanitized" --label-regex 'unit|numerics'
  echo "What came before, of the whole suite:"
fi
sed -n '/tests passed,/,$p' build/ci/suite.log
