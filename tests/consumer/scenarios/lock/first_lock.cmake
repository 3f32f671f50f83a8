# A lock that appears later, as it does with a pull, is seen without configuring by hand, however old the file is.
make_lock()
file(RENAME ${WORK}/basic/deepgen.lock.json ${WORK}/pulled.json)
run(touch -d 2020-01-01 pulled.json) # older than everything in the build folders

macro(expect_origin folder origin)
  file(READ ${WORK}/${folder}/_deepgen/kernels/up/cpu/choice.json output)
  expect("\"origin\":\"${origin}\"")
endmacro()
configure(basic locked -DDEEPGEN_MODE=lock)
build(locked)
expect_origin(locked default)
expect_null_build(locked)
configure(basic frozen -DDEEPGEN_MODE=frozen)
run_failing(${CMAKE_COMMAND} --build frozen)
expect("basic/deepgen.lock.json")

file(RENAME ${WORK}/pulled.json ${WORK}/basic/deepgen.lock.json)
foreach(folder locked frozen)
  build(${folder} -v)
  expect("GLOB mismatch" "deepgen select" "compile --choice")
  expect_not(${search_edges})
  expect_origin(${folder} lock)
  run(${folder}/app)
  expect(ok)
  # It is a plain dependency from now on: nothing is left that looks for it.
  expect_null_build(${folder})
  expect_not("Re-checking globbed")
endforeach()

# Lost again, then back.
file(RENAME ${WORK}/basic/deepgen.lock.json ${WORK}/pulled.json)
build(locked)
expect_origin(locked default)
expect_null_build(locked)
file(RENAME ${WORK}/pulled.json ${WORK}/basic/deepgen.lock.json)
build(locked)
expect_origin(locked lock)
expect_null_build(locked)
