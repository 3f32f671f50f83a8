# Without a lock, a plain build searches, links the winner and leaves the source folder alone.
configure(basic build)
build(build)
expect("Measuring kernels" "Playoff kernels")
run(build/app)
expect(ok)
expect_no_file(basic/deepgen.lock.json)
