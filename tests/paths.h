// Where tests find the project's files and what the build has made. A source of its own has the values, which
// CMake writes for each program (deepgen_test_paths()): as definitions of the compiler, they made every
// checkout compile these tests anew.
#pragma once

#include <string>

namespace deepgen::paths {

extern const char* const source; ///< the project's folder
extern const char* const verdicts;
extern const char* const measure; ///< deepgen-measure
extern const char* const fake_driver_folder;
extern const char* const fake_openblas;
extern const char* const fake_cuda;
extern const char* const fake_cublaslt;
extern const char* const fake_cudnn;
extern const char* const fake_hip;
extern const char* const fake_hip_rocm5;
extern const char* const linked_code_object; ///< "none" where this build makes none
extern const char* const library_1;          // of tests/abi
extern const char* const library_1_refused;
extern const char* const library_2;
extern const char* const library_3;
extern const char* const library_5;

/// A file of the project.
inline std::string in_source(const std::string& path) { return source + ("/" + path); }

} // namespace deepgen::paths
