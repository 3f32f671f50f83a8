# Read by ctest: no test finds what the user's builds have left, or what another test has.
set(ENV{DEEPGEN_CACHE} off)
