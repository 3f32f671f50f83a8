#include "runtime/core/arguments.h"
#include "runtime/core/floating_point.h"
#include "runtime/core/pool.h"
#include "runtime/core/scratch.h"
#include "runtime/cpu/select.h"
#include "runtime/cpu/split.h"

#include <cstring>

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {
namespace {

/// Below this, handing out work costs more than it saves.
constexpr double kSerialFlops = 4e6;
constexpr size_t kWorkspaceAlign = 64;

struct Call {
  explicit Call(const deepgen_kernel& k) : kernel(k) {} // leaves `values` to check_arguments()
  const deepgen_kernel& kernel;
  ArgumentValues values;
  Split split;
  FloatingPoint floating_point;
  char* workspace = nullptr; ///< the caller's, a piece a task; null: scratch slots
};

size_t piece_bytes(const deepgen_kernel& k) {
  return (k.workspace + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
}

/// What the problem is split for. A split never has more tasks than this.
int threads_for(const deepgen_function& f) { return f.work < kSerialFlops ? 1 : deepgen_get_num_threads(); }

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
  run_range(call.kernel, values, task_range(call.kernel, call.split, index), workspace);
}

deepgen_status check_workspace(const CallArguments& args, Call& call) {
  const deepgen_kernel& k = call.kernel;
  if (!k.workspace) return DEEPGEN_OK;
  if (!args.workspace) return scratch::reserve(k.workspace) ? DEEPGEN_OK : DEEPGEN_ERROR_WORKSPACE;
  if (uintptr_t(args.workspace) % kWorkspaceAlign ||
      args.workspace_bytes / piece_bytes(k) < size_t(call.split.count()))
    return DEEPGEN_ERROR_WORKSPACE;
  call.workspace = static_cast<char*>(args.workspace);
  return DEEPGEN_OK;
}

deepgen_status run(const deepgen_function& function, const CallArguments& args) {
  const deepgen_kernel* kernel = selected_kernel(function);
  if (!kernel) return DEEPGEN_ERROR_NO_KERNEL;
  Call call(*kernel);
  if (deepgen_status status = check_arguments(function, args, call.values)) return status;
  const int threads = threads_for(function);
  if (threads > 1) call.split = split_tiles(*kernel, threads);
  if (deepgen_status status = check_workspace(args, call)) return status;
  if (call.split.count() > 1 && pool::run(call.split.count(), run_task, &call)) {
    call.floating_point.take_flags();
    return DEEPGEN_OK;
  }
  run_range(*kernel, call.values, {0, kernel->tiles_m, 0, kernel->tiles_n, 0, kernel->tiles_b},
            call.workspace);
  return DEEPGEN_OK;
}

} // namespace
} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE

using namespace deepgen;

deepgen_status deepgen_run_gemm(const deepgen_function* function, const deepgen_gemm_args* args) {
  const deepgen_status status = accept(function, args);
  return status ? status : run(*function, call_arguments(*args));
}

deepgen_status deepgen_run_rows(const deepgen_function* function, const deepgen_rows_args* args) {
  const deepgen_status status = accept(function, args);
  return status ? status : run(*function, call_arguments(*args));
}

size_t deepgen_workspace_size(const deepgen_function* function) {
  const deepgen_kernel* kernel = function && is_current(*function) ? selected_kernel(*function) : nullptr;
  if (!kernel) return 0;
  const int threads = threads_for(*function);
  return piece_bytes(*kernel) * size_t(threads > 1 ? split_tiles(*kernel, threads).count() : 1);
}

const char* deepgen_selected_config(const deepgen_function* function) {
  const deepgen_kernel* kernel = function && is_current(*function) ? selected_kernel(*function) : nullptr;
  return kernel ? kernel->config : nullptr;
}
