#include "runtime/gpu/gpu.h"
#include "runtime/nvidia/cuda_select.h"
#include "runtime/nvidia/cuda_tensor_map.h"

namespace deepgen::nvidia {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

deepgen_status enqueue(const Driver& d, GpuCall& call, const PreparedKernel& prepared, EncodedMaps* maps) {
  const deepgen_kernel& k = *prepared.kernel;
  void* parameters[DEEPGEN_ARG_COUNT];
  for (uint32_t i = 0; i < k.arg_count; ++i) {
    const uint8_t arg = k.args[i];
    // The driver reads as many bytes as the parameter has: a scalar of 4 bytes lies in the low ones.
    parameters[i] = is_map(arg) ? static_cast<void*>(maps->of_slot[map_number(arg)])
                                : static_cast<void*>(&call.values.slot[arg]);
  }
  for (uint32_t i = 0; i < k.launch_count; ++i) {
    LaunchConfig config = prepared.launches[i].config;
    config.stream = call.stream;
    lower_grid(k.launches[i], call.values.size, config.grid);
    const auto function = reinterpret_cast<Function>(prepared.launches[i].kernel);
    if (Result r = d.launch(&config, function, parameters, nullptr)) return failure(r);
  }
  return DEEPGEN_OK;
}

/// Apart from launch(), as the maps take kilobytes of the stack. `unaddressable`: nothing was enqueued.
[[gnu::noinline]] deepgen_status enqueue_with_maps(const Driver& d, GpuCall& call,
                                                   const PreparedKernel& prepared, bool& unaddressable) {
  EncodedMaps maps;
  const Result r =
      encode_maps(d, call.function, *prepared.kernel, call.values, call.args.reads_optional, maps);
  unaddressable = r == invalid_value;
  return unaddressable ? DEEPGEN_OK : r == success ? enqueue(d, call, prepared, &maps) : failure(r);
}

deepgen_status enqueue_first(const Driver& d, GpuCall& call, const Choice& choice) {
  const Placement placement = placement_of(call);
  bool unaddressable = false;
  for (uint32_t i = Selection::first_place(choice, call.values.size); i < choice.count; ++i) {
    const PreparedKernel& prepared = choice.kernels[i];
    if (!meets(placement, call.values.size, *prepared.kernel, call.function.operand_count)) continue;
    auto vendors = DEEPGEN_OK;
    if (prepared.call && enqueue_call(d, call, *prepared.kernel->vendor, *prepared.call, vendors))
      return vendors;
    if (deepgen_status status = take_workspace(call, *prepared.kernel))
      return status; // maps may be of parts of it
    if (!prepared.kernel->map_count) return enqueue(d, call, prepared, nullptr);
    const deepgen_status status = enqueue_with_maps(d, call, prepared, unaddressable);
    if (!unaddressable) return status;
  }
  return unaddressable ? failure(invalid_value) : Selection::no_kernel(choice);
}

deepgen_status launch(const deepgen_function& f, const CallArguments& args, deepgen_stream stream) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (deepgen_status status = Selection::current_choice(f, d, choice)) return status;
  GpuCall call(f, args, stream);
  if (deepgen_status status = check_arguments(f, args, call.values)) return status;
  if (call.values.writes_nothing) return DEEPGEN_OK;
  return enqueue_first(*d, call, *choice);
}

deepgen_status prepare(const deepgen_function& f) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (deepgen_status status = Selection::current_choice(f, d, choice)) return status;
  LoadsDuringCapture loads(*d);
  for (uint32_t i = 0; i < choice->count; ++i)
    for (uint32_t j = 0; j < choice->kernels[i].kernel->launch_count; ++j)
      if (Result r = load_into_context(*d, choice->kernels[i].launches[j])) return failure(r);
  return DEEPGEN_OK;
}

} // namespace

const GpuVendor vendor = {Selection::current, launch, prepare, Selection::describe, Selection::forget};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::nvidia
