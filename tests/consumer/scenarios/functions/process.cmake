# The library as a guest: static constructors, destructors of threads, fork(), signal handlers, other floating-point states,
# guard pages, operands that a handler brings in, libraries that come and go, threads of the application.
configure(process build)
build(build)
run(build/app)
expect("all held")
