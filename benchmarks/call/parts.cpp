// Times how a call finds its kernel among 32 parts of a range, of two ranges, by the runtime's table and by
// looking at one part after the other, which it does for a function that was given back: interleaved rounds
// in random order, medians and quartiles of what each takes longer than a function of one kernel.
#include <deepgen/kernel_abi.h>
#include <deepgen/runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <random>
#include <tuple>
#include <vector>

namespace {

constexpr int kParts = 32, kCalls = 4096, kRounds = 201;
constexpr int64_t kMost = 8192;

const deepgen_operand operand = {DEEPGEN_ARG_A,
                                 DEEPGEN_ARG_LDA,
                                 DEEPGEN_ARG_STRIDE_A,
                                 DEEPGEN_F32,
                                 DEEPGEN_OPERAND_MATRIX,
                                 offsetof(deepgen_gemm_args, a),
                                 offsetof(deepgen_gemm_args, lda),
                                 offsetof(deepgen_gemm_args, stride_a),
                                 0,
                                 0,
                                 0,
                                 1,
                                 1,
                                 1};
const uint8_t kernel_arguments[] = {DEEPGEN_ARG_A};
void compute_nothing(const uint64_t*) {}

/// So many parts along M, times so many along N.
struct Function {
  Function(int along_m, int along_n) {
    for (int i = 0; i < along_m; ++i)
      for (int j = 0; j < along_n; ++j)
        taken.push_back({part(i, along_m), part(j, along_n), {32, 32}, {1, 1}});
    for (const auto& x : taken) {
      deepgen_kernel k{};
      k.arch = "cpu", k.config = "part", k.isa = 1, k.entry = compute_nothing;
      k.args = kernel_arguments, k.arg_count = 1;
      k.tiles_m = k.tiles_n = k.tiles_b = k.grain_m = k.grain_n = 1;
      k.taken = &x == &taken.back() ? nullptr : x.data();
      kernels.push_back(k);
    }
    function.name = "parts", function.problem = "", function.work = 1;
    function.operands = &operand, function.operand_count = 1;
    function.kernels = kernels.data(), function.kernel_count = uint32_t(kernels.size());
    function.selected = &selected, function.devices = &devices;
    function.sizes[0] = {1, kMost}, function.sizes[1] = {1, kMost};
    function.sizes[2] = {32, 32}, function.sizes[3] = {1, 1};
  }
  static deepgen_range part(int64_t i, int64_t count) {
    const auto end = [&](int64_t x) { return kMost * x * x / (count * count); };
    return {end(i) + 1, end(i + 1)};
  }

  std::vector<std::array<deepgen_range, DEEPGEN_SIZES>> taken;
  std::vector<deepgen_kernel> kernels;
  const deepgen_kernel* volatile selected = nullptr;
  void* volatile devices = nullptr;
  deepgen_function function{};
};

double nanoseconds_of(const deepgen_function& f, const std::vector<deepgen_call_sizes>& calls) {
  timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (const deepgen_call_sizes& sizes : calls)
    if (!deepgen_selected_config_at(&f, &sizes)) return 0;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (double(end.tv_sec - begin.tv_sec) * 1e9 + double(end.tv_nsec - begin.tv_nsec)) /
         double(calls.size());
}

void line(const char* shape, const char* sizes, const char* way, std::vector<double> v) {
  std::sort(v.begin(), v.end());
  std::printf("%-8s %-14s %-6s %6.1f ns  [%.1f, %.1f]\n", shape, sizes, way, v[v.size() / 2], v[v.size() / 4],
              v[v.size() * 3 / 4]);
}

} // namespace

int main() {
  std::mt19937_64 random(1);
  std::printf("above a function of one kernel: median [quartiles] of %d rounds of %d calls\n", kRounds,
              kCalls);
  for (const auto& [shape, along_m, along_n] :
       {std::tuple("32", kParts, 1), {"8 x 4", 8, 4}, {"8", 8, 1}, {"12", 12, 1}, {"16", 16, 1}}) {
    Function one(1, 1), table(along_m, along_n), list(along_m, along_n);
    const deepgen_function* functions[] = {&one.function, &table.function, &list.function};
    for (const deepgen_function* f : functions)
      if (deepgen_register(f, 1) != DEEPGEN_OK) return 1;
    deepgen_unregister(&list.function, 1);
    for (const char* sizes : {"random", "the first part", "the last part"}) {
      std::vector<deepgen_call_sizes> calls(kCalls);
      for (deepgen_call_sizes& x : calls) {
        const auto draw = [&] {
          return *sizes == 'r' ? 1 + int64_t(random() % kMost) : sizes[4] == 'f' ? 1 : kMost;
        };
        x.m = draw(), x.n = draw();
      }
      std::vector<double> more[2];
      for (int round = 0; round < kRounds; ++round) {
        double took[3];
        const int first = int(random() % 3);
        for (int i = 0; i < 3; ++i)
          took[(first + i) % 3] = nanoseconds_of(*functions[(first + i) % 3], calls);
        for (int i = 0; i < 2; ++i) more[i].push_back(took[1 + i] - took[0]);
      }
      line(shape, sizes, "table", more[0]), line(shape, sizes, "list", more[1]);
    }
  }
}
