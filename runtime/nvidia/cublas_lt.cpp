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

struct Handle {
  int major, ordinal;
  void* handle;
  Handle* next;
};
Handle* handles = nullptr; ///< for as long as the process runs

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

bool load(int major, Opened& o) {
  void* library = open(major); // never closed
  if (!library) return false;
  size_t (*version)() = nullptr;
  LtLibrary& l = o.library;
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

/// "13.1.0", or false.
bool parse(const char* text, size_t (&numbers)[3]) {
  for (int i = 0; i < 3; ++i) {
    if (*text < '0' || *text > '9') return false;
    for (numbers[i] = 0; *text >= '0' && *text <= '9' && numbers[i] < 10000; ++text)
      numbers[i] = numbers[i] * 10 + size_t(*text - '0');
    if (*text != (i < 2 ? '.' : '\0')) return false;
    ++text;
  }
  return true;
}

Fallback handle_of(const LtLibrary& l, int major, int ordinal, void*& handle) {
  for (const Handle* h = handles; h; h = h->next)
    if (h->major == major && h->ordinal == ordinal) {
      handle = h->handle;
      return Fallback::runs;
    }
  auto* made = static_cast<Handle*>(std::malloc(sizeof(Handle)));
  if (!made || l.create(&handle) != 0) {
    std::free(made);
    return Fallback::refused;
  }
  *made = {major, ordinal, handle, handles};
  handles = made;
  return Fallback::runs;
}

} // namespace

Fallback find_lt(const char* version, int ordinal, const LtLibrary*& library, void*& handle) {
  size_t n[3];
  if (!parse(version, n) || n[0] < oldest || n[0] > newest) return Fallback::other_version;
  const int major = int(n[0]);
  Opened& o = opened[major - oldest];
  if (!o.version && !load(major, o)) return Fallback::absent;
  // 130100 is 13.1.0, and before 13 120803 was 12.8.3: the measurement reads both alike.
  if (o.version / 10000 != n[0] || o.version / 100 % 100 != n[1] || o.version % 100 != n[2])
    return Fallback::other_version;
  library = &o.library;
  return handle_of(o.library, major, ordinal, handle);
}

int lt_data_type(uint8_t type) {
  switch (type) {
  case DEEPGEN_F64:
    return 1;
  case DEEPGEN_F16:
    return 2;
  case DEEPGEN_BF16:
    return 14;
  case DEEPGEN_E4M3:
    return 28;
  case DEEPGEN_E5M2:
    return 29;
  case DEEPGEN_I8:
    return 3;
  case DEEPGEN_I32:
    return 10;
  default:
    return 0; // f32, and tf32, which is f32 in memory
  }
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
