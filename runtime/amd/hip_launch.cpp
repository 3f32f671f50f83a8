#include "runtime/amd/hip_load.h"
#include "runtime/gpu/gpu.h"

namespace deepgen::amd {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

using Selection = GpuSelection<Vendor>;
using Choice = Selection::Choice;

/// HIP lays the parameters out as the code object's metadata says, and reads as many bytes of each as it has
/// there: a scalar of 4 bytes lies in the low ones. So the layout is stated once, by the compiler.
deepgen_status enqueue(const Driver& d, GpuCall& call, const Selection::PreparedKernel& prepared) {
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

deepgen_status launch(const deepgen_function& f, const CallArguments& args, deepgen_stream stream) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  if (deepgen_status status = Selection::current_choice(f, d, choice)) return status;
  GpuCall call(f, args, stream);
  if (deepgen_status status = check_arguments(f, args, call.values)) return status;
  if (call.values.writes_nothing) return DEEPGEN_OK;
  const Placement placement = placement_of(call);
  for (uint32_t i = Selection::first_place(*choice, call.values.size); i < choice->count; ++i) {
    const Selection::PreparedKernel& prepared = choice->kernels[i];
    if (!meets(placement, call.values.size, *prepared.kernel, f.operand_count)) continue;
    auto vendors = DEEPGEN_OK;
    if (prepared.call && enqueue_call(*d, call, *prepared.kernel->vendor, *prepared.call, vendors))
      return vendors;
    return enqueue(*d, call, prepared);
  }
  return Selection::no_kernel(*choice);
}

/// Choosing loads the code for the device.
deepgen_status prepare(const deepgen_function& f) {
  const Driver* d = nullptr;
  const Choice* choice = nullptr;
  return Selection::current_choice(f, d, choice);
}

} // namespace

const GpuVendor vendor = {Selection::current, launch, prepare, Selection::describe, Selection::forget};

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::amd
