# tune writes the lock; the next build configures again and builds from it; a fresh build runs only the winners' edges.
configure(basic build)
build(build)
tune(build)
expect("merging winners")
expect_not("Measuring") # the plain build has searched already
expect_file(basic/deepgen.lock.json)
build(build)
expect("Re-running CMake")
expect_not("Measuring")
expect_null_build(build)
file(READ ${WORK}/build/_deepgen/kernels/up/cpu/choice.json output)
expect("\"origin\":\"lock\"")

configure(basic fresh)
build(fresh -v)
expect("compile --choice")
expect_not(${search_edges})
run(fresh/app)
expect(ok)
expect_null_build(fresh)

# One changed entry touches one kernel; the lock's loss brings the search back.
file(REMOVE ${WORK}/basic/deepgen.lock.json)
build(fresh)
expect("Measuring kernels")
expect_null_build(fresh)
