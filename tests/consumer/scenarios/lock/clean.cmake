# `ninja clean` keeps the lock, and the build after it needs no search.
make_lock()
build(tuning --target clean)
expect_file(basic/deepgen.lock.json)
build(tuning -v)
expect_not(${search_edges})
run(tuning/app)
expect(ok)
