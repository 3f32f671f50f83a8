#include "runtime/nvidia/cublas_lt.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// One of each major version may live in a process, under a name of its own.
constexpr int oldest = 11, newest = 15;

struct Opened {
  LtLibrary library;
  size_t version; ///< 0: not found yet
};
Opened opened[newest - oldest + 1];

template <typename Entry>
bool find(void* library, const char* name, Entry& entry) {
  entry = reinterpret_cast<Entry>(dlsym(library, name));
  return entry != nullptr;
}

void* open(int major) {
  const char* own = secure_getenv("DEEPGEN_CUBLASLT");
  if (own && *own) return dlopen(own, RTLD_NOW | RTLD_LOCAL);
  char name[] = "/usr/local/cuda/lib64/libcublasLt.so.00";
  name[sizeof name - 3] = char('0' + major / 10), name[sizeof name - 2] = char('0' + major % 10);
  if (void* library = dlopen(std::strrchr(name, '/') + 1, RTLD_NOW | RTLD_LOCAL)) return library;
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/// Results of what the library checks before it enqueues anything: cublasStatus_t.
bool enqueued_nothing(int result) {
  constexpr int not_initialized = 1, out_of_memory = 3, invalid_value = 7, arch_mismatch = 8,
                not_supported = 15;
  return result == not_initialized || result == out_of_memory || result == invalid_value ||
         result == arch_mismatch || result == not_supported;
}

const char* lost_text(int) {
  return "a call of cuBLASLt failed, and may have written a part of D, which it reads";
}

bool load(int major, Opened& o) {
  void* library = open(major); // never closed
  if (!library) return false;
  size_t (*version)() = nullptr;
  LtLibrary& l = o.library;
  l.kind = DEEPGEN_LIBRARY_CUBLASLT, l.number = lt_numbers;
  l.enqueued_nothing = enqueued_nothing, l.lost_text = lost_text;
  bool complete = find(library, "cublasLtGetVersion", version);
  complete &= find(library, "cublasLtCreate", l.create);
  complete &= find(library, "cublasLtMatmulDescCreate", l.desc_create);
  complete &= find(library, "cublasLtMatmulDescSetAttribute", l.desc_set);
  complete &= find(library, "cublasLtMatmulDescDestroy", l.desc_destroy);
  complete &= find(library, "cublasLtMatrixLayoutCreate", l.layout_create);
  complete &= find(library, "cublasLtMatrixLayoutSetAttribute", l.layout_set);
  complete &= find(library, "cublasLtMatrixLayoutDestroy", l.layout_destroy);
  complete &= find(library, "cublasLtMatmul", l.matmul);
  if (complete) o.version = version();
  return complete && o.version;
}

} // namespace

Fallback find_lt(const char* version, int ordinal, const LtLibrary*& library, void*& handle) {
  size_t n[3];
  if (!parse_lt_version(version, n) || n[0] < oldest || n[0] > newest) return Fallback::other_version;
  const int major = int(n[0]);
  Opened& o = opened[major - oldest];
  if (!o.version && !load(major, o)) return Fallback::absent;
  // 130100 is 13.1.0, and before 13 120803 was 12.8.3: the measurement reads both alike.
  if (o.version / 10000 != n[0] || o.version / 100 % 100 != n[1] || o.version % 100 != n[2])
    return Fallback::other_version;
  library = &o.library;
  return lt_handle(o.library, ordinal, handle);
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
