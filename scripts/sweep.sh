#!/usr/bin/env bash
# Records a whole space: every legal config of a problem is compiled, verified and timed, the fastest ones again, and all
# of it is packed into one file for `deepgen replay`.
#   scripts/sweep.sh <folder of deepgen and deepgen-measure> <problem key> <arch> <work folder> <out.space.zst> [<option>...]
#     --include RE, --exclude RE  on a config's text: only these configs (a space of 3000 takes minutes on a GPU host)
#     --seconds N   wall time after which it stops; the same command goes on later, as the work folder has what is done
#     --jobs N      compilers at a time (default: all processors but one; on the CPU 1, as compiling disturbs the timing)
#     --chunk N     configs of one measurement (default 32): more of them share its start
#     --again N     how often the fastest are timed again (default 2), --within R: up to so much slower (default 0.05)
# Needs nothing but the two programs and, for NVIDIA GPUs, ptxas. Exits with 3 when time was short: what there is so far is
# packed all the same, and the file says that it is not complete.
set -euo pipefail
export DEEPGEN_CACHE=off # a space is measured, not remembered; what is timed again is timed
[ $# -ge 5 ] || { sed -n '2,12s/^# //p' "$0" >&2; exit 2; }
bin=$(realpath "$1") key=$2 arch=$3 work=$4 out=$5
shift 5
filter=() seconds=1000000 again=2 within=0.05 chunk=32 jobs=$(($(nproc) > 1 ? $(nproc) - 1 : 1)) # one enqueues
brief=--no-awkward # as the rounds of a search on a GPU
[ "$arch" != cpu ] || jobs=1 brief=
while [ $# -ge 2 ]; do
  case $1 in
    --include | --exclude) filter+=("$1" "$2") ;;
    --seconds) seconds=$2 ;;
    --jobs) jobs=$2 ;;
    --again) again=$2 ;;
    --chunk) chunk=$2 ;;
    --within) within=$2 ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ $# -eq 0 ] || { echo "option $1 has no value" >&2; exit 2; }
mkdir -p "$work" "$(dirname "$out")"
case $arch in sm_*)
  { "$bin/deepgen" doctor 2>&1 || true; } | grep '^CUDA ptxas .*, ptxas [0-9]' >&2 ||
    echo "no ptxas here: the driver compiles every kernel, and what spills is timed too; set DEEPGEN_PTXAS" >&2 ;;
esac
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
device=$work/device.json
[ -e "$device" ] || "$bin/deepgen-measure" devices --arch "$arch" -o "$device"
target=(--problem "$key" --arch "$arch" --device "$device")

compile() { # <folder of a plan>
  [ ! -e "$1/records.jsonl" ] || return 0
  seq 0 $((chunk - 1)) | while read -r slot; do
    file=$(printf '%s/s%02d.dgk' "$1" "$slot")
    [ -e "$file" ] || printf '%s\0%s\0' "$slot" "$file"
  done | xargs -0 -r -n 2 -P "$jobs" nice sh -c '"$0" compile --plan "$1/plan.json" --slot "$3" $2 -o "$4"' "$bin/deepgen" "$1" "$brief"
}
measure() { # <folder of a plan>
  local anchor=()
  [ "$1" = "$work/r0000" ] || anchor=(--anchor "$work/r0000/s00.dgk")
  "$bin/deepgen-measure" run --plan "$1/plan.json" --kernels "$1" --slots $chunk --device "$device" --seconds 120 \
    "${anchor[@]}" -o "$1/records.jsonl"
  find "$1" -name 's*.dgk' ! -path "$work/r0000/s00.dgk" -delete
}
pack() {
  "$bin/deepgen" sweep pack "${target[@]}" --records "$work"/r*/records.jsonl --planned "$(cut -d' ' -f1 "$work/planned")" -o "$out"
}
plan() { # <file that says it was done> <option>...
  local stamp=$1
  shift
  [ ! -e "$stamp" ] || return 0
  "$bin/deepgen" sweep plan "${target[@]}" --chunk $chunk -o "$work" "$@" >"$stamp.new"
  mv "$stamp.new" "$stamp"
}
record() { # <folder of a plan>...
  while [ $# -gt 0 ]; do
    if [ $SECONDS -ge "$seconds" ]; then
      if [ -e "$work/r0000/records.jsonl" ]; then pack; fi
      echo "stopped after $SECONDS s with $# plans left; the same command goes on" >&2
      exit 3
    fi
    compile "$1"
    local next=
    if [ "$arch" != cpu ] && [ $# -ge 2 ]; then # beside the timing, which a GPU does not feel
      compile "$2" &
      next=$!
    fi
    [ -e "$1/records.jsonl" ] || measure "$1"
    [ -z "$next" ] || wait "$next"
    shift
  done
}

plan "$work/planned" "${filter[@]}"
cat "$work/planned"
[ ! -e "$work/r1000" ] || [ -e "$work/planned1" ] || { echo "more than 32000 configs: choose some by --include" >&2; exit 2; }
record "$work"/r0*
for pass in $(seq "$again"); do # of thousands of times the best is the luckiest
  plan "$work/planned$pass" --again "$work"/r*/records.jsonl --within "$within" --first "$((pass * 1000 + 1000))"
  record "$work"/r$((pass + 1))*
done
pack
