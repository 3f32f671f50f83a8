#include "runtime/cpu/blas.h"

#include "runtime/cpu/cpu.h"

#include "deepgen/epilogue_steps.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <pthread.h>

namespace deepgen::blas {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

pthread_mutex_t search_mutex = PTHREAD_MUTEX_INITIALIZER;
Library library;
std::atomic<const Library*> found{nullptr};

/// OpenBLAS starts as many threads as there are cores when it is loaded, unless told otherwise. Who has it in
/// the process already has decided that.
bool starts_no_threads() {
  const char* count = secure_getenv("OPENBLAS_NUM_THREADS");
  return count && count[0] == '1' && !count[1];
}

template <typename Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
}

/// The second word of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
void copy_version(const char* words, char (&out)[24]) {
  const char* begin = std::strchr(words, ' ');
  if (!begin) return;
  const size_t length = std::strcspn(++begin, " ");
  std::memcpy(out, begin, length < sizeof out ? length : sizeof out - 1);
}

void* open(bool load) {
  const char* own = secure_getenv("DEEPGEN_OPENBLAS");
  const bool named = own && *own;
  for (const char* name :
       {named ? own : "libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblaso.so.0"}) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD))) return handle;
    if (named) break;
  }
  return nullptr;
}

/// With the mutex held. Never closed: its threads may run.
Fallback find_library() {
  if (found.load(std::memory_order_relaxed)) return Fallback::runs;
  void* handle = open(false);
  if (!handle && !starts_no_threads()) return Fallback::threads;
  if (!handle) handle = open(true);
  if (!handle) return Fallback::absent;
  const char* (*config)() = nullptr;
  find(handle, "cblas_sgemm", library.sgemm), find(handle, "cblas_dgemm", library.dgemm);
  find(handle, "openblas_get_num_threads", library.threads), find(handle, "openblas_get_config", config);
  if (!library.sgemm || !library.dgemm || !library.threads || !config) return Fallback::absent;
  copy_version(config(), library.version);
  found.store(&library, std::memory_order_release);
  return Fallback::runs;
}

Fallback look(const deepgen_vendor_call& call) {
  if (is_forced_off()) return Fallback::off;
  if (!cpu::is_model(call.device)) return Fallback::other_device;
  pthread_mutex_lock(&search_mutex);
  Fallback result = find_library();
  pthread_mutex_unlock(&search_mutex);
  if (result == Fallback::runs && std::strcmp(call.version, library.version) != 0)
    result = Fallback::other_version;
  return result;
}

} // namespace

bool well_formed(const deepgen_vendor_call& call) {
  constexpr int steps[] = {
#define DEEPGEN_STEP(...) 0,
      DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
  };
  constexpr uint32_t most = sizeof steps / sizeof *steps;
  if (call.library != DEEPGEN_LIBRARY_OPENBLAS || !call.text || !call.state || !call.device ||
      !call.version || call.step_count > most || (call.step_count && !call.steps))
    return false;
  for (uint32_t i = 0; i < call.step_count; ++i)
    if (call.steps[i] >= most) return false;
  return true;
}

void look_for(const deepgen_vendor_call& call) {
  if (Fallback(__atomic_load_n(call.state, __ATOMIC_ACQUIRE)) != Fallback::unknown) return;
  __atomic_store_n(call.state, uint32_t(look(call)), __ATOMIC_RELEASE);
}

/// The program may give the library other threads at any time.
Fallback state_of(const deepgen_vendor_call& call) {
  const auto state = Fallback(__atomic_load_n(call.state, __ATOMIC_ACQUIRE));
  if (state != Fallback::runs) return state;
  return found.load(std::memory_order_acquire)->threads() == 1 ? state : Fallback::threads;
}

const Library& current() { return *found.load(std::memory_order_acquire); }

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::blas
