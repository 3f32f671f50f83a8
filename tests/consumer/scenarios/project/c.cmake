# A C program calls the C functions of a tuned library.
configure(c build)
build(build)
run(build/app)
expect("ok, tuned")
expect_null_build(build)
