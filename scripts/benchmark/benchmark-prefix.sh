# For the scripts benchmark-*.sh, which source it from the top of the tree.

# -UDeepGen_DIR beside CMAKE_PREFIX_PATH makes CMake look again: a tree keeps the package that it has found once.
# find_deepgen [package ...]: sets `prefix`, where DeepGen is installed: $PREFIX, or else what this tree builds now. Only then are
# the packages installed that the benchmark wants beside those of the build.
find_deepgen() {
  prefix=${PREFIX:-$PWD/build/benchmark/deepgen}
  [ -z "${PREFIX:-}" ] || return 0
  scripts/install-deps.sh "$@"
  cmake --preset release -DDEEPGEN_BUILD_TESTS=OFF
  cmake --build --preset release
  cmake --install build/release --prefix "$prefix" >/dev/null
}
