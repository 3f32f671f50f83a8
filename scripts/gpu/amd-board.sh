#!/usr/bin/env bash
# What nobody who wrote the kernels for AMD's GPUs could do: runs them on a board. Verifies random kernels, takes a project
# through search, lock and call, tunes a suite beside hipBLASLt and rocBLAS, and packs what came of it into one file.
#   scripts/gpu/amd-board.sh <folder of deepgen and deepgen-measure> <results>.tar.gz [<step>...]
# Steps: system verify flow suite; all of them, in this order, unless named. About two hours; what is there of an earlier run
# of the suite is kept. Needs ROCm and Python 3.8; for `flow` also CMake, Ninja and a C++ compiler. It sends nothing anywhere.
# Of several GPUs it takes the first; HIP_VISIBLE_DEVICES chooses another one.
# From the environment, for shorter runs: PAIRS (500), VERIFY_OPTIONS, FLOW_OPTIONS, SUITE (a file), SUITE_OPTIONS.
# Exits with 1 when a step failed; the others run all the same, and what there is is packed.
set -uo pipefail
if [ $# -lt 2 ] || [ ! -x "$1/deepgen" ]; then
  sed -n '2,9s/^# //p' "$0" >&2
  exit 2
fi
here=$(dirname "$(realpath "$0")")/../..
bin=$(realpath "$1")
mkdir -p "$(dirname "$2")"
packed=$(realpath "$2")
out=${packed%.tar.gz}
steps=("${@:3}")
[ ${#steps[@]} -gt 0 ] || steps=(system verify flow suite)
mkdir -p "$out"
export DEEPGEN_CACHE=off # everything is made and measured anew

# The first GPU that DeepGen has kernels for, which a processor's own need not be; the other steps see no other one.
arch="" number=""
read -r arch number < <("$bin/deepgen-measure" devices --list | awk '$1 ~ /^gfx[0-9]/ {
    if ($1 ~ /^gfx(906|90a|942|950|1100|1201)$/) { print $1, n + 0; exit }
    ++n
  }')
[ -n "${HIP_VISIBLE_DEVICES:-}" ] || export HIP_VISIBLE_DEVICES=$number
if [ -z "$arch" ]; then
  "$bin/deepgen" doctor >&2
  echo "amd-board.sh: no GPU of AMD's that DeepGen has kernels for; see above" >&2
  exit 77
fi

system() {
  "$bin/deepgen" --version
  "$bin/deepgen" --codegen-id
  "$bin/deepgen" doctor
  uname -srm
  cat /sys/module/amdgpu/version /opt/rocm/.info/version 2>/dev/null
  if command -v rocm-smi >/dev/null; then rocm-smi --showproductname --showdriverversion --showmaxpower --showclocks; fi
  true
}
verify() {
  # shellcheck disable=SC2086 # words
  "$here/scripts/gpu/gpu-verify.sh" "$bin" "${PAIRS:-500}" 1 ${VERIFY_OPTIONS:-}
}
flow() {
  local work status
  # shellcheck disable=SC2206 # words
  local options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$(dirname "$bin")" -DARCH="$arch" ${FLOW_OPTIONS:-})
  work=$(mktemp -d)
  cp -r "$here/tests/consumer/projects/hip_search" "$work/project"
  (
    set -e
    cd "$work"
    cmake -G Ninja -S project -B build "${options[@]}"
    cmake --build build --target tune
    cmake --build build
    build/app
    cmake -G Ninja -S project -B frozen "${options[@]}" -DDEEPGEN_MODE=frozen
    cmake --build frozen
    frozen/app
    cp project/deepgen.lock.json "$out/flow.lock.json"
  )
  status=$?
  rm -rf "$work"
  return $status
}
suite() {
  local rows=$here/benchmarks/gpu/suite_radeon.txt
  case $arch in gfx9[045]*) [ "$arch" = gfx906 ] || rows=$here/benchmarks/gpu/suite_cdna.txt ;; esac
  # shellcheck disable=SC2086 # words. Operands are checked on the host, which takes longer than on the device.
  "$here/benchmarks/gpu/run.py" --bin "$bin" -o "$out/suite" --arch "$arch" --suite "${SUITE:-$rows}" --at-once 1 \
    --row-seconds 1200 ${SUITE_OPTIONS:-}
}

failed=()
for step in "${steps[@]}"; do
  case $step in
    system | verify | flow | suite) ;;
    *) echo "amd-board.sh: no step is called '$step'; there are: system verify flow suite" >&2 && exit 2 ;;
  esac
  echo "== $step on $arch; the output goes to $out/$step.txt"
  if "$step" >"$out/$step.txt" 2>&1; then
    grep . "$out/$step.txt" | tail -n 1
  else
    failed+=("$step")
    tail -n 15 "$out/$step.txt"
    echo "FAILED: $step"
  fi
done
tar czf "$packed" --exclude='*.dgk' -C "$(dirname "$out")" "$(basename "$out")"
echo "== packed into $packed; docs/design/amd.md says which numbers to compare"
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]}"
  exit 1
fi
