// Few rows: how fast calls stream a packed B of 4096 x 4096, beside a loop that only reads it. One thread,
// rounds in random order, thread CPU time, ratios within a round. Then what a call of the smallest problem
// adds to its kernel.
//   cpu_few [rounds] [name]
#include "rounds.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deepgen/kernel_abi.h>
#include <few.h>
#include <memory>

namespace {

struct Row {
  const char* name;
  int64_t m, n, k;
  deepgen_status (*run)(const deepgen_gemm_args*);
  const deepgen_function* function;
};

struct Free {
  void operator()(char* x) const { std::free(x); }
};
using Memory = std::unique_ptr<char, Free>;
Memory zeros(size_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  char* x = static_cast<char*>(std::aligned_alloc(4096, bytes));
  std::memset(x, 0, bytes);
  return Memory(x);
}

/// As many loads at a time as a core has buffers for lines that come.
__attribute__((noinline)) uint64_t read_all(const char* data, size_t bytes) {
  uint64_t sums[64] = {};
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  for (size_t i = 0; i + 64 <= bytes / 8; i += 64)
    for (size_t j = 0; j < 64; ++j) sums[j] += words[i + j];
  uint64_t sum = 0;
  for (uint64_t x : sums) sum += x;
  return sum;
}
volatile uint64_t kept;

void run_row(const Row& row, int rounds) {
  const size_t bytes = deepgen_packed_b_size(row.function), elements = 4096 * 4096;
  const Memory a = zeros(32 * 4096 * 8), d = zeros(32 * 4096 * 8), b = zeros(8 * elements),
               packed = zeros(bytes);
  for (size_t i = 0; i < elements; ++i) b.get()[i] = char(i % 7);
  if (deepgen_pack_b(row.function, b.get(), 0, 0, packed.get(), bytes)) std::exit(1);
  deepgen_gemm_args args;
  args.a = a.get(), args.b = packed.get(), args.d = d.get(), args.scale_col = a.get();
  if (const deepgen_status status = row.run(&args)) {
    std::fprintf(stderr, "%s: %s\n", row.name, deepgen_status_string(status));
    std::exit(1);
  }
  std::vector<Timed> arms;
  arms.push_back({{"reading", true, [&] { kept = read_all(packed.get(), bytes); }}, 1, {}});
  arms.push_back({{"DeepGen", true, [&] { row.run(&args); }}, 1, {}});
  time_on_one_thread(arms, rounds, 0.02);
  const Ratio r = ratio(arms[0], arms[1]);
  std::printf("| %s | %.1f | %.1f | %.3f [%.3f, %.3f] | `%s` |\n", row.name,
              double(bytes) / quantile(arms[1].seconds, 0.5) / 1e9,
              double(bytes) / quantile(arms[0].seconds, 0.5) / 1e9, r.median, r.low, r.high,
              deepgen_selected_config(row.function));
  std::fflush(stdout);
}

/// Nanoseconds of a call, and of its kernel alone.
void overhead(const char* name, const deepgen_function* function,
              deepgen_status (*run)(const deepgen_gemm_args*), const void* b, int rounds) {
  alignas(64) static float a[64], d[64];
  deepgen_gemm_args args;
  args.a = a, args.b = b, args.d = d;
  if (run(&args)) std::exit(1);
  const deepgen_kernel& kernel = **function->selected;
  const Memory workspace = zeros(kernel.workspace + 64);
  uint64_t slots[DEEPGEN_ARG_COUNT] = {}, block[DEEPGEN_ARG_COUNT];
  const float one = 1;
  slots[DEEPGEN_ARG_A] = uintptr_t(a), slots[DEEPGEN_ARG_D] = uintptr_t(d);
  slots[DEEPGEN_ARG_B] = uintptr_t(b) + (function->packed_b ? 64 : 0);
  slots[DEEPGEN_ARG_LDA] = slots[DEEPGEN_ARG_LDB] = slots[DEEPGEN_ARG_LDC] = slots[DEEPGEN_ARG_LDD] = 1;
  slots[DEEPGEN_ARG_M1] = slots[DEEPGEN_ARG_N1] = slots[DEEPGEN_ARG_B1] = 1;
  slots[DEEPGEN_ARG_WORKSPACE] = uintptr_t(workspace.get());
  std::memcpy(&slots[DEEPGEN_ARG_ALPHA], &one, sizeof one);
  for (uint32_t i = 0; i < kernel.arg_count; ++i) block[i] = slots[kernel.args[i]];
  std::vector<Timed> arms;
  arms.push_back({{"kernel", true, [&] { kernel.entry(block); }}, 1, {}});
  arms.push_back({{"call", true, [&] { run(&args); }}, 1, {}});
  time_on_one_thread(arms, rounds, 0.01);
  std::printf("%s: kernel %.1f ns, call %.1f ns\n", name, 1e9 * quantile(arms[0].seconds, 0.5),
              1e9 * quantile(arms[1].seconds, 0.5));
}

} // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(3, std::atoi(argv[1])) : 15;
  const Row rows[] = {
#include "few_rows.inc"
  };
  deepgen_set_num_threads(1);
  std::printf(
      "| row | GB/s of B | reading, GB/s | share of reading | config |\n| --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows)
    if (argc < 3 || std::strstr(row.name, argv[2])) run_row(row, rounds);
  if (argc > 2) return 0;
  const float b = 1;
  const size_t bytes = deepgen_packed_b_size(few_smallest_function());
  const Memory packed = zeros(bytes);
  if (deepgen_pack_b(few_smallest_function(), &b, 0, 0, packed.get(), bytes)) return 1;
  overhead("packed", few_smallest_function(), few_smallest_run, packed.get(), rounds);
  overhead("plain", few_smallest_plain_function(), few_smallest_plain_run, &b, rounds);
  return 0;
}
