#include "measure/vendor/gpu/lt_library.h"

#include "base/files/rocm.h"
#include "runtime/amd/hip_driver.h"
#include "runtime/amd/hipblas_lt.h"
#include "runtime/nvidia/cublas_lt.h"

#include <dlfcn.h>

namespace deepgen::cuda {
namespace {

constexpr LtLibrary::Numbers kCublasLt = {nvidia::lt_numbers, 5, 7, 8 /* align_... */, 64, false};
constexpr LtLibrary::Numbers kHipblasLt = {amd::lt_numbers, -1, -1, -1, 24, true};
/// Before it, data types had the numbers of hipBLAS: 0.7, of ROCm 6.1.
constexpr int kOldestHipblasLt = 700;

/// cublasLtMatmulAlgoConfigAttributes_t
enum ConfigAttribute { kId = 0, kTile = 1, kSplitK = 2, kStages = 6 };

std::string version_text(const char* name, size_t version, size_t major, size_t minor) {
  return std::string(name) + " " + std::to_string(version / major) + "." +
         std::to_string(version / minor % (major / minor)) + "." + std::to_string(version % minor);
}

template <typename T>
bool find(void* library, T& slot, const std::string& symbol) {
  slot = reinterpret_cast<T>(dlsym(library, symbol.c_str()));
  return slot != nullptr;
}

bool find_calls(void* library, LtLibrary& lt) {
  const std::string p = lt.prefix;
  bool complete = find(library, lt.create, p + "Create");
  complete &= find(library, lt.desc_create, p + "MatmulDescCreate");
  complete &= find(library, lt.desc_set, p + "MatmulDescSetAttribute");
  complete &= find(library, lt.layout_create, p + "MatrixLayoutCreate");
  complete &= find(library, lt.layout_set, p + "MatrixLayoutSetAttribute");
  complete &= find(library, lt.preference_create, p + "MatmulPreferenceCreate");
  complete &= find(library, lt.preference_set, p + "MatmulPreferenceSetAttribute");
  complete &= find(library, lt.heuristic, p + "MatmulAlgoGetHeuristic");
  complete &= find(library, lt.matmul, p + "Matmul");
  return complete;
}

LtLibrary open_cublas_lt() {
  LtLibrary lt = {};
  lt.name = "cuBLASLt", lt.prefix = "cublasLt", lt.version = "cublaslt", lt.number = kCublasLt;
  const OpenedLibrary found =
      open_library({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                    "/usr/local/cuda/lib64/libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.12"});
  void* library = found.handle;
  size_t (*version)() = nullptr;
  if (!library || !find_calls(library, lt) || !find(library, version, "cublasLtGetVersion") ||
      !find(library, lt.config_get, "cublasLtMatmulAlgoConfigGetAttribute"))
    lt.why_not = found.absence("no cuBLASLt here (libcublasLt.so.13 or .12)");
  else
    lt.version =
        version_text("cublaslt", version(), 10000, 100); // 130100 -> 13.1.0; before 13: 120803 -> 12.8.3
  return lt;
}

LtLibrary open_hipblas_lt() {
  LtLibrary lt = {};
  lt.name = "hipBLASLt", lt.prefix = "hipblasLt", lt.version = "hipblaslt", lt.number = kHipblasLt;
  const amd::Driver* hip = amd::driver();
  const OpenedLibrary found =
      hip ? rocm::open(reinterpret_cast<const void*>(hip->launch), rocm::hipblaslt) : OpenedLibrary();
  void* library = found.handle;
  int (*version)(void*, int*) = nullptr;
  if (!library || !find_calls(library, lt) || !find(library, version, "hipblasLtGetVersion")) {
    lt.why_not = found.absence("no hipBLASLt here (libhipblaslt.so of ROCm 6.1 or later)");
    return lt;
  }
  void* handle = nullptr;
  int number = 0;
  if (lt.create(&handle) != 0 || version(handle, &number) != 0)
    lt.why_not = "hipBLASLt does not start on this device";
  else if (lt.version = version_text("hipblaslt", size_t(number), 100000, 100); number < kOldestHipblasLt)
    lt.why_not = lt.version + " is too old: 0.7, of ROCm 6.1, or later";
  return lt;
}

} // namespace

const LtLibrary& LtLibrary::of_platform() {
  if (platform() == Platform::hip) {
    static const LtLibrary library = open_hipblas_lt();
    return library;
  }
  static const LtLibrary library = open_cublas_lt();
  return library;
}

int LtLibrary::compute_type(Type input, bool tf32_as_f32) const {
  switch (input) {
  case Type::f64:
    return number.f64;
  case Type::tf32:
    return tf32_as_f32 ? number.f32 : number.tf32;
  case Type::i8:
    return number.i32;
  default:
    return number.f32;
  }
}

std::string LtLibrary::text_of(const AlgorithmBits& algorithm) const {
  if (!config_get) return "";
  std::string text;
  for (auto [name, attribute] :
       {std::pair{"id", kId}, {"tile", kTile}, {"stages", kStages}, {"split-K", kSplitK}}) {
    int32_t value = 0;
    size_t written = 0;
    if (config_get(&algorithm, attribute, &value, sizeof value, &written) == 0)
      text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(value);
  }
  return text;
}

} // namespace deepgen::cuda
