# entry(<library> <function> <arch> <result>): a line of a lock, from the kernels that the build folder `build` has.
function(entry library name arch result)
  file(STRINGS ${WORK}/build/_deepgen/${library}/${name}/${arch}/winner.dgk head LIMIT_COUNT 1)
  file(READ ${WORK}/build/_deepgen/devices/${arch}.json device)
  string(REGEX MATCH "\"problem\":\"[^\"]*\"" problem "${head}") # of the file; of its first kernel: sha256
  string(REGEX MATCH "\"template\":\"[^\"]*\",\"revision\":[0-9]+,\"config\":{[^}]*}" choice "${head}")
  string(REGEX MATCH "\"sha256\":\"[^\"]*\"" sha256 "${head}")
  set(${result} "{${problem},\"arch\":\"${arch}\",\"device\":${device},${choice},${sha256},\"toolchain\":\"${toolchain}\",\"evidence\":{}}" PARENT_SCOPE)
endfunction()
