#include "runtime/cpu/select.h"

#include "runtime/core/arguments.h"
#include "runtime/core/part_index.h"
#include "runtime/core/pool.h"
#include "runtime/core/scratch.h"
#include "runtime/cpu/blas.h"
#include "runtime/cpu/cpu.h"

#include <cstring>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

bool well_formed(const deepgen_kernel& k, const deepgen_function& f) {
  if (!k.config || !k.entry || !k.args || k.arg_count > slots_of(f.op)) return false;
  for (uint32_t i = 0; i < k.arg_count; ++i)
    if (k.args[i] >= slots_of(f.op) || is_map(k.args[i])) // tensor maps are for GPUs
      return false;
  if (k.vendor && !blas::well_formed(*k.vendor)) return false;
  return k.tiles_m >= 1 && k.tiles_n >= 1 && k.tiles_b >= 1 && k.grain_m >= 1 && k.grain_n >= 1;
}

bool runs_on(uint32_t needed, uint32_t present) {
  return (needed & DEEPGEN_ISA_LEVEL) <= (present & DEEPGEN_ISA_LEVEL) &&
         !(needed & ~DEEPGEN_ISA_LEVEL & ~present);
}

bool is_cpu(const deepgen_kernel& k) { return std::strcmp(k.arch, "cpu") == 0; }

/// Behind a kernel that takes some sizes alone are others of the CPU, which need no higher level, up to one
/// that takes any sizes.
bool good_order(const deepgen_function& f) {
  const deepgen_kernel* last = nullptr;
  for (uint32_t i = 0; i < f.kernel_count; ++i) {
    const deepgen_kernel& k = f.kernels[i];
    if (!k.arch || (is_cpu(k) && !well_formed(k, f))) return false;
    if (!is_cpu(k)) continue;
    if (k.packed_b != (f.packed_b ? f.packed_b->layout : 0)) return false;
    if (last && last->taken && (last + 1 != &k || !runs_on(k.isa, last->isa))) return false;
    last = &k;
  }
  return !last || !last->taken;
}

/// The largest workspace of the kernels that calls may take, from the first one on.
size_t most_workspace(const deepgen_function& f, const deepgen_kernel* first) {
  size_t most = 0;
  for (const deepgen_kernel* k = first;; ++k) {
    most = k->workspace > most ? k->workspace : most;
    if (!k->taken || k + 1 == f.kernels + f.kernel_count) return most;
  }
}

deepgen_status select(const deepgen_function& f) {
  if (!f.selected || !f.kernels || !has_good_operands(f) || !good_order(f)) return DEEPGEN_ERROR_ARGUMENT;
  const uint32_t isa = cpu::usable_isa();
  for (uint32_t i = 0; i < f.kernel_count; ++i) {
    const deepgen_kernel& k = f.kernels[i];
    if (!is_cpu(k) || !runs_on(k.isa, isa)) continue;
    if (k.vendor) blas::look_for(*k.vendor);
    index_parts(f, &k);
    __atomic_store_n(f.selected, &k, __ATOMIC_RELEASE);
    return scratch::reserve(most_workspace(f, &k)) ? DEEPGEN_OK : DEEPGEN_ERROR_WORKSPACE;
  }
  __atomic_store_n(f.selected, static_cast<const deepgen_kernel*>(nullptr), __ATOMIC_RELEASE);
  return DEEPGEN_ERROR_NO_KERNEL;
}

} // namespace

const deepgen_kernel* selected_kernel(const deepgen_function& f) {
  if (!f.selected) return nullptr;
  const deepgen_kernel* kernel = __atomic_load_n(f.selected, __ATOMIC_ACQUIRE);
  if (kernel) return kernel;
  deepgen_register(&f, 1);
  return __atomic_load_n(f.selected, __ATOMIC_ACQUIRE);
}

const deepgen_kernel* kernel_for(const deepgen_function& f, const int64_t* sizes) {
  const deepgen_kernel* k = selected_kernel(f);
  if (k && f.kernel_count >= fewest_indexed)
    if (const deepgen_kernel* part = indexed_part(f, k, sizes)) return part;
  while (k && !takes(*k, sizes)) ++k; // the last one takes all
  return k;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen

int deepgen_register(const deepgen_function* functions, uint32_t count) {
  if (!functions && count) return DEEPGEN_ERROR_NULL;
  if (count && !deepgen::is_current(functions[0])) // nor is the next one where it seems to be
    return DEEPGEN_ERROR_VERSION;
  deepgen::pool::install_handlers();
  deepgen_status first_error = DEEPGEN_OK;
  for (uint32_t i = 0; i < count; ++i) {
    const deepgen_status status = deepgen::select(functions[i]);
    if (first_error == DEEPGEN_OK) first_error = status;
  }
  return first_error;
}
