#include "runtime/core/arguments.h"
#include "runtime/core/floating_point.h"
#include "runtime/core/pool.h"
#include "runtime/core/scratch.h"
#include "runtime/cpu/blas.h"
#include "runtime/cpu/select.h"
#include "runtime/cpu/split.h"

#include <cstring>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr size_t kWorkspaceAlign = 64;

/// A call that is split. What calls on one thread do not need is here: reading MXCSR alone takes 5 ns.
struct Call {
  const deepgen_kernel& kernel;
  const ArgumentValues& values;
  const TileGrid& grid;
  const Split& split;
  char* workspace; ///< the caller's, a piece a task; null: scratch slots
  FloatingPoint floating_point;
};

size_t piece_bytes(const deepgen_kernel& k) {
  return (k.workspace + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
}

/// What a call of these sizes is split for. A split never has more tasks than this.
int threads_for(const deepgen_function& f, const int64_t* sizes) {
  double work = f.work;
  for (int i = 0; i < DEEPGEN_SIZES; ++i)
    if (is_ranged(f.sizes[i])) work *= double(sizes[i]) / double(f.sizes[i].most);
  return work < kSerialFlops ? 1 : deepgen_get_num_threads();
}

TileGrid grid_at(const deepgen_kernel& k, const int64_t* sizes) {
  TileGrid grid(k);
  if (!k.rules) return grid;
  grid.tiles_m = at_sizes(k.rules[DEEPGEN_RULE_TILES_M], sizes, k.tiles_m);
  grid.tiles_n = at_sizes(k.rules[DEEPGEN_RULE_TILES_N], sizes, k.tiles_n);
  grid.tiles_b = at_sizes(k.rules[DEEPGEN_RULE_TILES_B], sizes, k.tiles_b);
  return grid;
}

size_t workspace_bytes(const deepgen_function& f, const deepgen_kernel& k, const int64_t* sizes) {
  const int threads = threads_for(f, sizes);
  return piece_bytes(k) * size_t(threads > 1 ? split_tiles(grid_at(k, sizes), threads).count() : 1);
}

/// Whether the function can be asked about calls of these sizes; then what runs them, or null.
bool find_kernel(const deepgen_function* f, const deepgen_call_sizes& passed, int64_t* sizes,
                 const deepgen_kernel*& kernel) {
  if (!f || !is_current(*f)) return false;
  const int64_t list[DEEPGEN_SIZES] = {passed.m, passed.n, passed.k, passed.batch};
  if (take_sizes(*f, list, sizes)) return false;
  kernel = kernel_for(*f, sizes);
  return kernel;
}

deepgen_call_sizes largest(const deepgen_function& f) {
  return {f.sizes[0].most, f.sizes[1].most, f.sizes[2].most, f.sizes[3].most};
}

/// No compiler has seen a kernel, so that clang's check of indirect calls (-fsanitize=cfi) would stop here.
/// `values` has everything but the task's own slots.
DEEPGEN_CALLS_MACHINE_CODE void run_range(const deepgen_kernel& k, ArgumentValues& values,
                                          const TileRange& range, char* workspace) {
  scratch::Slot slot(workspace ? 0 : k.workspace);
  values.slot[DEEPGEN_ARG_WORKSPACE] = uintptr_t(workspace ? workspace : slot.data());
  values.slot[DEEPGEN_ARG_M0] = uint64_t(range.m0), values.slot[DEEPGEN_ARG_M1] = uint64_t(range.m1);
  values.slot[DEEPGEN_ARG_N0] = uint64_t(range.n0), values.slot[DEEPGEN_ARG_N1] = uint64_t(range.n1);
  values.slot[DEEPGEN_ARG_B0] = uint64_t(range.b0), values.slot[DEEPGEN_ARG_B1] = uint64_t(range.b1);
  uint64_t block[DEEPGEN_ARG_COUNT];
  for (uint32_t i = 0; i < k.arg_count; ++i) block[i] = values.slot[k.args[i]];
  k.entry(block);
}

void run_task(void* context, int index) {
  Call& call = *static_cast<Call*>(context);
  char* workspace = call.workspace ? call.workspace + size_t(index) * piece_bytes(call.kernel) : nullptr;
  ArgumentValues values = call.values;
  FloatingPoint::Scope scope(call.floating_point);
  run_range(call.kernel, values, task_range(call.grid, call.split, index), workspace);
}

/// False: there are no threads for it.
bool run_split(Call call) {
  if (!pool::run(call.split.count(), run_task, &call)) return false;
  call.floating_point.take_flags();
  return true;
}

/// `workspace` is the caller's for so many tasks, where there is one and the kernel needs one.
deepgen_status check_workspace(const CallArguments& args, const deepgen_kernel& k, int tasks,
                               char*& workspace) {
  if (!k.workspace) return DEEPGEN_OK;
  if (!args.workspace) return scratch::reserve(k.workspace) ? DEEPGEN_OK : DEEPGEN_ERROR_WORKSPACE;
  if (uintptr_t(args.workspace) % kWorkspaceAlign || args.workspace_bytes / piece_bytes(k) < size_t(tasks))
    return DEEPGEN_ERROR_WORKSPACE;
  workspace = static_cast<char*>(args.workspace);
  return DEEPGEN_OK;
}

deepgen_status run(const deepgen_function& function, const CallArguments& args) {
  const deepgen_kernel* selected = selected_kernel(function);
  if (!selected) return DEEPGEN_ERROR_NO_KERNEL; // or its operands cannot be worked with
  ArgumentValues values;
  if (deepgen_status status = check_arguments(function, args, values)) return status;
  if (values.writes_nothing) return DEEPGEN_OK;
  const deepgen_kernel& kernel = selected->taken ? *kernel_for(function, values.size) : *selected;
  const TileGrid grid = grid_at(kernel, values.size);
  const int threads = threads_for(function, values.size);
  if (kernel.vendor && blas::run(function, kernel, values, args.reads_optional, threads)) return DEEPGEN_OK;
  char* workspace = nullptr;
  if (threads > 1) {
    const Split split = split_tiles(grid, threads);
    if (deepgen_status status = check_workspace(args, kernel, split.count(), workspace)) return status;
    if (split.count() > 1 && run_split({kernel, values, grid, split, workspace, {}})) return DEEPGEN_OK;
  } else if (deepgen_status status = check_workspace(args, kernel, 1, workspace)) {
    return status;
  }
  run_range(kernel, values, {0, grid.tiles_m, 0, grid.tiles_n, 0, grid.tiles_b}, workspace);
  return DEEPGEN_OK;
}

} // namespace
} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen

using namespace deepgen;

deepgen_status deepgen_run_gemm(const deepgen_function* function, const deepgen_gemm_args* args) {
  const deepgen_status status = accept(function, args);
  return status ? status : run(*function, call_arguments(*args));
}

deepgen_status deepgen_run_rows(const deepgen_function* function, const deepgen_rows_args* args) {
  const deepgen_status status = accept(function, args);
  return status ? status : run(*function, call_arguments(*args));
}

deepgen_status deepgen_run_attention(const deepgen_function* function, const deepgen_attention_args* args) {
  const deepgen_status status = accept(function, args);
  return status ? status : run(*function, call_arguments(*args));
}

size_t deepgen_workspace_size_at(const deepgen_function* function, const deepgen_call_sizes* passed) {
  int64_t sizes[DEEPGEN_SIZES];
  const deepgen_kernel* kernel = nullptr;
  if (!passed || !find_kernel(function, *passed, sizes, kernel)) return 0;
  return workspace_bytes(*function, *kernel, sizes);
}

size_t deepgen_workspace_size(const deepgen_function* function) {
  const deepgen_kernel* k = function && is_current(*function) ? selected_kernel(*function) : nullptr;
  if (!k) return 0;
  const deepgen_call_sizes all = largest(*function);
  const int64_t sizes[DEEPGEN_SIZES] = {all.m, all.n, all.k, all.batch};
  // Smaller calls may be cut into more tasks than the largest one, up to as many as there are threads.
  if (k->taken || k->rules) {
    size_t most = 0;
    for (;; ++k) {
      most = piece_bytes(*k) > most ? piece_bytes(*k) : most;
      if (!k->taken) return most * size_t(threads_for(*function, sizes));
    }
  }
  return workspace_bytes(*function, *k, sizes);
}

const char* deepgen_selected_config_at(const deepgen_function* function, const deepgen_call_sizes* passed) {
  int64_t sizes[DEEPGEN_SIZES];
  const deepgen_kernel* kernel = nullptr;
  if (!passed || !find_kernel(function, *passed, sizes, kernel)) return nullptr;
  const deepgen_vendor_call* call = kernel->vendor;
  return call && blas::state_of(*call) == Fallback::runs ? call->text : kernel->config;
}

const char* deepgen_selected_config(const deepgen_function* function) {
  if (!function || !is_current(*function)) return nullptr;
  const deepgen_call_sizes sizes = largest(*function);
  return deepgen_selected_config_at(function, &sizes);
}

const char* deepgen_selected_fallback(const deepgen_function* function) {
  int64_t sizes[DEEPGEN_SIZES];
  const deepgen_kernel* kernel = nullptr;
  if (!function || !is_current(*function) || !find_kernel(function, largest(*function), sizes, kernel))
    return nullptr;
  return kernel->vendor ? text_of(blas::state_of(*kernel->vendor)) : nullptr;
}
