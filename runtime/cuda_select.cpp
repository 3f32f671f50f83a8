#include "runtime/cuda_select.h"

#include "runtime/arguments.h"

#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace deepgen::nvidia {
namespace {

/// What deepgen_function::devices points to.
struct Choices {
  int count;
  Choice* of_device[1]; ///< by ordinal; null: not made
};

/// First calls of all functions take turns. Nothing survives fork(2): CUDA itself does not.
pthread_mutex_t selection_mutex = PTHREAD_MUTEX_INITIALIZER;

const Choice* find(const deepgen_function& f, int device) {
  const auto* choices = static_cast<const Choices*>(__atomic_load_n(f.devices, __ATOMIC_ACQUIRE));
  if (!choices || uint32_t(device) >= uint32_t(choices->count)) return nullptr;
  return __atomic_load_n(&choices->of_device[device], __ATOMIC_ACQUIRE);
}

/// Whether every call that passes the argument checks meets the kernel's alignment.
bool takes_all(const deepgen_kernel& k, const deepgen_function& f) {
  uint32_t d = size_of(f.d_type);
  if (f.epilogue & (1u << DEEPGEN_EPILOGUE_RESIDUAL | 1u << DEEPGEN_EPILOGUE_MULTIPLY))
    d = d < size_of(f.epilogue_type) ? d : size_of(f.epilogue_type);
  return k.align_a <= size_of(f.a_type) && k.align_b <= size_of(f.b_type) && k.align_d <= d;
}

/// The index of the best kernel after `previous` in the order of standing; kernel_count when there is none.
uint32_t next_best(const deepgen_function& f, const Device& device, uint32_t previous) {
  const uint32_t none = f.kernel_count;
  const uint32_t after = previous == none ? 0 : standing(f.kernels[previous], device);
  uint32_t best = none, best_standing = cannot_run;
  for (uint32_t i = 0; i < f.kernel_count; ++i) {
    const uint32_t s = standing(f.kernels[i], device);
    const bool is_later = previous == none || s > after || (s == after && i > previous);
    if (is_later && s < best_standing) best = i, best_standing = s;
  }
  return best;
}

bool is_for_gpu(const deepgen_kernel& k) { return k.arch && capability(k.arch); }

/// Adds the kernels that load, up to the first that takes every call. The result is that of the first failure
/// when none loads, and success with no kernel when the table has none for the device.
Result load_kernels(const Driver& d, const deepgen_function& f, const Device& device, Choice& choice) {
  Result first_failure = success;
  for (uint32_t i = f.kernel_count; (i = next_best(f, device, i)) != f.kernel_count;) {
    const deepgen_kernel& k = f.kernels[i];
    auto* launches = static_cast<PreparedLaunch*>(std::calloc(k.launch_count, sizeof(PreparedLaunch)));
    const Result r = launches ? load(d, device, k, launches) : out_of_memory;
    if (r != success) {
      std::free(launches);
      if (!concerns_code(r)) return r;
      first_failure = first_failure == success ? r : first_failure;
      continue;
    }
    choice.kernels[choice.count++] = {&k, launches};
    choice.workspace = k.workspace > choice.workspace ? k.workspace : choice.workspace;
    if (takes_all(k, f)) break;
  }
  return choice.count ? success : first_failure;
}

void discard(Choice* choice) {
  for (uint32_t i = 0; i < choice->count; ++i) std::free(choice->kernels[i].launches);
  std::free(choice);
}

deepgen_status make_choice(const Driver& d, const deepgen_function& f, int ordinal, Choice*& made) {
  for (uint32_t i = 0; i < f.kernel_count; ++i)
    if (is_for_gpu(f.kernels[i]) && !well_formed(f.kernels[i])) return DEEPGEN_ERROR_ARGUMENT;
  Device device;
  if (Result r = describe(d, ordinal, device)) return failure(r);
  auto* choice =
      static_cast<Choice*>(std::calloc(1, sizeof(Choice) + f.kernel_count * sizeof(PreparedKernel)));
  if (!choice) return failure(out_of_memory);
  const Result r = load_kernels(d, f, device, *choice);
  if (r == success && choice->count) {
    made = choice;
    return DEEPGEN_OK;
  }
  discard(choice); // not remembered: a later call tries again
  return r == success ? DEEPGEN_ERROR_NO_KERNEL : failure(r);
}

deepgen_status make_table(const Driver& d, const deepgen_function& f, int ordinal, Choices*& choices) {
  choices = static_cast<Choices*>(*f.devices);
  if (!choices) {
    int count = 0;
    if (Result r = d.device_count(&count)) return failure(r);
    choices = static_cast<Choices*>(std::calloc(1, sizeof(Choices) + size_t(count) * sizeof(Choice*)));
    if (!choices) return failure(out_of_memory);
    choices->count = count;
    __atomic_store_n(f.devices, choices, __ATOMIC_RELEASE);
  }
  return ordinal >= 0 && ordinal < choices->count ? DEEPGEN_OK : DEEPGEN_ERROR_NO_CONTEXT;
}

/// With the mutex held.
deepgen_status choose_first(const Driver& d, const deepgen_function& f, int ordinal, const Choice*& choice) {
  choice = find(f, ordinal); // another thread may have been first
  if (choice) return DEEPGEN_OK;
  Choices* choices = nullptr;
  if (deepgen_status status = make_table(d, f, ordinal, choices)) return status;
  Choice* made = nullptr;
  if (deepgen_status status = make_choice(d, f, ordinal, made)) return status;
  __atomic_store_n(&choices->of_device[ordinal], made, __ATOMIC_RELEASE);
  choice = made;
  return DEEPGEN_OK;
}

} // namespace

uint32_t standing(const deepgen_kernel& k, const Device& device) {
  if (!is_for_gpu(k)) return cannot_run;
  const bool runs = runs_on(k.gpu->target, device);
  if (!runs && !(k.gpu->ptx && compiles_on(k.gpu->target, device))) return cannot_run;
  const uint32_t kind = !runs ? 2 : k.device && std::strcmp(k.device, device.name) == 0 ? 0 : 1;
  constexpr uint32_t archs = 1 << 16;
  return kind * archs + (archs - 1 - uint32_t(capability(k.arch)));
}

deepgen_status choose(const Driver& d, const deepgen_function& f, const Choice*& choice) {
  int device = -1;
  if (Result r = d.context_device(&device)) return failure(r);
  if (!f.devices) return DEEPGEN_ERROR_NO_KERNEL; // a library for CPUs alone
  choice = find(f, device);
  if (choice) return DEEPGEN_OK;
  if (!f.kernels || !has_known_types(f)) return DEEPGEN_ERROR_ARGUMENT;
  pthread_mutex_lock(&selection_mutex);
  deepgen_status status;
  {
    LoadsDuringCapture loads(d);
    status = choose_first(d, f, device, choice);
  }
  pthread_mutex_unlock(&selection_mutex);
  return status;
}

} // namespace deepgen::nvidia
