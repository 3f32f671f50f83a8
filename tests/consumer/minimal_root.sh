#!/usr/bin/env bash
# A bundle in a minimal Debian: minimal_root.sh <bundle folder> <main.cpp>
# Both compilers of Debian, with every warning an error, by `c++ *.cpp` and by CMake and make, as nobody but dpkg has set it up: no
# DeepGen, no LLVM of ours, no other header or library in reach. The root is made once, with mmdebstrap, of the release that runs
# here, and kept in ~/.cache/deepgen-minimal-root (DEEPGEN_MINIMAL_ROOT). Exit status 77, with the reason: it cannot be made.
set -euo pipefail
bundle=$(realpath "$1") main=$(realpath "$2")
skip() {
  echo "skipped: $*"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "chroot needs root"
. /etc/os-release
[ "${ID:-}" = debian ] || skip "this is ${ID:-no Debian}, and the root would be of another release than its mirrors"
root=${DEEPGEN_MINIMAL_ROOT:-$HOME/.cache/deepgen-minimal-root}/$VERSION_CODENAME
mkdir -p "$(dirname "$root")"
exec 9>"$root.lock"
flock 9
if [ ! -e "$root/.complete" ]; then
  command -v mmdebstrap > /dev/null || skip "mmdebstrap is not installed"
  rm -rf "$root"
  # tmpfs, a mirror out of reach, a container without mknod: then there is no such root here.
  if ! timeout 400 mmdebstrap --quiet --mode=root --variant=apt --include=g++,clang,cmake,make "$VERSION_CODENAME" "$root" \
    > "$root.log" 2>&1; then
    rm -rf "$root"
    skip "mmdebstrap failed: $(grep -m1 '^E:' "$root.log" || tail -n1 "$root.log")"
  fi
  rm -rf "$root"/usr/share/{doc,man,locale,info} "$root"/var/cache/apt/*
  touch "$root/.complete"
fi

work=$(mktemp -d "$root/tmp/bundle-XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r "$bundle" "$work/kernels"
cp "$main" "$work/main.cpp"
cat > "$work/CMakeLists.txt" << 'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(app CXX)
add_subdirectory(kernels)
add_executable(app main.cpp)
target_link_libraries(app PRIVATE kernels::kernels)
CMAKE
cat > "$work/build.sh" << 'BUILD'
set -eu
cd "$1"
for compiler in g++ clang++; do
  $compiler --version | head -n 1
  strict="-std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror"
  $compiler $strict kernels/*.cpp -Ikernels main.cpp -o plain -pthread -ldl
  ./plain
  cmake -S . -B by_$compiler -DCMAKE_CXX_COMPILER=$compiler -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror" > cmake.log
  cmake --build by_$compiler > build.log || { cat build.log; exit 1; }
  by_$compiler/app
done
BUILD
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C chroot "$root" sh "/tmp/$(basename "$work")/build.sh" "/tmp/$(basename "$work")"
echo "built and run in a Debian $VERSION_CODENAME of $(chroot "$root" dpkg-query -f '.\n' -W | wc -l) packages"
