#!/usr/bin/env bash
# The whole flow of the package with its example cuda_ffn, checked at every step. Exits with 1 at the first thing that is wrong.
#   scripts/gpu/gpu-flow.sh PACKAGE.tgz OUTDIR            on a GPU host: search, run, tune, build from the lock, build frozen
#   scripts/gpu/gpu-flow.sh --frozen PACKAGE.tgz OUTDIR   on a host without a GPU: the same kernels from OUTDIR's lock?
# Needs cmake, ninja, a C++ compiler and the CUDA Toolkit; the second form the ptxas of the first. OUTDIR gets the lock,
# the SHA-256 of every kernel in the library, the log, and an archive of the records; --frozen only reads there.
# From the environment: DEEPGEN_ARCHS, DEEPGEN_SLOTS (as in CMake), DEEPGEN_MEASURE_SECONDS.
set -euo pipefail
export DEEPGEN_CACHE=off # everything is made and measured anew
mode=gpu
if [ "${1:-}" = --frozen ]; then
  mode=frozen
  shift
fi
if [ $# -ne 2 ] || [ ! -f "$1" ]; then
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
fi
package=$(realpath "$1")
[ $mode = frozen ] || mkdir -p "$2"
out=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
start=$SECONDS

say() { printf '%4d s  %s\n' $((SECONDS - start)) "$*" | cut -c1-198 | tee -a transcript; }
quote() { cut -c1-189 | sed 's/^/        | /' | tee -a transcript; }
save() { [ $mode = frozen ] || { cp transcript "$out/transcript.txt" && cat ./*.log >"$out/log.txt"; }; }
fail() { # <what> [<log>]
  say "FAILED: $1"
  [ -z "${2:-}" ] || tail -n 25 "$2" | quote
  save
  exit 1
}
run() { # <log> <command>...: its output goes to the log alone
  local log=$1
  shift
  "$@" >"$log" 2>&1 || fail "$*" "$log"
}
configure() { # <build folder> <option>...
  local folder=$1
  shift
  run "$folder-configure.log" cmake -G Ninja -S cuda_ffn -B "$folder" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$prefix" ${DEEPGEN_ARCHS:+"-DDEEPGEN_ARCHS=$DEEPGEN_ARCHS"} \
    ${DEEPGEN_SLOTS:+"-DDEEPGEN_SLOTS=$DEEPGEN_SLOTS"} "$@"
}
execute() { # <build folder>: the program checks its own results
  run "$1-run.log" "$1/cuda_ffn"
  grep -q 'All results agree' "$1-run.log" || fail "$1/cuda_ffn does not agree" "$1-run.log"
  quote <"$1-run.log"
}
never() { ! grep -E "$1" "$2" >never.txt || fail "$3: $(head -n 1 never.txt)"; } # <pattern> <log> <what it means>
sums() { # <build folder>: a line for each cubin that the static library holds, then for what it was compiled from
  local object=$1/kernels.o section
  ar p "$1/libffn_kernels.a" >"$object"
  for section in $(objdump -h "$object" | awk '$2 ~ /_cubin$/ {print $2}'); do
    objcopy -O binary --only-section="$section" "$object" cubin
    echo "$(sha256sum <cubin | cut -c1-64)  ${section#.rodata.deepgen_}"
  done
  (cd "$1/_deepgen/ffn_kernels" && sha256sum ffn_kernels.cpp)
}
same() { # <file> <file> <what>
  cmp -s "$1" "$2" && return
  diff "$1" "$2" | quote || true
  fail "$3"
}
refuse_without_ptxas() {
  configure no-ptxas-frozen -DDEEPGEN_MODE=frozen
  if DEEPGEN_PTXAS=none cmake --build no-ptxas-frozen >no-ptxas-frozen.log 2>&1; then
    fail "a frozen build without ptxas did not fail"
  fi
  grep -q 'the compiled kernel is not the one that was locked' no-ptxas-frozen.log ||
    fail "a frozen build without ptxas failed with another error" no-ptxas-frozen.log
  say "frozen without ptxas: refused, and says so:"
  grep -m 1 -A 3 'not the one that was locked' no-ptxas-frozen.log | quote
}

tar xzf "$package"
prefix=$(realpath deepgen-*)
cp -r "$prefix/share/doc/deepgen/examples/cuda_ffn" .
rm -f cuda_ffn/deepgen.lock.json
"$prefix/bin/deepgen" doctor >doctor.log 2>&1 || fail "deepgen doctor" doctor.log
grep -E '^(deepgen|CUDA)' doctor.log | quote

if [ $mode = frozen ]; then
  cp "$out/deepgen.lock.json" cuda_ffn
  configure frozen -DDEEPGEN_MODE=frozen
  run frozen.log cmake --build frozen
  never 'Measuring|Playoff|Planning' frozen.log "a frozen build searched"
  sums frozen >kernels.sha256
  quote <kernels.sha256
  same "$out/kernels.sha256" kernels.sha256 "the frozen build gives other kernels than the host that tuned"
  refuse_without_ptxas
  say "OK: $(grep -c _cubin kernels.sha256) cubins and the library's source are those of the host that tuned"
  exit
fi

"$prefix/bin/deepgen-measure" devices --list >devices.log 2>&1
quote <devices.log
grep -q '^sm_' devices.log || fail "no NVIDIA GPU, or no driver" devices.log

configure build
never 'no sm_.* device here' build-configure.log "CMake found no GPU of the example's arch (DEEPGEN_ARCHS=native takes any)"
run build.log cmake --build build
grep -q 'Playoff ffn_kernels' build.log || fail "the first build did not search" build.log
[ ! -e cuda_ffn/deepgen.lock.json ] || fail "a plain build wrote the lock"
sums build >searched.sha256
say "built: searched and linked"
execute build

if ! cmake --build build --target tune >tune.log 2>&1; then
  grep -q 'too much interference' tune.log || fail "tune" tune.log
  say "tune: a playoff was unstable, and is repeated"
  run tune.log cmake --build build --target tune
else
  never 'Measuring|Playoff|Compiling.*/s[0-9]' tune.log "tune repeated what the build had done"
fi
grep -E '^deepgen: |winner:|default|vendor:|candidates:' tune.log | quote
cp cuda_ffn/deepgen.lock.json "$out"
[ "$(grep -c '"problem"' cuda_ffn/deepgen.lock.json)" = 3 ] || fail "the lock has not three entries" cuda_ffn/deepgen.lock.json
say "tuned: three entries in the lock"

run locked.log cmake --build build
run null.log cmake --build build
grep -q 'no work to do' null.log || fail "a second build has work to do" null.log
execute build
sums build >locked.sha256
if ! grep -q 'is repeated' transcript; then
  for sums in searched locked; do grep _cubin $sums.sha256 >$sums.cubins; done
  same searched.cubins locked.cubins "the lock gives other kernels than the search"
fi
say "built from the lock"

configure frozen -DDEEPGEN_MODE=frozen
run frozen.log cmake --build frozen
execute frozen
sums frozen >kernels.sha256
cp kernels.sha256 "$out"
quote <kernels.sha256
same locked.sha256 kernels.sha256 "the frozen build gives other kernels than the lock's"
grep -o '"sha256":"[0-9a-f]*"' cuda_ffn/deepgen.lock.json | cut -d'"' -f4 | while read -r sum; do
  grep -q "^$sum " kernels.sha256 || fail "the library lacks the kernel $sum of the lock"
done
say "built frozen, in another folder: the same library"

refuse_without_ptxas
configure ptx -DDEEPGEN_MODE=lock
run ptx.log env DEEPGEN_PTXAS=none cmake --build ptx
sums ptx >ptx.sha256
never _cubin ptx.sha256 "a build without ptxas has cubins"
execute ptx
say "built without ptxas: the driver compiles the PTX"

tar czf "$out/records.tar.gz" --exclude='s[0-9]*.dgk' -C build/_deepgen ffn_kernels
save
say "OK"
save
