# Functions of a workload found at run time, GEMMs and rows, from C99 and C++17.
run(${PREFIX}/bin/deepgen import find/calls.csv -o find/workload.json)
configure(find build -DDEEPGEN_MODE=lock)
build(build)
run(build/app)
expect("ok")
run(build/typed)
expect("ok")
expect_null_build(build)
