// Which kernels of a function a device runs, loaded and in the order in which a call tries them: the part
// that does not depend on whose device it is. Internal.
//
// A vendor's part is a class of types (Driver, Device, PreparedLaunch) and static functions:
//   driver(why_none)                       the driver; null: none
//   is_arch(arch)                          whether an arch is one of the vendor's
//   well_formed(kernel, function)          whether its description can be worked with
//   standing(kernel, device)               better is lower; cannot_run. Equals keep the order of the table
//   current_device, device_count, describe as the driver says
//   load(driver, device, kernel, launches) loads the code and fills in a PreparedLaunch for each launch of
//   the kernel concerns_code(result)                  whether another kernel may load where this one did not
//   unload(driver, code)                   gives back what load() keeps for a piece of code
//   failure(result)                        the status of a failed driver call
//   prepare_call(driver, function, kernel, device, why)  what calls the vendor's library in place of the
//   kernel, a PreparedCall; null: nothing does, and why. discard(call); state_of(call)
#pragma once

#include "runtime/core/arguments.h"
#include "runtime/core/fallback.h"
#include "runtime/core/part_index.h"
#include "runtime/core/pool.h"
#include "runtime/gpu/gpu.h"

#include <cstdlib>
#include <pthread.h>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

constexpr uint32_t cannot_run = ~0u;

/// First calls of all functions take turns. Nothing survives fork(2): the drivers themselves do not.
inline pthread_mutex_t selection_mutex = PTHREAD_MUTEX_INITIALIZER;

/// Between construction and destruction this thread may load code although some stream is being captured.
/// Both drivers have the same modes; one of them may lack the call.
template <typename Driver>
class LoadsDuringCapture {
public:
  explicit LoadsDuringCapture(const Driver& d) : driver_(d) { exchange(); }
  ~LoadsDuringCapture() { exchange(); }
  LoadsDuringCapture(const LoadsDuringCapture&) = delete;
  LoadsDuringCapture& operator=(const LoadsDuringCapture&) = delete;

private:
  void exchange() {
    if (driver_.exchange_capture_mode) driver_.exchange_capture_mode(&mode_);
  }
  static constexpr int relaxed = 2;
  const Driver& driver_;
  int mode_ = relaxed;
};

template <typename Vendor>
class GpuSelection {
public:
  using Driver = typename Vendor::Driver;
  using Device = typename Vendor::Device;
  using PreparedLaunch = typename Vendor::PreparedLaunch;
  using PreparedCall = typename Vendor::PreparedCall;

  struct PreparedKernel {
    const deepgen_kernel* kernel;
    PreparedLaunch* launches;
    PreparedCall* call; ///< of the vendor's library, which runs instead where it can; null: none
    Fallback why;       ///< then
  };

  /// What one device runs of one function; made once, never changed.
  struct Choice {
    size_t workspace; ///< the largest of the kernels'
    PartIndex* parts; ///< null: few
    uint32_t count;   ///< at least 1
    PreparedKernel kernels[1];
  };

  /// The choice for the current device, made at the first call, and the driver that made it.
  static deepgen_status current_choice(const deepgen_function& f, const Driver*& d, const Choice*& choice) {
    auto none = DEEPGEN_OK;
    d = Vendor::driver(&none);
    return d ? choose(*d, f, choice) : none;
  }

  /// The place of the first kernel that may take a call of these sizes.
  static uint32_t first_place(const Choice& choice, const int64_t* sizes) {
    const uint32_t place = choice.parts ? indexed_place(*choice.parts, sizes) : 0;
    return place == no_part ? 0 : place;
  }

  // Of GpuVendor, what asks for no launch.
  static deepgen_status current() {
    auto none = DEEPGEN_OK;
    const Driver* d = Vendor::driver(&none);
    int device = -1;
    if (!d) return none;
    return Vendor::current_device(*d, &device) ? DEEPGEN_ERROR_NO_CONTEXT : DEEPGEN_OK;
  }

  static deepgen_status describe(const deepgen_function& f, const int64_t* sizes, GpuDescription& about) {
    const Driver* d = nullptr;
    const Choice* choice = nullptr;
    if (deepgen_status status = current_choice(f, d, choice)) return status;
    int64_t largest[DEEPGEN_SIZES];
    for (int i = 0; i < DEEPGEN_SIZES; ++i) largest[i] = sizes ? sizes[i] : f.sizes[i].most;
    about.workspace = sizes ? 0 : choice->workspace;
    for (uint32_t i = 0; i < choice->count; ++i) {
      const PreparedKernel& prepared = choice->kernels[i];
      const deepgen_kernel& k = *prepared.kernel;
      if (!takes(k, largest)) continue;
      const Fallback state = prepared.call ? Vendor::state_of(*prepared.call) : prepared.why;
      if (!about.config) {
        about.config = state == Fallback::runs ? k.vendor->text : k.config;
        about.fallback = k.vendor ? text_of(state) : nullptr;
      }
      size_t needed = workspace_at(k, largest);
      if (prepared.call && k.vendor->workspace > needed) needed = k.vendor->workspace;
      about.workspace = needed > about.workspace ? needed : about.workspace;
    }
    return DEEPGEN_OK;
  }

  /// For all devices. A function that no device was chosen for needs no driver.
  static void forget(const deepgen_function& f) {
    if (!f.devices || !table(f)) return;
    pthread_mutex_lock(&selection_mutex);
    Choices* choices = table(f);
    auto** at = reinterpret_cast<Choices**>(const_cast<void**>(f.devices));
    while (*at != choices) at = &(*at)->next;
    *at = choices->next;
    for (int i = 0; i < choices->count; ++i)
      if (choices->of_device[i]) discard(static_cast<Choice*>(choices->of_device[i]));
    std::free(choices);
    for (uint32_t i = 0; i < f.kernel_count; ++i)
      if (Vendor::is_arch(f.kernels[i].arch) && Vendor::well_formed(f.kernels[i], f))
        Vendor::unload(*Vendor::driver(nullptr), *f.kernels[i].gpu);
    pthread_mutex_unlock(&selection_mutex);
  }

  /// What no kernel of the device takes. One takes everything, but of a batch invariant function, where that
  /// might add up in another order.
  static deepgen_status no_kernel(const Choice& choice) {
    return choice.kernels[0].kernel->sum_order ? DEEPGEN_ERROR_ALIGNMENT : DEEPGEN_ERROR_NO_KERNEL;
  }

private:
  static constexpr int out_of_memory = 2; ///< of both drivers

  /// What deepgen_function::devices points to: a table for each vendor whose devices were used.
  struct Choices : DeviceTable {
    bool (*vendor)(const char*); ///< Vendor::is_arch
    Choices* next;
    int count;
    void* of_device[1]; ///< Choice*, by ordinal; null: not made
  };

  static Choices* table(const deepgen_function& f) {
    auto* choices = static_cast<Choices*>(__atomic_load_n(f.devices, __ATOMIC_ACQUIRE));
    while (choices && choices->vendor != &Vendor::is_arch) choices = choices->next;
    return choices;
  }

  static const Choice* find(const deepgen_function& f, int device) {
    const Choices* choices = table(f);
    if (!choices || uint32_t(device) >= uint32_t(choices->count)) return nullptr;
    return static_cast<const Choice*>(__atomic_load_n(&choices->of_device[device], __ATOMIC_ACQUIRE));
  }

  static deepgen_status choose(const Driver& d, const deepgen_function& f, const Choice*& choice) {
    int device = -1;
    if (int r = Vendor::current_device(d, &device)) return Vendor::failure(r);
    if (!f.devices) return DEEPGEN_ERROR_NO_KERNEL; // a library for CPUs alone
    choice = find(f, device);
    if (choice) return DEEPGEN_OK;
    if (!f.kernels || !has_good_operands(f)) return DEEPGEN_ERROR_ARGUMENT;
    pthread_mutex_lock(&selection_mutex);
    deepgen_status status;
    {
      LoadsDuringCapture loads(d);
      status = choose_first(d, f, device, choice);
    }
    pthread_mutex_unlock(&selection_mutex);
    return status;
  }

  /// Whether every call that passes the argument checks meets what the kernel asks of operands.
  static bool takes_all(const deepgen_kernel& k, const deepgen_function& f) {
    if (k.taken) return false;
    for (uint32_t i = 0; i < f.operand_count; ++i)
      if (k.requirements[i].align > size_of(f.operands[i].type) || k.requirements[i].most_pitch) return false;
    return true;
  }

  /// Of the calls that take the kernel. What it would need for others may be much more.
  static size_t most_workspace(const deepgen_kernel& k) {
    if (!k.taken) return k.workspace;
    int64_t most[DEEPGEN_SIZES];
    for (int i = 0; i < DEEPGEN_SIZES; ++i) most[i] = k.taken[i].most;
    const size_t bytes = workspace_at(k, most);
    return bytes < k.workspace ? bytes : k.workspace;
  }

  /// The index of the best kernel after `previous` in the order of standing; kernel_count when there is none.
  static uint32_t next_best(const deepgen_function& f, const Device& device, uint32_t previous) {
    const uint32_t none = f.kernel_count;
    const uint32_t after = previous == none ? 0 : Vendor::standing(f.kernels[previous], device);
    uint32_t best = none, best_standing = cannot_run;
    for (uint32_t i = 0; i < f.kernel_count; ++i) {
      const uint32_t s = Vendor::standing(f.kernels[i], device);
      const bool is_later = previous == none || s > after || (s == after && i > previous);
      if (is_later && s < best_standing) best = i, best_standing = s;
    }
    return best;
  }

  /// Adds the kernels that load, up to the first that takes every call. The result is that of the first
  /// failure when none loads, and success with no kernel when the table has none for the device.
  static int load_kernels(const Driver& d, const deepgen_function& f, const Device& device, Choice& choice) {
    int first_failure = 0;
    for (uint32_t i = f.kernel_count; (i = next_best(f, device, i)) != f.kernel_count;) {
      const deepgen_kernel& k = f.kernels[i];
      if (choice.count && k.sum_order != choice.kernels[0].kernel->sum_order) continue;
      auto* launches = static_cast<PreparedLaunch*>(std::calloc(k.launch_count, sizeof(PreparedLaunch)));
      if (const int r = launches ? Vendor::load(d, device, k, launches) : out_of_memory) {
        std::free(launches);
        if (!Vendor::concerns_code(r)) return r;
        first_failure = first_failure ? first_failure : r;
        continue;
      }
      PreparedKernel& prepared = choice.kernels[choice.count++];
      prepared = {&k, launches, nullptr, Fallback::unknown};
      if (k.vendor) prepared.call = Vendor::prepare_call(d, f, k, device, prepared.why);
      size_t workspace = most_workspace(k);
      if (prepared.call && k.vendor->workspace > workspace) workspace = k.vendor->workspace;
      choice.workspace = workspace > choice.workspace ? workspace : choice.workspace;
      if (takes_all(k, f)) break;
    }
    return choice.count ? 0 : first_failure;
  }

  static void discard(Choice* choice) {
    for (uint32_t i = 0; i < choice->count; ++i) {
      std::free(choice->kernels[i].launches);
      Vendor::discard(choice->kernels[i].call);
    }
    std::free(choice->parts);
    std::free(choice);
  }

  static void index_choice(const deepgen_function& f, Choice& choice) {
    const deepgen_kernel* kernels[most_indexed];
    const uint32_t count = choice.count < most_indexed ? choice.count : most_indexed;
    for (uint32_t i = 0; i < count; ++i) kernels[i] = choice.kernels[i].kernel;
    choice.parts = make_part_index(f, kernels, count);
  }

  static deepgen_status make_choice(const Driver& d, const deepgen_function& f, int ordinal, Choice*& made) {
    for (uint32_t i = 0; i < f.kernel_count; ++i)
      if (Vendor::is_arch(f.kernels[i].arch) && !Vendor::well_formed(f.kernels[i], f))
        return DEEPGEN_ERROR_ARGUMENT;
    Device device;
    if (int r = Vendor::describe(d, ordinal, device)) return Vendor::failure(r);
    auto* choice =
        static_cast<Choice*>(std::calloc(1, sizeof(Choice) + f.kernel_count * sizeof(PreparedKernel)));
    if (!choice) return Vendor::failure(out_of_memory);
    const int r = load_kernels(d, f, device, *choice);
    if (!r && choice->count) {
      index_choice(f, *choice);
      made = choice;
      return DEEPGEN_OK;
    }
    discard(choice); // not remembered: a later call tries again
    return r ? Vendor::failure(r) : DEEPGEN_ERROR_NO_KERNEL;
  }

  static deepgen_status make_table(const Driver& d, const deepgen_function& f, int ordinal,
                                   Choices*& choices) {
    choices = table(f);
    if (!choices) {
      pool::install_handlers(); // for forget()
      int count = 0;
      if (int r = Vendor::device_count(d, &count)) return Vendor::failure(r);
      choices = static_cast<Choices*>(std::calloc(1, sizeof(Choices) + size_t(count) * sizeof(void*)));
      if (!choices) return Vendor::failure(out_of_memory);
      choices->only = only_vendor(f);
      choices->vendor = &Vendor::is_arch;
      choices->next = static_cast<Choices*>(*f.devices);
      choices->count = count;
      __atomic_store_n(f.devices, choices, __ATOMIC_RELEASE);
    }
    return ordinal >= 0 && ordinal < choices->count ? DEEPGEN_OK : DEEPGEN_ERROR_NO_CONTEXT;
  }

  /// With the mutex held.
  static deepgen_status choose_first(const Driver& d, const deepgen_function& f, int ordinal,
                                     const Choice*& choice) {
    choice = find(f, ordinal); // another thread may have been first
    if (choice) return DEEPGEN_OK;
    Choices* choices = nullptr;
    if (deepgen_status status = make_table(d, f, ordinal, choices)) return status;
    Choice* made = nullptr;
    if (deepgen_status status = make_choice(d, f, ordinal, made)) return status;
    __atomic_store_n(&choices->of_device[ordinal], static_cast<void*>(made), __ATOMIC_RELEASE);
    choice = made;
    return DEEPGEN_OK;
  }
};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
