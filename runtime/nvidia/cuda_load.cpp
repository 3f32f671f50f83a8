#include "runtime/nvidia/cuda_load.h"

#include "runtime/gpu/gpu.h"
#include "runtime/gpu/lt_call.h"
#include "runtime/nvidia/cuda_tensor_map.h"

#include <cstdlib>
#include <initializer_list>

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// What deepgen_gpu_code::state points to. A library of the driver's belongs to no context, so it serves all
/// devices.
struct Loaded {
  Library cubin, ptx;
};

/// The suffix of an arch: 'a' for its very own instructions, 'f' for those of its family, 0 for none.
char suffix(const char* arch) {
  while (*arch && *arch != 'a' && *arch != 'f') ++arch;
  return *arch;
}

/// Blocks without the opt-in have so much dynamic shared memory.
constexpr uint32_t plain_shared = 48 << 10;
constexpr uint32_t portable_cluster = 8;

Result library(const Driver& d, const deepgen_gpu_code& code, bool ptx, Library& library) {
  auto* loaded = static_cast<Loaded*>(*code.state);
  if (!loaded) {
    loaded = static_cast<Loaded*>(std::calloc(1, sizeof(Loaded))); // for unload()
    if (!loaded) return out_of_memory;
    *code.state = loaded;
  }
  Library& slot = ptx ? loaded->ptx : loaded->cubin;
  if (!slot) {
    const void* image = ptx ? code.ptx : code.code;
    Library fresh = nullptr;
    if (Result r = d.library_load(&fresh, image, nullptr, nullptr, 0, nullptr, nullptr, 0)) return r;
    slot = fresh;
  }
  library = slot;
  return success;
}

uint32_t cluster_blocks(const deepgen_launch& l) { return l.cluster[0] * l.cluster[1] * l.cluster[2]; }

/// Raised and never lowered: launches of other kernels may share the entry.
Result raise(const Driver& d, Kernel kernel, int device, FunctionAttribute attribute, int value) {
  int present = 0;
  if (Result r = d.kernel_attribute(&present, attribute, kernel, device)) return r;
  return present >= value ? success : d.kernel_set_attribute(attribute, value, kernel, device);
}

void configure(const deepgen_launch& l, PreparedLaunch& p) {
  p.config = {};
  for (int i = 0; i < 3; ++i) p.config.grid[i] = l.grid[i], p.config.block[i] = l.block[i];
  p.config.shared = l.shared;
  p.config.attributes = p.attributes;
  if (cluster_blocks(l) > 1)
    p.attributes[p.config.attribute_count++] = {
        cluster_dimension, 0, {l.cluster[0], l.cluster[1], l.cluster[2]}};
  if (l.flags & DEEPGEN_LAUNCH_DEPENDENT)
    p.attributes[p.config.attribute_count++] = {programmatic_stream_serialization, 0, {1}};
}

/// Asks how many blocks fit on the device at once: none means that the kernel cannot run there.
Result fit(const Driver& d, const Device& device, const deepgen_launch& l, Function function,
           PreparedLaunch& p) {
  const uint32_t cluster = cluster_blocks(l);
  int count = 0;
  uint64_t blocks = 0;
  if (cluster > 1) {
    LaunchConfig query = p.config;
    query.attribute_count = 1; // the cluster's size alone
    if (Result r = d.clusters_that_fit(&count, function, &query)) return r;
    blocks = uint64_t(count) * cluster;
  } else {
    const int threads = int(l.block[0] * l.block[1] * l.block[2]);
    if (Result r = d.blocks_that_fit(&count, function, threads, l.shared)) return r;
    blocks = uint64_t(count) * uint64_t(device.multiprocessors);
  }
  if (!blocks) return out_of_resources;
  if (l.flags & DEEPGEN_LAUNCH_PERSISTENT) {
    uint64_t columns = blocks / (uint64_t(l.grid[1]) * l.grid[2]) / l.cluster[0] * l.cluster[0];
    columns = columns < l.cluster[0] ? l.cluster[0] : columns;
    if (columns < l.grid[0]) p.config.grid[0] = uint32_t(columns);
  }
  return success;
}

Result prepare(const Driver& d, const Device& device, Library library, const deepgen_launch& l,
               PreparedLaunch& p) {
  if (Result r = d.library_kernel(&p.kernel, library, l.entry)) return r;
  if (l.shared > plain_shared)
    if (Result r = raise(d, p.kernel, device.ordinal, max_dynamic_shared, int(l.shared))) return r;
  if (cluster_blocks(l) > portable_cluster)
    if (Result r = raise(d, p.kernel, device.ordinal, non_portable_cluster_size, 1)) return r;
  Function function = nullptr;
  if (Result r = d.kernel_function(&function, p.kernel)) return r;
  if (d.function_load)
    if (Result r = d.function_load(function)) return r;
  configure(l, p);
  return fit(d, device, l, function, p);
}

Result load_form(const Driver& d, const Device& device, const deepgen_kernel& k, bool ptx,
                 PreparedLaunch* launches) {
  Library code = nullptr;
  if (Result r = library(d, *k.gpu, ptx, code)) return r;
  for (uint32_t i = 0; i < k.launch_count; ++i)
    if (Result r = prepare(d, device, code, k.launches[i], launches[i])) return r;
  return success;
}

bool has_map(const deepgen_kernel& k, deepgen_arg operand) {
  for (uint32_t i = 0; i < k.map_count; ++i)
    if (k.maps[i].operand == operand) return true;
  return false;
}

/// Those of one operand stand next to each other, as its argument is the array of them: a kernel would take
/// another operand's map for the second of a torn array.
bool has_whole_arrays(const deepgen_kernel& k) {
  for (uint32_t i = 1; i < k.map_count; ++i)
    for (uint32_t j = 0; j + 1 < i && k.maps[i].operand != k.maps[i - 1].operand; ++j)
      if (k.maps[j].operand == k.maps[i].operand) return false;
  return true;
}

} // namespace

Result describe(const Driver& d, int ordinal, Device& device) {
  int major = 0, minor = 0;
  device.ordinal = ordinal;
  if (Result r = d.device_attribute(&major, capability_major, ordinal)) return r;
  if (Result r = d.device_attribute(&minor, capability_minor, ordinal)) return r;
  device.capability = major * 10 + minor;
  if (Result r = d.device_attribute(&device.multiprocessors, multiprocessors, ordinal)) return r;
  return d.device_name(device.name, sizeof device.name, ordinal);
}

int capability(const char* arch) {
  if (!arch || arch[0] != 's' || arch[1] != 'm' || arch[2] != '_') return 0;
  int number = 0;
  for (arch += 3; *arch >= '0' && *arch <= '9' && number < 10000; ++arch)
    number = number * 10 + (*arch - '0');
  return number;
}

bool runs_on(const char* target, const Device& device) {
  const int made_for = capability(target);
  if (suffix(target) == 'a') return device.capability == made_for;
  return device.capability / 10 == made_for / 10 && device.capability >= made_for;
}

bool compiles_on(const char* target, const Device& device) {
  return suffix(target) ? runs_on(target, device) : device.capability >= capability(target);
}

bool well_formed(const deepgen_kernel& k, const deepgen_function& f) {
  if (!has_gpu_description(k, f) || (!k.gpu->code && !k.gpu->ptx) || !capability(k.gpu->target)) return false;
  if (k.vendor && !deepgen::well_formed(*k.vendor, f, DEEPGEN_LIBRARY_CUBLASLT)) return false;
  if (k.map_count > most_maps || !has_whole_arrays(k)) return false;
  for (uint32_t i = 0; i < k.arg_count; ++i)
    if (is_map(k.args[i]) && !has_map(k, mapped_operand(k.args[i]))) return false;
  return true;
}

bool concerns_code(Result r) {
  switch (r) {
  case invalid_value: // more shared memory than the device has
  case invalid_image:
  case no_binary_for_gpu:
  case invalid_ptx:
  case jit_compiler_not_found:
  case unsupported_ptx_version:
  case jit_compilation_disabled:
  case invalid_source:
  case not_found:
  case out_of_resources:
  case not_supported:
    return true;
  default: // memory, the context, a capture: another kernel would fail as well, a later call may not
    return false;
  }
}

Result load(const Driver& d, const Device& device, const deepgen_kernel& k, PreparedLaunch* launches) {
  Result result = no_binary_for_gpu;
  if (k.gpu->code && runs_on(k.gpu->target, device)) {
    result = load_form(d, device, k, false, launches);
    if (!concerns_code(result)) return result;
  }
  if (k.gpu->ptx && compiles_on(k.gpu->target, device)) result = load_form(d, device, k, true, launches);
  return result;
}

void unload(const Driver& d, const deepgen_gpu_code& code) {
  auto* loaded = static_cast<Loaded*>(*code.state);
  if (!loaded) return;
  for (Library library : {loaded->cubin, loaded->ptx})
    if (library && d.library_unload) d.library_unload(library);
  std::free(loaded);
  *code.state = nullptr;
}

Result load_into_context(const Driver& d, const PreparedLaunch& p) {
  Function function = nullptr;
  if (Result r = d.kernel_function(&function, p.kernel)) return r;
  return d.function_load ? d.function_load(function) : success;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
