# cmake -DOUTPUT=f -DNAME=n -DSOURCES="a;b" -P CodegenHash.cmake: a header that defines n as one hash over the sources, in
# the given order. Rewritten only on change.
set(hashes "")
foreach(source IN LISTS SOURCES)
  file(SHA256 ${source} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "static constexpr const char* ${NAME} = \"${hash}\";\n" @ONLY)
