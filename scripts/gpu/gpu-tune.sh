# Searches of one problem after another on the attached GPU, without a build: sourced by scripts that compare the winners.
# They set prefix, out, slots, rounds, seconds and target; SEARCH=f.json is a search file. This sets bin, measure, arch, search and
# failed, makes out with device.json, and exits with 77 without a GPU.
bin=$prefix
[ ! -x "$prefix/bin/deepgen" ] || bin=$prefix/bin
bin=$(realpath "$bin") measure=$bin/deepgen-measure
search=${SEARCH:+$(realpath "$SEARCH")}
export LC_ALL=C PATH=$PATH:/usr/local/cuda/bin DEEPGEN_CACHE=off

arch=$("$measure" devices --list | awk '$1 ~ /^(sm_|gfx)[0-9]/ { print $1; exit }')
case $arch in
  sm_90) arch=sm_90a ;;
  "") echo "skipped: no GPU here" && exit 77 ;;
esac
mkdir -p "$out"
out=$(realpath "$out")
"$measure" devices --arch "$arch" -o "$out/device.json" > /dev/null
failed=0

# <folder> <round>: compiles its candidates, on all cores
compile() {
  local plan=$1/r$2/plan.json
  seq 0 $((slots - 1)) | xargs -P "$(nproc)" -I{} sh -c \
    'exec "$0" compile --plan "$1" --slot {} --timeout 120 -o "$(printf "%s/s%02d.dgk" "$(dirname "$1")" {})"' \
    "$bin/deepgen" "$plan" > "$1/r$2/compile.log" 2>&1 || { tail -n 3 "$1/r$2/compile.log"; return 1; }
}

# <folder> <key>: rounds of a search, and the playoff
tune() {
  local folder=$1 records=() round
  mkdir -p "$folder"
  printf '{"schema":"deepgen.problem/1","target":"%s","name":"f","namespace":"%s","problem":"%s","untuned":false}\n' "$target" "$target" "$2" > "$folder/problem.json"
  for ((round = 0; round < rounds; ++round)); do
    mkdir -p "$folder/r$round"
    "$bin/deepgen" plan --problem "$folder/problem.json" --arch "$arch" --device "$out/device.json" --round $round \
      --slots "$slots" ${search:+--search "$search"} ${records:+--records "${records[@]}"} -o "$folder/r$round/plan.json"
    compile "$folder" $round || return 1
    "$measure" run --plan "$folder/r$round/plan.json" --kernels "$folder/r$round" --slots "$slots" \
      --device "$out/device.json" ${records:+--anchor "$folder/r0/s00.dgk" --records "${records[@]}"} \
      --seconds "$seconds" -o "$folder/r$round/records.jsonl" || return 1
    records+=("$folder/r$round/records.jsonl")
  done
  "$measure" playoff --device "$out/device.json" --records "${records[@]}" --no-vendor --seconds "$seconds" \
    -o "$folder/final.jsonl"
}
