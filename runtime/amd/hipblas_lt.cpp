#include "runtime/amd/hipblas_lt.h"

#include "runtime/amd/hip_driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

struct Opened {
  LtLibrary library;
  int (*version)(void* handle, int*);
  int (*preference_create)(void**);
  int (*preference_set)(void*, int attribute, const void*, size_t);
  int (*preference_destroy)(void*);
  int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int asked,
                   void* results, int* count);
  bool complete;
} opened;

template <typename Entry>
bool find(void* library, const char* name, Entry& entry) {
  entry = reinterpret_cast<Entry>(dlsym(library, name));
  return entry != nullptr;
}

/// The folder of HIP's library goes first: another ROCm's would open another HIP, to which streams and memory
/// of this one are nothing.
void* open() {
  const char* own = secure_getenv("DEEPGEN_HIPBLASLT");
  if (own && *own) return dlopen(own, RTLD_NOW | RTLD_LOCAL);
  char folder[4096] = "", path[4200];
  Dl_info place = {};
  if (const Driver* d = driver(); d && dladdr(reinterpret_cast<const void*>(d->launch), &place))
    std::snprintf(folder, sizeof folder, "%s", place.dli_fname ? place.dli_fname : "");
  char* slash = std::strrchr(folder, '/');
  slash ? slash[1] = '\0' : folder[0] = '\0';
  for (const char* where : {static_cast<const char*>(folder), "", "/opt/rocm/lib/"})
    for (const char* name : {"libhipblaslt.so", "libhipblaslt.so.1", "libhipblaslt.so.0"}) {
      std::snprintf(path, sizeof path, "%s%s", where, name);
      if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
    }
  return nullptr;
}

/// Results of what the library checks before it enqueues anything: hipblasStatus_t.
bool enqueued_nothing(int result) {
  constexpr int not_initialized = 1, allocation_failed = 2, invalid_value = 3, not_supported = 7,
                invalid_enum = 10; // and between these: another arch, no handle
  return (result >= not_initialized && result <= invalid_value) ||
         (result >= not_supported && result <= invalid_enum) || result == allocation_failed;
}

const char* lost_text(int) {
  return "a call of hipBLASLt failed, and may have written a part of D, which it reads";
}

/// What hipblasLtMatmulHeuristicResult_t has had since ROCm 6.1: the algorithm, its workspace, its state and
/// five words of which nothing is known. The algorithm begins with its number and ends with the workspace
/// that was allowed.
struct HeuristicResult {
  uint64_t algorithm[3], workspace;
  int32_t state, rest[5];
};
static_assert(sizeof(HeuristicResult) == 56);

/// An algorithm is a number in a list that the library loads in part, when it is first asked for a problem of
/// that kind. So it is asked as the measurement has asked.
bool admits(void* handle, void* desc, void* a, void* b, void* d, const deepgen_vendor_call& call) {
  constexpr int asked = 64, most_workspace = 1;
  const uint64_t workspace = call.algorithm[2];
  void* preference = nullptr;
  if (opened.preference_create(&preference) != 0) return false;
  HeuristicResult results[asked] = {};
  int count = 0;
  const bool answers = opened.preference_set(preference, most_workspace, &workspace, sizeof workspace) == 0 &&
                       opened.heuristic(handle, desc, a, b, d, d, preference, asked, results, &count) == 0;
  opened.preference_destroy(preference);
  for (int i = 0; answers && i < count && i < asked; ++i)
    if (results[i].state == 0 && results[i].algorithm[0] == call.algorithm[0]) return true;
  return false;
}

bool load() {
  void* library = open(); // never closed
  if (!library) return false;
  Opened& o = opened;
  LtLibrary& l = o.library;
  l.kind = DEEPGEN_LIBRARY_HIPBLASLT, l.number = lt_numbers;
  l.enqueued_nothing = enqueued_nothing, l.lost_text = lost_text, l.admits = admits;
  bool complete = find(library, "hipblasLtGetVersion", o.version);
  complete &= find(library, "hipblasLtCreate", l.create);
  complete &= find(library, "hipblasLtMatmulDescCreate", l.desc_create);
  complete &= find(library, "hipblasLtMatmulDescSetAttribute", l.desc_set);
  complete &= find(library, "hipblasLtMatmulDescDestroy", l.desc_destroy);
  complete &= find(library, "hipblasLtMatrixLayoutCreate", l.layout_create);
  complete &= find(library, "hipblasLtMatrixLayoutSetAttribute", l.layout_set);
  complete &= find(library, "hipblasLtMatrixLayoutDestroy", l.layout_destroy);
  complete &= find(library, "hipblasLtMatmulPreferenceCreate", o.preference_create);
  complete &= find(library, "hipblasLtMatmulPreferenceSetAttribute", o.preference_set);
  complete &= find(library, "hipblasLtMatmulPreferenceDestroy", o.preference_destroy);
  complete &= find(library, "hipblasLtMatmulAlgoGetHeuristic", o.heuristic);
  complete &= find(library, "hipblasLtMatmul", l.matmul);
  return o.complete = complete;
}

} // namespace

Fallback find_lt(const char* version, int ordinal, const LtLibrary*& library, void*& handle) {
  size_t n[3];
  if (!parse_lt_version(version, n)) return Fallback::other_version;
  if (!opened.complete && !load()) return Fallback::absent;
  library = &opened.library;
  if (const Fallback why = lt_handle(opened.library, ordinal, handle); why != Fallback::runs) return why;
  int number = 0; // 100203 is 1.2.3
  if (opened.version(handle, &number) != 0) return Fallback::refused;
  const bool same = number >= 0 && size_t(number) == n[0] * 100000 + n[1] * 100 + n[2];
  return same ? Fallback::runs : Fallback::other_version;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
