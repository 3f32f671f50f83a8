#!/usr/bin/env bash
# scripts/sweep.sh on the CPU: stopped, continued, packed and replayed. sweep_test.sh SWEEP.SH FOLDER_OF_THE_TOOLS
set -euo pipefail
sweep=$1 bin=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export DEEPGEN_MEASURE_SECONDS=1 XDG_RUNTIME_DIR=$work # a turn of its own: nothing here depends on a time
fail() { echo "sweep_test: $1" >&2; cat log >&2; exit 1; }
key="gemm m=16 n=16 k=16 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4"
run() { status=0; "$sweep" "$bin" "$key" cpu sweep out.space.zst --include 'mr=1[34] .*pack=0 .*prefetch=0' --again 1 "$@" >log 2>&1 || status=$?; }

run --seconds 0
[ $status = 3 ] || fail "no time at all is no success"
grep -q "plans left; the same command goes on" log || fail "it does not say what is left"
[ ! -e out.space.zst ] || fail "there was nothing to pack"
run
[ $status = 0 ] || fail "it does not go on"
[ -e sweep/r0000/records.jsonl ] && [ -e sweep/r2000/records.jsonl ] || fail "a pass is missing"
planned=$(cut -d' ' -f1 sweep/planned)
"$bin/deepgen" replay out.space.zst --seeds 1 --json >log || fail "replay"
grep -q "\"complete\":true,\"configs\":$planned," log || fail "the space is not complete"

"$bin/deepgen" sweep pack --problem "$key" --device sweep/device.json --records sweep/r*/records.jsonl --planned $((planned + 1)) -o part.zst >log
if "$bin/deepgen" replay part.zst --seeds 1 >log 2>&1; then fail "replay takes a part of a space"; fi
grep -q -- "--incomplete" log || fail "it does not say what to do"
"$bin/deepgen" replay part.zst --seeds 1 --incomplete >log || fail "replay --incomplete"
grep -q "the sweep is not complete" log || fail "replay does not say that it is a part"

# What a search cannot do is said, with a remedy.
if "$bin/deepgen" replay out.space.zst --slots 0 >log 2>&1; then fail "rounds of no slots are no error"; fi
example=$("$bin/deepgen" replay --help | sed -n "s/.*deepgen replay \([^ ]*\.space\.zst\).*/\1/p")
"$bin/deepgen" replay "$(dirname "$sweep")/../$example" --seeds 1 >log 2>&1 || fail "the example of replay --help: $example"
echo "{\"schema\":\"deepgen.search/1\",\"space\":\"gone.json\"}" >search.json
for missing in "--search gone.json" "--search search.json"; do
  if "$bin/deepgen" space list --problem "$key" --device sweep/device.json $missing >log 2>&1; then fail "$missing"; fi
  grep -q "gone.json" log && grep -q "remedy:" log || fail "no remedy: $missing"
done
if "$bin/deepgen" report --records gone.jsonl >log 2>&1; then fail "report of nothing"; fi
grep -q "remedy:" log || fail "no remedy: report"

run --records
[ $status = 2 ] || fail "a bad option is no error"
