# A hardened program: neither the generated library nor the installed runtime takes its branch tracking or its shadow stack away,
# as any object without the notes would. The C library's start-up files may; they are not ours.
configure(basic build -DDEEPGEN_MODE=lock "-DCMAKE_CXX_FLAGS=-fcf-protection=full -fstack-protector-strong"
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON "-DCMAKE_EXE_LINKER_FLAGS=-pie -Wl,-z,relro,-z,now,-z,cet-report=warning")
build(build)
expect_not("libkernels.a(" "libdeepgen_runtime.a(")
run(build/app)
file(GLOB_RECURSE runtime ${PREFIX}/*/libdeepgen_runtime.a)
run(${HARDENING} library build/libkernels.a)
run(${HARDENING} runtime ${runtime})
