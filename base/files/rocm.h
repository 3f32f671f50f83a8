// Libraries of ROCm, found as a program finds them: the folder of HIP's library goes first, as another ROCm's
// would open another HIP, to which streams and memory of this one are nothing.
#pragma once

#include "base/files/library.h"

#include <dlfcn.h>
#include <initializer_list>
#include <string>

namespace deepgen::rocm {

inline constexpr std::initializer_list<const char*> hipblaslt = {"libhipblaslt.so", "libhipblaslt.so.1",
                                                                 "libhipblaslt.so.0"};
inline constexpr std::initializer_list<const char*> rocblas = {"librocblas.so", "librocblas.so.5",
                                                               "librocblas.so.4", "librocblas.so.3"};

inline constexpr std::initializer_list<const char*> smi = {"librocm_smi64.so", "librocm_smi64.so.7",
                                                           "librocm_smi64.so.6", "librocm_smi64.so.5"};

/// Where a library may be. `in_hip`: the address of something in HIP's.
inline std::vector<std::string> paths(const void* in_hip, std::initializer_list<const char*> names) {
  Dl_info place = {};
  std::string folder;
  if (in_hip && dladdr(in_hip, &place) && place.dli_fname) folder = place.dli_fname;
  folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/') + 1);
  std::vector<std::string> all;
  for (const std::string& where : {folder, std::string(), std::string("/opt/rocm/lib/")})
    for (const char* name : names) all.push_back(where + name);
  return all;
}
/// Throws as open_library().
inline OpenedLibrary open(const void* in_hip, std::initializer_list<const char*> names) {
  return open_library(paths(in_hip, names));
}

} // namespace deepgen::rocm
