// Times deepgen_launch_gemm() against cuLaunchKernelEx() of the same kernel with ready parameters, for an
// empty kernel with the parameters of a GEMM, for one with three tensor maps, and for one with two of A, and
// a function of a range of M in 45 parts against one of one kernel for the whole range: interleaved rounds in
// alternating order, median and quartiles of the CPU's time a call and of the difference.
#include <deepgen/kernel_abi.h>
#include <deepgen/runtime.h>

#include "runtime/nvidia/cuda_driver.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <random>
#include <vector>

namespace {

namespace nvidia = deepgen::nvidia;

/// What the runtime has no use for: a context.
struct Setup {
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*allocate)(uint64_t*, size_t);
  int (*synchronize)();
};

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "cuda_call_benchmark: %s failed\n", what);
  std::exit(1);
}

uint64_t start_driver(Setup& s) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::printf("no NVIDIA driver here: nothing measured\n");
    std::exit(0);
  }
  auto find = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(dlsym(library, name));
    require(entry != nullptr, name);
  };
  find(s.init, "cuInit"), find(s.retain, "cuDevicePrimaryCtxRetain"), find(s.set_current, "cuCtxSetCurrent");
  find(s.allocate, "cuMemAlloc_v2"), find(s.synchronize, "cuCtxSynchronize");
  void* context = nullptr;
  uint64_t memory = 0;
  require(s.init(0) == 0 && s.retain(&context, 0) == 0 && s.set_current(context) == 0, "opening device 0");
  require(s.allocate(&memory, 8 << 20) == 0, "allocating 8 MiB");
  return memory;
}

double seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

constexpr char plain_ptx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry deepgen_kernel(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 lda,
    .param .u64 ldb, .param .u64 ldc, .param .u64 ldd, .param .f32 alpha, .param .f32 beta) { ret; }
)";
constexpr uint8_t plain_args[] = {DEEPGEN_ARG_A,     DEEPGEN_ARG_B,   DEEPGEN_ARG_C,   DEEPGEN_ARG_D,
                                  DEEPGEN_ARG_LDA,   DEEPGEN_ARG_LDB, DEEPGEN_ARG_LDC, DEEPGEN_ARG_LDD,
                                  DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_BETA};

constexpr char mapped_ptx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry deepgen_kernel(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .align 64 .b8 d[128],
    .param .f32 alpha) { ret; }
)";
constexpr uint8_t mapped_args[] = {DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_B, DEEPGEN_ARG_MAP_D,
                                   DEEPGEN_ARG_ALPHA};
constexpr deepgen_tensor_map mapped_maps[] = {
    {DEEPGEN_ARG_A, 64, 64, 128, 256}, {DEEPGEN_ARG_B, 64, 64, 128, 256}, {DEEPGEN_ARG_D, 64, 64, 128, 0}};

constexpr char edged_ptx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry deepgen_kernel(.param .align 64 .b8 a[256], .param .align 64 .b8 b[128], .param .align 64 .b8 d[128],
    .param .f32 alpha) { ret; }
)";
constexpr deepgen_tensor_map edged_maps[] = {{DEEPGEN_ARG_A, 64, 64, 128, 256},
                                             {DEEPGEN_ARG_A, 64, 32, 128, 256},
                                             {DEEPGEN_ARG_B, 64, 64, 128, 256},
                                             {DEEPGEN_ARG_D, 64, 64, 128, 0}};

/// A bf16 GEMM of 64 x 64 x 64 whose kernel does nothing.
struct Function {
  void* volatile code_state = nullptr;
  void* volatile devices = nullptr;
  deepgen_gpu_code code{};
  deepgen_launch launch{"deepgen_kernel", {1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, 0};
  deepgen_kernel kernel{};
  deepgen_function function{};
  // A, B, C, D, alpha and beta, as the generator writes them.
  static constexpr deepgen_operand matrix(deepgen_arg slot, deepgen_arg ld, deepgen_arg stride, size_t field,
                                          size_t ld_field, size_t stride_field, uint32_t flags) {
    return {uint8_t(slot),
            uint8_t(ld),
            uint8_t(stride),
            DEEPGEN_BF16,
            DEEPGEN_OPERAND_MATRIX | flags,
            uint32_t(field),
            uint32_t(ld_field),
            uint32_t(stride_field),
            0,
            0,
            0,
            64,
            64,
            1};
  }
  deepgen_operand operands[6] = {
      matrix(DEEPGEN_ARG_A, DEEPGEN_ARG_LDA, DEEPGEN_ARG_STRIDE_A, offsetof(deepgen_gemm_args, a),
             offsetof(deepgen_gemm_args, lda), offsetof(deepgen_gemm_args, stride_a), 0),
      matrix(DEEPGEN_ARG_B, DEEPGEN_ARG_LDB, DEEPGEN_ARG_STRIDE_B, offsetof(deepgen_gemm_args, b),
             offsetof(deepgen_gemm_args, ldb), offsetof(deepgen_gemm_args, stride_b), 0),
      matrix(DEEPGEN_ARG_C, DEEPGEN_ARG_LDC, DEEPGEN_ARG_STRIDE_C, offsetof(deepgen_gemm_args, c),
             offsetof(deepgen_gemm_args, ldc), offsetof(deepgen_gemm_args, stride_c),
             DEEPGEN_OPERAND_OPTIONAL | DEEPGEN_OPERAND_IN_PLACE),
      matrix(DEEPGEN_ARG_D, DEEPGEN_ARG_LDD, DEEPGEN_ARG_STRIDE_D, offsetof(deepgen_gemm_args, d),
             offsetof(deepgen_gemm_args, ldd), offsetof(deepgen_gemm_args, stride_d), DEEPGEN_OPERAND_OUT),
      {DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_COUNT, DEEPGEN_ARG_COUNT, DEEPGEN_F32, DEEPGEN_OPERAND_SCALAR,
       offsetof(deepgen_gemm_args, alpha), 0, 0, 0, 0, 0, 1, 1, 1},
      {DEEPGEN_ARG_BETA, DEEPGEN_ARG_COUNT, DEEPGEN_ARG_COUNT, DEEPGEN_F32, DEEPGEN_OPERAND_SCALAR,
       offsetof(deepgen_gemm_args, beta), 0, 0, 0, 0, 0, 1, 1, 1}};
  deepgen_requirement requirements[6] = {{16, 0}, {16, 0}, {16, 0}, {16, 0}, {1, 0}, {1, 0}};

  Function(const char* target, const char* ptx) {
    code.target = target, code.ptx = ptx, code.state = &code_state;
    kernel.arch = kernel.config = target, kernel.gpu = &code, kernel.launches = &launch,
    kernel.launch_count = 1;
    kernel.requirements = requirements;
    function.operands = operands, function.operand_count = std::size(operands);
    function.kernels = &kernel, function.kernel_count = 1, function.devices = &devices;
  }
  Function(const Function&) = delete;
};

void print(const char* name, std::vector<double>& v) {
  std::sort(v.begin(), v.end());
  std::printf("  %-24s %7.1f ns  [%.1f, %.1f]\n", name, v[v.size() / 2], v[v.size() / 4],
              v[v.size() * 3 / 4]);
}

void compare(const char* title, Function& f, const Setup& setup, uint64_t memory) {
  constexpr int kCalls = 200, kRounds = 401; // a driver's queue holds about 1000 launches
  const nvidia::Driver& d = *nvidia::driver();
  deepgen_gemm_args args;
  args.a = args.b = reinterpret_cast<void*>(memory), args.d = reinterpret_cast<void*>(memory + (1 << 16));
  if (deepgen_status status = deepgen_prepare(&f.function)) {
    std::printf("%s: %s\n", title, deepgen_status_string(status));
    return;
  }
  // The bare side: the parameters' values do not matter to a kernel that does nothing.
  nvidia::Library library;
  nvidia::Kernel kernel;
  require(d.library_load(&library, f.code.ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) == 0,
          "loading the PTX");
  require(d.library_kernel(&kernel, library, "deepgen_kernel") == 0, "finding the kernel");
  alignas(128) static char values[256];
  std::vector<void*> parameters(f.kernel.arg_count, values);
  const nvidia::LaunchConfig config{{1, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr, 0};

  std::vector<double> bare, called, difference;
  for (int round = 0; round < kRounds; ++round) {
    double each[2];
    for (int half = 0; half < 2; ++half) {
      const int which = (half + round) % 2;
      const double begin = seconds();
      for (int i = 0; i < kCalls; ++i)
        if (which)
          deepgen_launch_gemm(&f.function, &args, nullptr);
        else
          d.launch(&config, reinterpret_cast<nvidia::Function>(kernel), parameters.data(), nullptr);
      each[which] = (seconds() - begin) / kCalls * 1e9;
      require(setup.synchronize() == 0, "running the kernels");
    }
    bare.push_back(each[0]), called.push_back(each[1]), difference.push_back(each[1] - each[0]);
  }
  std::printf("%s: median [quartiles] of %d rounds of %d calls\n", title, kRounds, kCalls);
  print("cuLaunchKernelEx()", bare), print("deepgen_launch_gemm()", called),
      print("above the bare launch", difference);
}

constexpr int kParts = 45;
constexpr int64_t kMost = 8192;

/// Gives the function a range of M in so many parts, which grow with their place as tuned ones do. All have
/// the same code.
struct Parts {
  Parts(Function& f, int count) : kernels(size_t(count), f.kernel), taken(size_t(count)) {
    const auto end = [&](int64_t x) { return kMost * x * x / (int64_t(count) * count); };
    for (int i = 0; i < count; ++i) {
      taken[size_t(i)] = {{{end(i) + 1, end(i + 1)}, {64, 64}, {64, 64}, {1, 1}}};
      kernels[size_t(i)].taken = i + 1 < count ? taken[size_t(i)].data() : nullptr;
    }
    for (int i : {0, 2, 3}) f.operands[i].rows = 1, f.operands[i].rows_by = 1; // A, C and D
    f.function.kernels = kernels.data(), f.function.kernel_count = uint32_t(count);
    f.function.sizes[0] = {1, kMost}, f.function.sizes[1] = f.function.sizes[2] = {64, 64};
    f.function.sizes[3] = {1, 1};
  }

  std::vector<deepgen_kernel> kernels;
  std::vector<std::array<deepgen_range, DEEPGEN_SIZES>> taken;
};

void compare_parts(Function& one, Function& many, const Setup& setup, uint64_t memory) {
  constexpr int kCalls = 200, kRounds = 1001;
  deepgen_gemm_args args;
  args.a = args.b = reinterpret_cast<void*>(memory), args.d = reinterpret_cast<void*>(memory + (2 << 20));
  const Parts whole(one, 1), parts(many, kParts);
  std::mt19937_64 random(1);
  std::vector<double> each[2], difference;
  for (int round = 0; round < kRounds; ++round) {
    std::array<int64_t, kCalls> m;
    for (int64_t& x : m) x = std::uniform_int_distribution<int64_t>(1, kMost)(random);
    double took[2];
    for (int half = 0; half < 2; ++half) {
      const int which = (half + round) % 2;
      const deepgen_function& f = which ? many.function : one.function;
      deepgen_status status = DEEPGEN_OK;
      const double begin = seconds();
      for (int64_t x : m) {
        args.m = x;
        if (deepgen_status s = deepgen_launch_gemm(&f, &args, nullptr)) status = s;
      }
      took[which] = (seconds() - begin) / kCalls * 1e9;
      require(setup.synchronize() == 0, "running the kernels");
      require(status == DEEPGEN_OK, deepgen_status_string(status));
    }
    each[0].push_back(took[0]), each[1].push_back(took[1]), difference.push_back(took[1] - took[0]);
  }
  std::printf("M of 1 to %d, three tensor maps: median [quartiles] of %d rounds of %d calls\n", int(kMost),
              kRounds, kCalls);
  print("one kernel", each[0]), print("45 parts", each[1]), print("above one kernel", difference);
}

} // namespace

int main() {
  Setup setup{};
  const uint64_t memory = start_driver(setup);
  require(nvidia::driver() != nullptr, "the runtime's look-up of the driver");
  Function plain("sm_80", plain_ptx);
  plain.kernel.args = plain_args, plain.kernel.arg_count = sizeof plain_args;
  compare("pointers and scalars", plain, setup, memory);
  Function mapped("sm_90", mapped_ptx);
  mapped.kernel.args = mapped_args, mapped.kernel.arg_count = sizeof mapped_args;
  mapped.kernel.maps = mapped_maps, mapped.kernel.map_count = 3;
  compare("three tensor maps", mapped, setup, memory);
  Function edged("sm_90", edged_ptx);
  edged.kernel.args = mapped_args, edged.kernel.arg_count = sizeof mapped_args;
  edged.kernel.maps = edged_maps, edged.kernel.map_count = 4;
  compare("four tensor maps, two of A", edged, setup, memory);
  Function one("sm_90", mapped_ptx), many("sm_90", mapped_ptx);
  for (Function* f : {&one, &many}) {
    f->kernel.args = mapped_args, f->kernel.arg_count = sizeof mapped_args;
    f->kernel.maps = mapped_maps, f->kernel.map_count = 3;
  }
  compare_parts(one, many, setup, memory);
}
