#include "runtime/amd/hip_load.h"
#include "runtime/gpu/gpu.h"

namespace deepgen::amd::inline DEEPGEN_ABI_NAMESPACE {
namespace {

using Choice = GpuSelection<Vendor>::Choice;

/// HIP lays the parameters out as the code object's metadata says, and reads as many bytes of each as it has
/// there: a scalar of 4 bytes lies in the low ones. So the layout is stated once, by the compiler.
deepgen_status enqueue(const Driver& d, GpuCall& call, const GpuSelection<Vendor>::PreparedKernel& prepared) {
  const deepgen_kernel& k = *prepared.kernel;
  if (deepgen_status status = take_workspace(call, k)) return status;
  void* parameters[DEEPGEN_ARG_COUNT];
  for (uint32_t i = 0; i < k.arg_count; ++i) parameters[i] = &call.values.slot[k.args[i]];
  for (uint32_t i = 0; i < k.launch_count; ++i) {
    const PreparedLaunch& p = prepared.launches[i];
    uint32_t grid[3] = {p.grid[0], p.grid[1], p.grid[2]};
    lower_grid(k.launches[i], call.values.size, grid);
    if (Result r = d.launch(p.function, grid[0], grid[1], grid[2], p.block[0], p.block[1], p.block[2],
                            p.shared, call.stream, parameters, nullptr))
      return failure(r);
  }
  return DEEPGEN_OK;
}

deepgen_status current() {
  auto none = DEEPGEN_OK;
  const Driver* d = driver(&none);
  int device = -1;
  if (!d) return none;
  return d->get_device(&device) == success ? DEEPGEN_OK : DEEPGEN_ERROR_NO_CONTEXT;
}

/// The choice for the current device, and the driver that made it.
deepgen_status current_choice(const deepgen_function& f, const Driver*& d, const Choice*& choice) {
  auto none = DEEPGEN_OK;
  d = driver(&none);
  return d ? GpuSelection<Vendor>::choose(*d, f, choice) : none;
}

deepgen_status launch(const deepgen_function& f, const CallArguments& args, deepgen_stream stream) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (deepgen_status status = current_choice(f, d, choice)) return status;
  GpuCall call(f, args, stream);
  if (deepgen_status status = check_arguments(f, args, call.values)) return status;
  if (call.values.writes_nothing) return DEEPGEN_OK;
  const Placement placement = placement_of(call);
  for (uint32_t i = 0; i < choice->count; ++i)
    if (meets(placement, call.values.size, *choice->kernels[i].kernel, f.operand_count))
      return enqueue(*d, call, choice->kernels[i]);
  return DEEPGEN_ERROR_NO_KERNEL;
}

/// Choosing loads the code for the device.
deepgen_status prepare(const deepgen_function& f) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  return current_choice(f, d, choice);
}

deepgen_status describe(const deepgen_function& f, const int64_t* sizes, const char*& config,
                        size_t& workspace) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (deepgen_status status = current_choice(f, d, choice)) return status;
  GpuSelection<Vendor>::describe(*choice, f, sizes, config, workspace);
  return DEEPGEN_OK;
}

void forget(const deepgen_function& f) {
  GpuSelection<Vendor>::forget([] { return driver(); }, f);
}

} // namespace

const GpuVendor vendor = {current, launch, prepare, describe, forget};

} // namespace deepgen::amd::inline DEEPGEN_ABI_NAMESPACE
