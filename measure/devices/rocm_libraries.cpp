#include "measure/devices/rocm_libraries.h"

#include "base/files/rocm.h"
#include "base/text/error.h"
#include "runtime/amd/hip_driver.h"

#include <dlfcn.h>

namespace deepgen {
namespace {

/// For lack of memory too it is only said.
OpenedLibrary look_for(const std::vector<std::string>& names) {
  try {
    return open_library(names);
  } catch (const HostFault& e) {
    return {nullptr, e.what()};
  }
}

const void* in_hip() { return reinterpret_cast<const void*>(amd::driver()->launch); }

std::string hip() {
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(amd::library(), "hipRuntimeGetVersion"));
  int version = 0;
  const bool known = ask && ask(&version) == 0;
  Dl_info place = {};
  dladdr(in_hip(), &place);
  return std::string(place.dli_fname ? place.dli_fname : "libamdhip64.so") +
         (known ? ", " + std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100)
                : "");
}

/// The file that has `symbol`, a call that measurements need.
LibraryFound found(const char* name, std::initializer_list<const char*> files, const char* symbol,
                   const char* remedy) {
  const OpenedLibrary library = look_for(rocm::paths(in_hip(), files));
  void* call = library ? dlsym(library.handle, symbol) : nullptr;
  Dl_info place = {};
  if (call) dladdr(call, &place);
  return {name, place.dli_fname ? place.dli_fname : library.absence(remedy)};
}

} // namespace

std::vector<LibraryFound> rocm_libraries() {
  if (!amd::driver())
    return {{"ROCm HIP", "not found: install ROCm 5.2 or later, or set LD_LIBRARY_PATH where libamdhip64.so "
                         "is; only tuning and running kernels on AMD GPUs needs it"}};
  return {
      {"ROCm HIP", hip()},
      found("hipBLASLt", rocm::hipblaslt, "hipblasLtMatmul",
            "not found: install hipblaslt of ROCm 6.1 or later; the vendor baseline of searches on AMD GPUs"),
      found("rocBLAS", rocm::rocblas, "rocblas_gemm_strided_batched_ex",
            "not found: install rocblas; the vendor baseline for f64, and on chips that hipBLASLt does not "
            "serve"),
      found("ROCm SMI", rocm::smi, "rsmi_dev_gpu_metrics_info_get",
            "not found: install rocm-smi-lib; without it measurements do not know the clock, throttling, and "
            "who else computes")};
}

} // namespace deepgen
