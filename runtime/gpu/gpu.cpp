#include "runtime/gpu/gpu.h"

#include "runtime/core/part_index.h"
#include "runtime/core/pool.h"

#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr uintptr_t workspace_align = 256;

struct DriverError {
  int code;
  const char* (*text_of)(int);
};
/// initial-exec: a lazily allocated thread-local variable would call malloc inside a call.
thread_local DriverError last_error __attribute__((tls_model("initial-exec"))) = {};

/// Whose kernels the function has; of both vendors', those for the device that is current on this thread. HIP
/// has a current device wherever it has any, so that CUDA, which has to be given one, is asked first.
const GpuVendor& vendor_of(const deepgen_function& f) {
  const void* devices = f.devices ? __atomic_load_n(f.devices, __ATOMIC_ACQUIRE) : nullptr;
  const auto* known = static_cast<const DeviceTable*>(devices);
  const GpuVendor* only = known ? known->only : only_vendor(f);
  if (only) return *only;
  const deepgen_status cuda = nvidia::vendor.current();
  // An unknown one is no absent one: the call tells what is the matter.
  if (cuda == DEEPGEN_OK || cuda == DEEPGEN_ERROR_DRIVER) return nvidia::vendor;
  return amd::vendor.current() == DEEPGEN_OK || cuda == DEEPGEN_ERROR_NO_DRIVER ? amd::vendor
                                                                                : nvidia::vendor;
}

/// The first of three slots with the strides of an attention's operand; DEEPGEN_ARG_COUNT: it has none.
uint8_t token_slot(uint8_t slot) {
  switch (slot) {
  case DEEPGEN_ARG_Q:
    return DEEPGEN_ARG_Q_TOKEN;
  case DEEPGEN_ARG_KEY:
    return DEEPGEN_ARG_KEY_TOKEN;
  case DEEPGEN_ARG_VALUE:
    return DEEPGEN_ARG_VALUE_TOKEN;
  case DEEPGEN_ARG_OUT:
    return DEEPGEN_ARG_OUT_TOKEN;
  default:
    return DEEPGEN_ARG_COUNT;
  }
}

bool is_power_of_two(uint32_t x) { return x && !(x & (x - 1)); }

/// Sizes are at most 2^31, and what a rule gives for the largest call is a grid or fits into memory.
bool is_rule(const deepgen_size_rule& rule) {
  for (const int64_t step : rule.steps)
    if (step < 0) return false;
  return rule.factor >= 0;
}

/// What the function says of calls of these sizes, where it takes them.
GpuDescription describe(const deepgen_function* function, const deepgen_call_sizes* passed) {
  GpuDescription about = {nullptr, 0, nullptr};
  if (!function || !is_current(*function)) return about;
  int64_t sizes[DEEPGEN_SIZES];
  if (passed) {
    const int64_t list[DEEPGEN_SIZES] = {passed->m, passed->n, passed->k, passed->batch};
    if (take_sizes(*function, list, sizes)) return about;
  }
  vendor_of(*function).describe(*function, passed ? sizes : nullptr, about);
  return about;
}

} // namespace

const GpuVendor* only_vendor(const deepgen_function& f) {
  bool sm = false, gfx = false;
  for (uint32_t i = 0; f.kernels && i < f.kernel_count; ++i) {
    const char* arch = f.kernels[i].arch;
    sm |= arch && arch[0] == 's';
    gfx |= arch && arch[0] == 'g';
  }
  return sm && gfx ? nullptr : gfx ? &amd::vendor : &nvidia::vendor;
}

void keep_driver_error(int code, const char* (*text_of)(int)) { last_error = {code, text_of}; }

Placement placement_of(const GpuCall& call) {
  Placement all;
  const uint64_t* slot = call.values.slot;
  for (uint32_t i = 0; i < call.function.operand_count; ++i) {
    const deepgen_operand& x = call.function.operands[i];
    all.operand[i] = {0, 0};
    if (!is_used(x, call.args)) continue;
    all.operand[i].bits = slot[x.slot];
    if (const uint8_t token = token_slot(x.slot); token != DEEPGEN_ARG_COUNT)
      for (int stride = 0; stride < 3; ++stride)
        all.operand[i].bits |= slot[token + stride] * size_of(x.type);
    if (!(x.flags & DEEPGEN_OPERAND_MATRIX)) continue;
    all.operand[i].pitch = slot[x.ld] * size_of(x.type);
    all.operand[i].bits |= all.operand[i].pitch;
    if ((x.entries > 1 || x.entries_by) && x.stride != DEEPGEN_ARG_COUNT)
      all.operand[i].bits |= slot[x.stride] * size_of(x.type);
  }
  return all;
}

bool meets(const Placement& all, const int64_t* sizes, const deepgen_kernel& k, uint32_t operand_count) {
  if (!takes(k, sizes)) return false;
  for (uint32_t i = 0; i < operand_count; ++i) {
    const deepgen_requirement& r = k.requirements[i];
    if (all.operand[i].bits & (r.align - 1) || (r.most_pitch && all.operand[i].pitch > r.most_pitch))
      return false;
  }
  return true;
}

deepgen_status check_workspace(const CallArguments& args, size_t bytes) {
  const auto address = uintptr_t(args.workspace);
  const bool good = !bytes || (address && address % workspace_align == 0 && args.workspace_bytes >= bytes);
  return good ? DEEPGEN_OK : DEEPGEN_ERROR_WORKSPACE;
}

deepgen_status take_workspace(GpuCall& call, const deepgen_kernel& k) {
  if (!k.workspace) return DEEPGEN_OK;
  const auto address = uintptr_t(call.args.workspace);
  if (!address) return DEEPGEN_ERROR_WORKSPACE;
  if (deepgen_status status = check_workspace(call.args, workspace_at(k, call.values.size))) return status;
  call.values.slot[DEEPGEN_ARG_WORKSPACE] = address;
  return DEEPGEN_OK;
}

bool has_gpu_description(const deepgen_kernel& k, const deepgen_function& f) {
  if (!k.config || !k.args || k.arg_count > slots_of(f.op) || !k.launches || !k.launch_count ||
      (k.map_count && !k.maps) || !k.gpu || !k.gpu->state || !k.gpu->target || !k.requirements)
    return false;
  for (uint32_t i = 0; i < f.operand_count; ++i)
    if (!is_power_of_two(k.requirements[i].align)) return false;
  for (uint32_t i = 0; i < k.launch_count; ++i) {
    const deepgen_launch& l = k.launches[i];
    for (const uint32_t* x : {l.grid, l.block, l.cluster})
      if (!x[0] || !x[1] || !x[2]) return false;
    for (int j = 0; l.grid_rules && j < 3; ++j)
      if (!is_rule(l.grid_rules[j])) return false;
    if (!l.entry) return false;
  }
  for (int i = 0; k.rules && i < DEEPGEN_RULE_COUNT; ++i)
    if (!is_rule(k.rules[i])) return false;
  for (uint32_t i = 0; i < k.map_count; ++i)
    if (const deepgen_tensor_map& map = k.maps[i]; map.packed_rows_by > DEEPGEN_SIZES ||
                                                   map.packed_columns_by > DEEPGEN_SIZES ||
                                                   map.rest_of > DEEPGEN_SIZES)
      return false;
  for (uint32_t i = 0; i < k.arg_count; ++i) {
    const uint8_t arg = k.args[i];
    if (arg >= slots_of(f.op) || (arg >= DEEPGEN_ARG_M0 && arg <= DEEPGEN_ARG_B1)) return false;
  }
  return true;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen

using namespace deepgen;

deepgen_status deepgen_launch_gemm(const deepgen_function* function, const deepgen_gemm_args* args,
                                   deepgen_stream stream) {
  const deepgen_status status = accept(function, args);
  return status ? status : vendor_of(*function).launch(*function, call_arguments(*args), stream);
}

deepgen_status deepgen_launch_rows(const deepgen_function* function, const deepgen_rows_args* args,
                                   deepgen_stream stream) {
  const deepgen_status status = accept(function, args);
  return status ? status : vendor_of(*function).launch(*function, call_arguments(*args), stream);
}

deepgen_status deepgen_launch_attention(const deepgen_function* function, const deepgen_attention_args* args,
                                        deepgen_stream stream) {
  const deepgen_status status = accept(function, args);
  return status ? status : vendor_of(*function).launch(*function, call_arguments(*args), stream);
}

deepgen_status deepgen_prepare(const deepgen_function* function) {
  if (!function) return DEEPGEN_ERROR_NULL;
  return is_current(*function) ? vendor_of(*function).prepare(*function) : DEEPGEN_ERROR_VERSION;
}

size_t deepgen_launch_workspace_size(const deepgen_function* function) {
  return deepgen_launch_workspace_size_at(function, nullptr);
}

const char* deepgen_launch_config(const deepgen_function* function) {
  return deepgen_launch_config_at(function, nullptr);
}

size_t deepgen_launch_workspace_size_at(const deepgen_function* function, const deepgen_call_sizes* sizes) {
  return describe(function, sizes).workspace;
}

const char* deepgen_launch_config_at(const deepgen_function* function, const deepgen_call_sizes* sizes) {
  return describe(function, sizes).config;
}

const char* deepgen_launch_fallback(const deepgen_function* function) {
  return describe(function, nullptr).fallback;
}

void deepgen_unregister(const deepgen_function* functions, uint32_t count) {
  if (!functions || !count || !is_current(functions[0]) || pool::is_exiting()) return;
  for (uint32_t i = 0; i < count; ++i) {
    forget_parts(functions[i]);
    for (const GpuVendor* vendor : {&nvidia::vendor, &amd::vendor}) vendor->forget(functions[i]);
  }
}

int deepgen_last_driver_error(const char** text) {
  if (text) {
    *text = "";
    if (last_error.code && !(*text = last_error.text_of(last_error.code)))
      *text = "an error that this driver cannot name";
  }
  return last_error.code;
}
