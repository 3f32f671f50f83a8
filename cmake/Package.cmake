# Installation, the CMake package, and the archive that CPack makes of them. All of it is relocatable.
if(NOT DEEPGEN_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/DeepGen)
set(_targets deepgen_runtime)
if(DEEPGEN_BUILD_TOOLS)
  list(APPEND _targets deepgen deepgen-measure)
endif()
install(TARGETS ${_targets} EXPORT DeepGenTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/deepgen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT DeepGenTargets NAMESPACE DeepGen:: DESTINATION ${_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/DeepGenConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/DeepGenConfig.cmake INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/DeepGenConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/DeepGenConfig.cmake ${PROJECT_BINARY_DIR}/package/DeepGenConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGen.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenWords.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenPoints.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenProblem.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenRows.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenFind.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenAttention.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenDevices.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenSites.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenSearch.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenLibrary.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenGraph.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenTune.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenVendored.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenBundle.cmake
  ${PROJECT_SOURCE_DIR}/cmake/DeepGenWorkload.cmake ${PROJECT_SOURCE_DIR}/cmake/DeepGenMlir.cmake
  ${PROJECT_SOURCE_DIR}/runtime/include/deepgen/epilogue_steps.h DESTINATION ${_package})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/library/CMakeLists.txt ${PROJECT_SOURCE_DIR}/cmake/library/find.h.in ${PROJECT_SOURCE_DIR}/cmake/library/find.cpp.in DESTINATION ${_package}/library)
if(EXISTS ${PROJECT_SOURCE_DIR}/LICENSE)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/deepgen)
endif()
if(DEEPGEN_BUILD_TOOLS) # Chart.js is in `deepgen` and in the pages that it writes
  install(FILES ${PROJECT_SOURCE_DIR}/generator/page/chart.LICENSE.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/deepgen)
endif()

if(PROJECT_IS_TOP_LEVEL)
  # As they lie in the source tree, so that their links hold.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/deepgen PATTERN build EXCLUDE)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/deepgen)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_PACKAGE_NAME deepgen)
  set(CPACK_PACKAGE_VENDOR DeepGen)
  set(CPACK_PACKAGE_FILE_NAME deepgen-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
  set(CPACK_SOURCE_GENERATOR "")
  set(CPACK_STRIP_FILES ON)
  include(CPack)
endif()
