// Where tests find the project's files and what the build has made. A source of its own has the values, which CMake writes for
// each program (deepgen_paths()): as definitions of the compiler, they made every checkout compile these tests anew.
#pragma once

#include <string>

namespace deepgen::paths {

extern const char *const source, ///< the project's folder
    *const verdicts, *const measure, *const fake_driver_folder, *const fake_openblas, *const fake_cuda,
    *const fake_cublaslt, *const fake_cudnn, *const fake_hip, *const fake_hip_rocm5,
    *const linked_code_object, ///< "none" where this build makes none
    *const library_1, *const library_2, *const library_3, *const library_5, *const library_1_refused;

/// A file of the project.
inline std::string in_source(const std::string& path) { return source + ("/" + path); }

} // namespace deepgen::paths
