// Few rows: how fast calls stream a packed B of 4096 x 4096, beside a loop that only reads it, and beside
// what the core's arithmetic allows. One thread, rounds in random order, thread CPU time, ratios within a
// round. Then what a call of the smallest problem adds to its kernel.
//   cpu_few [rounds] [name, or - for all] [file of raw samples]
#include "few/roofs.h"
#include "rounds.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deepgen/kernel_abi.h>
#include <few.h>
#include <memory>
#include <optional>
#include <string>

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

volatile uint64_t kept;

/// Ordinary numbers of a type: a core takes longer for denormal ones.
void fill(char* to, const std::string& type, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float x = 0.5f + 0.125f * float(i % 7);
    const auto byte = int8_t(i % 7 - 3);
    if (type == "i8")
      std::memcpy(to + i, &byte, 1);
    else if (type == "bf16") // the upper half
      std::memcpy(to + 2 * i, reinterpret_cast<const char*>(&x) + 2, 2);
    else
      std::memcpy(to + 4 * i, &x, 4);
  }
}

/// A row's name is type of A, type of B, M.
void run_row(const Row& row, int rounds, Samples* samples) {
  const std::string name = row.name, a_type = name.substr(0, name.find('_')),
                    b_type = name.substr(a_type.size() + 1, name.rfind('_') - a_type.size() - 1);
  const size_t bytes = deepgen_packed_b_size(row.function), elements = 4096 * 4096;
  const Memory a = zeros(32 * 4096 * 4), d = zeros(32 * 4096 * 4), scales = zeros(4096 * 4),
               b = zeros(4 * elements), packed = zeros(bytes);
  fill(a.get(), a_type, 32 * 4096), fill(b.get(), b_type, elements), fill(scales.get(), "f32", 4096);
  if (deepgen_pack_b(row.function, b.get(), 0, 0, packed.get(), bytes)) std::exit(1);
  deepgen_gemm_args args;
  args.a = a.get(), args.b = packed.get(), args.d = d.get(), args.scale_col = scales.get();
  if (const deepgen_status status = row.run(&args)) {
    std::fprintf(stderr, "%s: %s\n", row.name, deepgen_status_string(status));
    std::exit(1);
  }
  std::vector<Timed> arms;
  arms.push_back({{"reading", true, [&] { kept = roofs::read_all<0>(packed.get(), bytes); }}, 1, {}});
  arms.push_back({{"ahead", true, [&] { kept = roofs::read_all<8192>(packed.get(), bytes); }}, 1, {}});
  arms.push_back({{"DeepGen", true, [&] { row.run(&args); }}, 1, {}});
  time_on_one_thread(arms, rounds, 0.02);
  if (samples) samples->add(row.name, arms);
  // A call takes at least as long as the faster loop, and as its products: round by round.
  Timed& reading = arms[0];
  for (size_t i = 0; i < reading.seconds.size(); ++i)
    reading.seconds[i] = std::min(reading.seconds[i], arms[1].seconds[i]);
  const double read = quantile(reading.seconds, 0.5), own = quantile(arms[2].seconds, 0.5);
  const double share = ratio(reading, arms[2]).median;
  const double products = 2.0 * double(row.m) * double(row.n) * double(row.k) / roofs::products(a_type);
  for (double& seconds : reading.seconds) seconds = std::max(seconds, products);
  const Ratio roof = ratio(reading, arms[2]);
  const auto rate = [&](double seconds) { return double(bytes) / seconds / 1e9; };
  std::printf("| %s | %.3f | %.1f | %.1f | %.1f | %.3f | %s | %.3f [%.3f, %.3f] | `%s` |\n", row.name,
              1e3 * own, rate(own), rate(read), rate(products), share,
              read > products ? "memory" : "arithmetic", roof.median, roof.low, roof.high,
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
  const bool all = argc < 3 || !std::strcmp(argv[2], "-");
  std::optional<Samples> samples;
  if (argc > 3) samples.emplace(argv[3], "row");
  const Row rows[] = {
#include "few_rows.inc"
  };
  deepgen_set_num_threads(1);
  std::printf(
      "| row | ms | GB/s of B | reading, GB/s | arithmetic, GB/s of B | share of reading | lower roof | "
      "share of it | config |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows)
    if (all || std::strstr(row.name, argv[2])) run_row(row, rounds, samples ? &*samples : nullptr);
  if (samples && !samples->good()) return std::fprintf(stderr, "%s: cannot be written\n", argv[3]), 1;
  if (!all) return 0;
  const float b = 1;
  const size_t bytes = deepgen_packed_b_size(few_smallest_function());
  const Memory packed = zeros(bytes);
  if (deepgen_pack_b(few_smallest_function(), &b, 0, 0, packed.get(), bytes)) return 1;
  overhead("packed", few_smallest_function(), few_smallest_run, packed.get(), rounds);
  overhead("plain", few_smallest_plain_function(), few_smallest_plain_run, &b, rounds);
  return 0;
}
