#include "runtime/amd/hip_load.h"

#include "runtime/gpu/gpu.h"

#include <cstdlib>
#include <cstring>

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// What deepgen_gpu_code::state points to: a module belongs to the device that was current when it was
/// loaded.
struct Loaded {
  int ordinal;
  Module module;
  Loaded* next;
};

Result module_of(const Driver& d, const deepgen_gpu_code& code, int ordinal, Module& module) {
  auto* first = static_cast<Loaded*>(*code.state);
  for (const Loaded* l = first; l; l = l->next)
    if (l->ordinal == ordinal) {
      module = l->module;
      return success;
    }
  auto* fresh = static_cast<Loaded*>(std::malloc(sizeof(Loaded))); // for unload()
  if (!fresh) return out_of_memory;
  *fresh = {ordinal, nullptr, first};
  if (Result r = d.module_load(&fresh->module, code.code)) {
    std::free(fresh);
    return r;
  }
  *code.state = fresh;
  module = fresh->module;
  return success;
}

/// The length of "gfx942" in "gfx942:xnack-".
size_t processor_length(const char* target) { return std::strcspn(target, ":"); }

/// Whether `list`, which begins with ':' or is empty, has the setting: "xnack-" of a length.
bool has_setting(const char* list, const char* setting, size_t length) {
  while (*list == ':') {
    const size_t own = std::strcspn(++list, ":");
    if (own == length && std::memcmp(list, setting, length) == 0) return true;
    list += own;
  }
  return false;
}

uint32_t settings_named(const char* target) {
  uint32_t count = 0;
  for (; *target; ++target) count += *target == ':';
  return count;
}

bool is_arch_character(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// gcnArchName, the only text behind the name that begins so. All versions of hipDeviceProp_t begin with 256
/// bytes of name, of which a board without one may have the arch too, and are smaller than the buffer.
Result find_target(const Driver& d, int ordinal, char (&target)[64]) {
  constexpr size_t name_bytes = 256, bytes = 8192;
  alignas(16) char properties[bytes] = {};
  if (Result r = d.device_properties(properties, ordinal)) return r;
  for (size_t at = name_bytes; at + sizeof target <= bytes; ++at) {
    if (std::memcmp(properties + at, "gfx", 3) != 0 || !is_arch_character(properties[at + 3])) continue;
    const size_t length = strnlen(properties + at, sizeof target);
    if (length == sizeof target) break;
    std::memcpy(target, properties + at, length + 1);
    return success;
  }
  return not_supported;
}

/// HIP counts a grid in threads, in 32 bits.
bool fits_in_a_grid(const deepgen_launch& l) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (uint64_t(l.grid[i]) * l.block[i] > UINT32_MAX) return false;
    threads *= l.block[i];
  }
  return threads <= 1024;
}

/// Lowers a grid to the blocks that run at once.
Result fit(const Driver& d, const Device& device, const deepgen_launch& l, PreparedLaunch& p) {
  int per_unit = 0;
  const int threads = int(l.block[0] * l.block[1] * l.block[2]);
  if (Result r = d.blocks_that_fit(&per_unit, p.function, threads, l.shared)) return r;
  const uint64_t blocks = uint64_t(per_unit) * uint64_t(device.compute_units);
  if (!blocks) return out_of_resources;
  const uint64_t columns = blocks / (uint64_t(l.grid[1]) * l.grid[2]);
  if (columns < p.grid[0]) p.grid[0] = columns ? uint32_t(columns) : 1;
  return success;
}

} // namespace

Result describe(const Driver& d, int ordinal, Device& device) {
  device.ordinal = ordinal;
  if (Result r = d.device_attribute(&device.compute_units, multiprocessors, ordinal)) return r;
  if (Result r = d.device_name(device.name, sizeof device.name, ordinal)) return r;
  return find_target(d, ordinal, device.target);
}

bool is_arch(const char* arch) { return arch && std::strncmp(arch, "gfx", 3) == 0; }

bool runs_on(const char* target, const char* device) {
  const size_t processor = processor_length(target);
  if (processor != processor_length(device) || std::memcmp(target, device, processor) != 0) return false;
  for (const char* at = target + processor; *at == ':';) {
    const size_t length = std::strcspn(++at, ":");
    if (!has_setting(device + processor, at, length)) return false;
    at += length;
  }
  return true;
}

bool well_formed(const deepgen_kernel& k, const deepgen_function& f) {
  if (!has_gpu_description(k, f) || !k.gpu->code || !is_arch(k.gpu->target) || k.map_count) return false;
  for (uint32_t i = 0; i < k.arg_count; ++i)
    if (is_map(k.args[i])) return false;
  if (k.vendor && !deepgen::well_formed(*k.vendor, f, DEEPGEN_LIBRARY_HIPBLASLT)) return false;
  for (uint32_t i = 0; i < k.launch_count; ++i) {
    const deepgen_launch& l = k.launches[i];
    const bool clustered = l.cluster[0] != 1 || l.cluster[1] != 1 || l.cluster[2] != 1;
    if (clustered || l.flags & DEEPGEN_LAUNCH_DEPENDENT || !fits_in_a_grid(l)) return false;
  }
  return true;
}

uint32_t standing(const deepgen_kernel& k, const Device& device) {
  if (!is_arch(k.arch) || !runs_on(k.gpu->target, device.target)) return cannot_run;
  constexpr uint32_t most_settings = 16;
  const uint32_t named = settings_named(k.gpu->target),
                 kind = k.device && std::strcmp(k.device, device.name) == 0 ? 0 : 1;
  return kind * (most_settings + 1) + most_settings - (named < most_settings ? named : most_settings);
}

Result load(const Driver& d, const Device& device, const deepgen_kernel& k, PreparedLaunch* launches) {
  Module module = nullptr;
  if (Result r = module_of(d, *k.gpu, device.ordinal, module)) return r;
  for (uint32_t i = 0; i < k.launch_count; ++i) {
    const deepgen_launch& l = k.launches[i];
    PreparedLaunch& p = launches[i];
    if (Result r = d.module_function(&p.function, module, l.entry)) return r;
    for (int j = 0; j < 3; ++j) p.grid[j] = l.grid[j], p.block[j] = l.block[j];
    p.shared = l.shared;
    if (l.flags & DEEPGEN_LAUNCH_PERSISTENT)
      if (Result r = fit(d, device, l, p)) return r;
  }
  return success;
}

void unload(const Driver& d, const deepgen_gpu_code& code) {
  for (auto* loaded = static_cast<Loaded*>(*code.state); loaded;) {
    Loaded* next = loaded->next;
    if (d.module_unload) d.module_unload(loaded->module);
    std::free(loaded);
    loaded = next;
  }
  *code.state = nullptr;
}

bool concerns_code(Result r) {
  switch (r) {
  case invalid_value:
  case invalid_configuration:
  case invalid_device_function:
  case invalid_image:
  case no_binary_for_gpu:
  case invalid_kernel_file:
  case shared_object_init_failed:
  case not_found:
  case out_of_resources:
  case not_supported:
    return true;
  default: // memory, the device, a capture: another kernel would fail as well, a later call may not
    return false;
  }
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
