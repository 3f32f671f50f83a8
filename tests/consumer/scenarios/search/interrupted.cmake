# Ctrl-C in the middle of a search: nothing half-written stays, and the next build goes on where it stopped.
configure(basic build)
file(WRITE ${WORK}/interrupt.sh [[
set -m # own process group, as a shell gives a foreground job; without it a background job ignores SIGINT
ninja -C build -j1 > first.log 2>&1 &
job=$!
for i in $(seq 600); do
  [ "$(find build/_deepgen -name '*.dgk' | wc -l)" -ge 3 ] && break
  sleep 0.05
done
kill -INT -- -$job
wait $job && exit 1 # must not have finished
cat first.log
find build/_deepgen -name '*.dgk' -printf '%T@ %i %p\n' | sort > before.txt
]])
find_program(bash bash REQUIRED)
run(${bash} interrupt.sh)
expect("interrupted by user")
expect_no_file(build/app)
file(STRINGS ${WORK}/before.txt before)
list(LENGTH before done)
# Of the three, Ninja deletes the one whose edge has written it but not ended yet: its edges must be atomic.
if(done LESS 2)
  message(FATAL_ERROR "only ${done} kernels were there when the build was interrupted")
endif()
build(build)
run(build/app)
expect(ok)
# Kernels that were finished were not compiled again: same time stamp, same inode.
run(find build/_deepgen -name *.dgk -printf "%T@ %i %p\\n")
foreach(line IN LISTS before)
  expect("${line}")
endforeach()
run(find build/_deepgen -name *.tmp*)
if(NOT output STREQUAL "")
  message(FATAL_ERROR "temporary files are left: ${output}")
endif()
