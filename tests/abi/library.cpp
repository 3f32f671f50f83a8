// A library as the generator makes it, small: d[m] = NUMBER * a[m], with NUMBER in the names of its
// functions. It compiles with the headers of every version.
#include <deepgen/kernel_abi.h>
#include <deepgen/runtime.h>

#define PASTED(prefix, number) prefix##number
#define PASTE(prefix, number) PASTED(prefix, number)
#define TEXTUAL(number) #number
#define TEXT(number) TEXTUAL(number)
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kTiles = 64;
constexpr uint8_t kArgs[] = {DEEPGEN_ARG_A, DEEPGEN_ARG_D, DEEPGEN_ARG_M0, DEEPGEN_ARG_M1,
                             DEEPGEN_ARG_WORKSPACE};
constexpr size_t kScratch = 1 << 20;

void multiply(const uint64_t* x) {
  auto* scratch = reinterpret_cast<volatile float*>(x[4]);
  for (uint64_t m = x[2]; m < x[3]; ++m) {
    for (size_t i = 0; i < kScratch / sizeof(float); i += 1024)
      scratch[i] = reinterpret_cast<const float*>(x[0])[m];
    reinterpret_cast<float*>(x[1])[m] = NUMBER * scratch[0];
  }
}

deepgen_kernel kernel{};
const deepgen_kernel* selected = nullptr;
deepgen_function function{};
#if defined DEEPGEN_ABI
deepgen_operand matrix(uint8_t slot, uint8_t ld, size_t field, size_t ld_field, int64_t rows,
                       uint32_t flags) {
  deepgen_operand x{};
  x.slot = slot, x.ld = ld, x.stride = DEEPGEN_ARG_COUNT, x.flags = DEEPGEN_OPERAND_MATRIX | flags;
  x.field = uint32_t(field), x.ld_field = uint32_t(ld_field);
  x.rows = rows, x.columns = x.entries = 1;
  return x;
}
const deepgen_operand operands[] = {matrix(DEEPGEN_ARG_A, DEEPGEN_ARG_LDA, offsetof(deepgen_gemm_args, a),
                                           offsetof(deepgen_gemm_args, lda), kTiles, 0),
                                    matrix(DEEPGEN_ARG_B, DEEPGEN_ARG_LDB, offsetof(deepgen_gemm_args, b),
                                           offsetof(deepgen_gemm_args, ldb), 1, 0),
                                    matrix(DEEPGEN_ARG_D, DEEPGEN_ARG_LDD, offsetof(deepgen_gemm_args, d),
                                           offsetof(deepgen_gemm_args, ldd), kTiles, DEEPGEN_OPERAND_OUT)};
#endif
float b = 0;

int describe() {
  kernel.arch = "cpu", kernel.config = "test", kernel.isa = 1, kernel.entry = multiply;
  kernel.args = kArgs, kernel.arg_count = sizeof kArgs, kernel.workspace = kScratch;
  kernel.tiles_m = kTiles, kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
  function.name = TEXT(NUMBER), function.problem = "gemm ...";
#if defined DEEPGEN_ABI
  function.operands = operands, function.operand_count = 3, function.work = 1e9; // enough to be split
#else
  function.m = kTiles, function.n = function.batch = 1, function.k = 1 << 20;
  function.a_rows = kTiles, function.a_columns = function.b_rows = function.b_columns = 1;
#endif
  function.kernels = &kernel, function.kernel_count = 1, function.selected = &selected;
  return deepgen_register(&function, 1);
}
const int registered = describe();

} // namespace

EXPORT int PASTE(library_register_, NUMBER)() { return registered; }

/// The status.
EXPORT int PASTE(library_run_, NUMBER)(const float* a, float* d) {
  deepgen_gemm_args args;
  args.a = a, args.b = &b, args.d = d;
  return deepgen_run_gemm(&function, &args);
}
EXPORT int PASTE(library_threads_, NUMBER)(int count) { return deepgen_set_num_threads(count); }
EXPORT const char* PASTE(library_words_, NUMBER)(int status) {
  return deepgen_status_string(deepgen_status(status));
}
