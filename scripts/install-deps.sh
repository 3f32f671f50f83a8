#!/usr/bin/env bash
# Installs what building DeepGen needs and this Debian or Ubuntu lacks, and the packages that are named. Does nothing when all is
# there.
set -euo pipefail

packages=(g++ make cmake python3 ninja-build ccache
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools lld-22
  libre2-dev libzstd-dev zlib1g-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev "$@")
optional=(libopenblas0-pthread            # the vendor baseline, loaded at run time when it is there
  libxgboost-dev                         # for the test unit.xgboost: 7 MB more
  chromium                               # for the test report.page: 81 MB more
  clang-22 libclang-rt-22-dev            # for the tests fuzz.*: 16 MB more
  slurm-wlm                              # for the test cluster.slurm: 24 MB more
  openssh-server                         # for the test cluster.ssh: 2 MB more
  mmdebstrap                             # for the test consumer.minimal_root: 1 MB more, and a root of 765 MB in ~/.cache
  clang-format-22                        # for the test unit.format: 1 MB more
  clang-tidy-22)                         # for the tests tidy.*: 11 MB more

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
wanted=()
for package in "${optional[@]}"; do
  installed "$package" || wanted+=("$package")
done
if [ ${#missing[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "install-deps.sh: needs apt-get (Debian 12 or newer); by hand, install: ${missing[*]}" >&2
  exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: not root and no sudo; as root run: apt-get install ${missing[*]} ${wanted[*]}" >&2
    [ ${#missing[@]} -eq 0 ] && exit 0 || exit 1
  fi
  root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -q </dev/null
if [ ${#missing[@]} -gt 0 ]; then
  "${root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null
fi
if [ ${#wanted[@]} -gt 0 ]; then
  "${root[@]}" apt-get install -y -q --no-install-recommends "${wanted[@]}" </dev/null ||
    echo "install-deps.sh: going on without: ${wanted[*]}" >&2
fi
