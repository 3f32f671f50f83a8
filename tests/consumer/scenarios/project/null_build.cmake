# A second build does nothing; an absent lock does not make it configure again; neither does a reconfigure rebuild.
configure(basic build)
build(build)
expect_null_build(build)
expect_null_build(build)
expect_no_file(basic/deepgen.lock.json)
configure(basic build)
expect_null_build(build)
