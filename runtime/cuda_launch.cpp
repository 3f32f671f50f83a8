#include "runtime/arguments.h"
#include "runtime/cuda_select.h"
#include "runtime/cuda_tensor_map.h"

namespace deepgen::nvidia {
namespace {

constexpr uintptr_t workspace_align = 256;

struct LaunchCall {
  LaunchCall(const Driver& d, const deepgen_function& f, const deepgen_gemm_args& a, deepgen_stream s)
      : driver(d), function(f), args(a), stream(s) {} // leaves `values` to check_arguments()
  const Driver& driver;
  const deepgen_function& function;
  const deepgen_gemm_args& args;
  deepgen_stream stream;
  ArgumentValues values;
};

/// Every address bit that is set in some base, leading dimension or stride of an operand, in bytes.
struct AddressBits {
  uint64_t a, b, d;
};

AddressBits address_bits(const LaunchCall& call) {
  const deepgen_function& f = call.function;
  auto bits = [&](deepgen_arg base, deepgen_arg ld, deepgen_arg stride, uint8_t type) {
    const uint64_t* slot = call.values.slot;
    return slot[base] | slot[ld] * size_of(type) | (f.batch > 1 ? slot[stride] * size_of(type) : 0);
  };
  AddressBits all{bits(DEEPGEN_ARG_A, DEEPGEN_ARG_LDA, DEEPGEN_ARG_STRIDE_A, f.a_type),
                  bits(DEEPGEN_ARG_B, DEEPGEN_ARG_LDB, DEEPGEN_ARG_STRIDE_B, f.b_type),
                  bits(DEEPGEN_ARG_D, DEEPGEN_ARG_LDD, DEEPGEN_ARG_STRIDE_D, f.d_type)};
  if (reads_c(call.args)) all.d |= bits(DEEPGEN_ARG_C, DEEPGEN_ARG_LDC, DEEPGEN_ARG_STRIDE_C, f.d_type);
  // Zero when the function has no such operand.
  all.d |= bits(DEEPGEN_ARG_RESIDUAL, DEEPGEN_ARG_LD_RESIDUAL, DEEPGEN_ARG_STRIDE_RESIDUAL, f.epilogue_type);
  all.d |=
      bits(DEEPGEN_ARG_MULTIPLIER, DEEPGEN_ARG_LD_MULTIPLIER, DEEPGEN_ARG_STRIDE_MULTIPLIER, f.epilogue_type);
  return all;
}

bool meets(const AddressBits& bits, const deepgen_kernel& k) {
  return !((bits.a & (k.align_a - 1)) | (bits.b & (k.align_b - 1)) | (bits.d & (k.align_d - 1)));
}

deepgen_status take_workspace(LaunchCall& call, const deepgen_kernel& k) {
  if (!k.workspace) return DEEPGEN_OK;
  const auto address = uintptr_t(call.args.workspace);
  if (!address || address % workspace_align || call.args.workspace_bytes < k.workspace)
    return DEEPGEN_ERROR_WORKSPACE;
  call.values.slot[DEEPGEN_ARG_WORKSPACE] = address;
  return DEEPGEN_OK;
}

deepgen_status enqueue(LaunchCall& call, const PreparedKernel& prepared, EncodedMaps* maps) {
  const deepgen_kernel& k = *prepared.kernel;
  void* parameters[DEEPGEN_ARG_COUNT];
  for (uint32_t i = 0; i < k.arg_count; ++i) {
    const uint8_t arg = k.args[i];
    // The driver reads as many bytes as the parameter has: a scalar of 4 bytes lies in the low ones.
    parameters[i] = arg >= DEEPGEN_ARG_MAP_A ? static_cast<void*>(maps->of_slot[arg - DEEPGEN_ARG_MAP_A])
                                             : static_cast<void*>(&call.values.slot[arg]);
  }
  for (uint32_t i = 0; i < k.launch_count; ++i) {
    LaunchConfig config = prepared.launches[i].config;
    config.stream = call.stream;
    const auto function = reinterpret_cast<Function>(prepared.launches[i].kernel);
    if (Result r = call.driver.launch(&config, function, parameters, nullptr)) return failure(r);
  }
  return DEEPGEN_OK;
}

/// Apart from launch(), as the maps take kilobytes of the stack. `unaddressable`: nothing was enqueued.
[[gnu::noinline]] deepgen_status enqueue_with_maps(LaunchCall& call, const PreparedKernel& prepared,
                                                   bool& unaddressable) {
  EncodedMaps maps;
  const Result r =
      encode_maps(call.driver, call.function, *prepared.kernel, call.values, reads_c(call.args), maps);
  unaddressable = r == invalid_value;
  return unaddressable ? DEEPGEN_OK : r == success ? enqueue(call, prepared, &maps) : failure(r);
}

deepgen_status launch(LaunchCall& call, const Choice& choice) {
  const AddressBits bits = address_bits(call);
  bool unaddressable = false;
  for (uint32_t i = 0; i < choice.count; ++i) {
    const PreparedKernel& prepared = choice.kernels[i];
    if (!meets(bits, *prepared.kernel)) continue;
    if (deepgen_status status = take_workspace(call, *prepared.kernel)) return status; // maps may be of parts of it
    if (!prepared.kernel->map_count) return enqueue(call, prepared, nullptr);
    const deepgen_status status = enqueue_with_maps(call, prepared, unaddressable);
    if (!unaddressable) return status;
  }
  return unaddressable ? failure(invalid_value) : DEEPGEN_ERROR_NO_KERNEL;
}

/// The choice for the current device, and the driver that made it.
deepgen_status current_choice(const deepgen_function* f, const Driver*& d, const Choice*& choice) {
  if (!f) return DEEPGEN_ERROR_NULL;
  d = driver();
  return d ? choose(*d, *f, choice) : DEEPGEN_ERROR_NO_DRIVER;
}

} // namespace
} // namespace deepgen::nvidia

using namespace deepgen::nvidia;

deepgen_status deepgen_launch_gemm(const deepgen_function* function, const deepgen_gemm_args* args,
                                   deepgen_stream stream) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (!args) return DEEPGEN_ERROR_NULL;
  if (deepgen_status status = current_choice(function, d, choice)) return status;
  LaunchCall call(*d, *function, *args, stream);
  if (deepgen_status status = deepgen::check_arguments(*function, *args, call.values)) return status;
  return launch(call, *choice);
}

deepgen_status deepgen_prepare(const deepgen_function* function) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (deepgen_status status = current_choice(function, d, choice)) return status;
  LoadsDuringCapture loads(*d);
  for (uint32_t i = 0; i < choice->count; ++i)
    for (uint32_t j = 0; j < choice->kernels[i].kernel->launch_count; ++j)
      if (Result r = load_into_context(*d, choice->kernels[i].launches[j])) return failure(r);
  return DEEPGEN_OK;
}

size_t deepgen_launch_workspace_size(const deepgen_function* function) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  return current_choice(function, d, choice) == DEEPGEN_OK ? choice->workspace : 0;
}

const char* deepgen_launch_config(const deepgen_function* function) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  return current_choice(function, d, choice) == DEEPGEN_OK ? choice->kernels[0].kernel->config : nullptr;
}
