#!/usr/bin/env bash
# Tunes the workload of 200 problems on a GPU within some minutes, by the package alone, and keeps the tables of uplift.
#   scripts/gpu/gpu-workload.sh PACKAGE.tgz OUT [MINUTES [ARCH]]
#   scripts/gpu/gpu-workload.sh deepgen-0.1.0-Linux-x86_64.tar.gz workload-sm_90a 5 sm_90a
# PACKAGE.tgz is the archive of cpack. Needs cmake, ninja, python3, a C++ compiler, and ptxas for NVIDIA's. MINUTES (5) is what all
# searches may measure: the heaviest problems get one, and the others are listed as dropped at the library's time. Compiling
# takes some time besides. OUT gets result.json, raw_results.csv and final_results.csv.
set -euo pipefail
[ $# -ge 2 ] && [ -f "$1" ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$2" "$work/prefix"
tar xzf "$1" -C "$work/prefix" --strip-components=1
export DEEPGEN_CACHE=off # everything is made and measured anew
python3 "$here/../../benchmarks/workload/run.py" --prefix "$work/prefix" --arch "${4:-sm_90a}" --tune "${3:-5}" --tables "$2" \
  -o "$2/result.json"
