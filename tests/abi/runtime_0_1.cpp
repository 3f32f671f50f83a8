// In place of the runtime of DeepGen 0.1: its symbols, visible as they were. Those of the interface work;
// those that were the runtime's own end the process, as a runtime of another version that came to call them
// might have.
#include <deepgen/kernel_abi.h>
#include <deepgen/runtime.h>

#include <cstdlib>
#include <cstring>

namespace deepgen {
struct ArgumentValues;
deepgen_status check_arguments(const deepgen_function&, const deepgen_gemm_args&, ArgumentValues&) {
  std::abort();
}
const deepgen_kernel* selected_kernel(const deepgen_function&) { std::abort(); }
bool has_known_types(const deepgen_function&) { std::abort(); }
namespace pool {
bool run(int, deepgen_task, void*) { std::abort(); }
void install_fork_handler() { std::abort(); }
} // namespace pool
namespace scratch {
bool reserve(size_t) { std::abort(); }
void reset_after_fork() { std::abort(); }
} // namespace scratch
namespace cpu {
uint32_t hardware_level() { std::abort(); }
} // namespace cpu
} // namespace deepgen

/// A library of another version has other structs.
static void expect_own(const deepgen_function* f) {
  if (std::strcmp(f->name, "1") != 0) std::abort();
}
int deepgen_register(const deepgen_function* f, uint32_t) {
  expect_own(f);
  return DEEPGEN_OK;
}
deepgen_status deepgen_run_gemm(const deepgen_function* f, const deepgen_gemm_args* args) {
  expect_own(f);
  static char scratch[1 << 20];
  const uint64_t values[] = {uintptr_t(args->a), uintptr_t(args->d), 0, uint64_t(f->m), uintptr_t(scratch)};
  f->kernels[0].entry(values);
  return DEEPGEN_OK;
}
deepgen_status deepgen_set_num_threads(int) { return DEEPGEN_OK; }
const char* deepgen_status_string(deepgen_status) { return "the words of 0.1"; }
