// Libraries of ROCm, found as a program finds them: the folder of HIP's library goes first, as another ROCm's
// would open another HIP, to which streams and memory of this one are nothing.
#pragma once

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

/// `in_hip`: the address of something in HIP's library. A handle of dlopen; null when none of the names is
/// found.
inline void* open(const void* in_hip, std::initializer_list<const char*> names) {
  Dl_info place = {};
  std::string folder;
  if (in_hip && dladdr(in_hip, &place) && place.dli_fname) folder = place.dli_fname;
  folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/') + 1);
  for (const std::string& where : {folder, std::string(), std::string("/opt/rocm/lib/")})
    for (const char* name : names)
      if (void* library = dlopen((where + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

} // namespace deepgen::rocm
