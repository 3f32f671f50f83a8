# FetchContent from a local folder, with a prebuilt tool.
configure(basic build -DHOW=fetchcontent -DDEEPGEN_SOURCE=${DEEPGEN_SOURCE} -DDEEPGEN_EXECUTABLE=${PREFIX}/bin/deepgen
  -DDEEPGEN_INSTALL=ON)
build(build)
run(build/app)
expect(ok)
expect_null_build(build)
