# DeepGen as a folder of the project, with a prebuilt tool: its own tests stay off and LLVM is not looked for.
configure(basic build -DHOW=subdirectory -DDEEPGEN_SOURCE=${DEEPGEN_SOURCE} -DDEEPGEN_EXECUTABLE=${PREFIX}/bin/deepgen
  -DDEEPGEN_INSTALL=ON -DDEEPGEN_LLVM_CONFIG=/nonexistent)
build(build)
run(build/app)
expect(ok)
expect_null_build(build)
expect_no_file(build/deepgen/tests)
