# <target>.bundle: the library as plain sources that need no DeepGen, in <target>-bundle of the binary directory.
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)

# Reads the variables of _deepgen_library_edges.
function(_deepgen_bundle_target)
  set(version 1.0.0)
  if(PROJECT_VERSION MATCHES "^[0-9]+(\\.[0-9]+)*$")
    set(version ${PROJECT_VERSION})
  endif()
  set(also "")
  if(EXISTS ${folder}/include/${target}_find.h) # of a workload
    set(also --also include/${target}_find.h)
  endif()
  add_custom_target(${target}.bundle
    COMMAND ${tool} bundle --target ${target} --version ${version} ${also} ${locked_by} -o ${CMAKE_CURRENT_BINARY_DIR}/${target}-bundle
      ${embed_args}
    DEPENDS ${problems} ${winners} ${shared}/codegen.id WORKING_DIRECTORY ${folder} VERBATIM
    COMMENT "DeepGen: ${target}: writing ${CMAKE_CURRENT_BINARY_DIR}/${target}-bundle")
  add_dependencies(${target}.bundle deepgen.setup)
  set_target_properties(${target}.bundle PROPERTIES FOLDER DeepGen)
endfunction()
