// Types of 16 and 8 bits beside oneDNN, in one process: as main.cpp, rounds in random order, thread CPU time,
// ratios within a round. oneDNN gets B as it is stored, and packed ahead of the clock. ONEDNN_MAX_CPU_ISA
// holds it to less than the CPU has, DEEPGEN_CPU_LEVEL DeepGen.
//   cpu_dot_benchmark --csv FILE [--rounds n] [--row name]       raw samples to FILE, the table to stdout
#include "gemms.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <unordered_map>

namespace {

using dnnl::memory;

size_t bytes_of(memory::data_type type) { return memory::data_type_size(type); }

/// Random elements on pages of their own.
struct Buffer {
  memory::data_type type;
  int64_t count;
  char* data;

  Buffer(memory::data_type t, int64_t n, std::mt19937& rng)
      : type(t), count(n),
        data(static_cast<char*>(std::aligned_alloc(4096, (size_t(n) * bytes_of(t) + 8191) / 4096 * 4096))) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < n; ++i) {
      const float x = uniform(rng);
      if (t == memory::data_type::bf16) {
        uint32_t bits;
        std::memcpy(&bits, &x, 4);
        reinterpret_cast<uint16_t*>(data)[i] = uint16_t(bits >> 16);
      } else {
        reinterpret_cast<int8_t*>(data)[i] = int8_t(std::floor(128 * x));
      }
    }
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;

  double at(int64_t i) const {
    if (type == memory::data_type::s32) return reinterpret_cast<const int32_t*>(data)[i];
    const uint32_t bits = uint32_t(reinterpret_cast<const uint16_t*>(data)[i]) << 16;
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
};

memory::desc matrix(const Row& row, memory::data_type type, int64_t rows, int64_t columns, bool transposed) {
  using tag = memory::format_tag;
  if (row.batch > 1) return {{row.batch, rows, columns}, type, transposed ? tag::acb : tag::abc};
  return {{rows, columns}, type, transposed ? tag::ba : tag::ab};
}

Arm onednn(const Row& row, const Buffer& a, const Buffer& b, const Buffer& bias, const Buffer& d,
           bool packed) {
  using namespace dnnl;
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  const memory::desc a_desc = matrix(row, a.type, row.m, row.k, row.a_transposed),
                     b_desc = matrix(row, b.type, row.k, row.n, row.b_transposed),
                     d_desc = matrix(row, d.type, row.m, row.n, false);
  const memory::desc wanted = packed ? memory::desc(b_desc.dims(), b.type, memory::format_tag::any) : b_desc;
  const memory::desc bias_desc({1, row.n}, bias.type, memory::format_tag::ab);
  primitive_attr attributes;
  post_ops posts;
  if (row.gelu) posts.append_eltwise(1.0f, algorithm::eltwise_gelu_erf, 0, 0);
  attributes.set_post_ops(posts);
  const auto description =
      row.bias ? matmul::primitive_desc(matmul::desc(a_desc, wanted, bias_desc, d_desc), attributes, cpu)
               : matmul::primitive_desc(matmul::desc(a_desc, wanted, d_desc), attributes, cpu);
  matmul primitive(description);
  memory b_memory(b_desc, cpu, b.data);
  if (packed && description.weights_desc() != b_desc) {
    memory repacked(description.weights_desc(), cpu);
    reorder(b_memory, repacked).execute(queue, b_memory, repacked);
    queue.wait();
    b_memory = repacked;
  }
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(a_desc, cpu, a.data)},
                                               {DNNL_ARG_WEIGHTS, b_memory},
                                               {DNNL_ARG_DST, memory(d_desc, cpu, d.data)}};
  if (row.bias) arguments.insert({DNNL_ARG_BIAS, memory(bias_desc, cpu, bias.data)});
  return {packed ? "oneDNN, B packed" : "oneDNN", !packed, [=]() mutable {
            primitive.execute(queue, arguments);
            queue.wait();
          }};
}

/// Whether an arm computes what the first one did.
bool agrees(const Row& row, const Buffer& d, const std::vector<double>& expected) {
  const bool whole = d.type == memory::data_type::s32;
  for (int64_t i = 0; i < d.count; ++i) {
    const double x = expected[size_t(i)],
                 far = whole ? 0 : 0.02 * std::fabs(x) + 2e-3 * std::sqrt(double(row.k));
    if (!(std::fabs(d.at(i) - x) <= far)) return false;
  }
  return true;
}

void run_row(const Row& row, int rounds, Samples& csv, double& sum, int& count) {
  using type = memory::data_type;
  std::mt19937 rng(7);
  const type in = std::strncmp(row.name, "bf", 2) ? type::s8 : type::bf16;
  const type out = in == type::bf16 || row.gelu ? type::bf16 : type::s32;
  const Buffer a(in, row.m * row.k * row.batch, rng), b(in, row.k * row.n * row.batch, rng),
      bias(type::bf16, row.n, rng);
  const Buffer d(out, row.m * row.n * row.batch, rng);
  std::vector<Timed> arms;
  for (bool packed : {false, true}) arms.push_back({onednn(row, a, b, bias, d, packed), 1, {}});
  deepgen_gemm_args args;
  args.a = a.data, args.b = b.data, args.d = d.data, args.bias = row.bias ? bias.data : nullptr;
  arms.push_back({{"DeepGen", true, [&] { row.run(&args); }}, 1, {}});
  if (const deepgen_status status = row.run(&args)) {
    std::fprintf(stderr, "%s: %s\n", row.name, deepgen_status_string(status));
    std::exit(1);
  }
  std::vector<double> expected;
  for (Timed& t : arms) {
    std::memset(d.data, 0xff, size_t(d.count) * bytes_of(out));
    t.arm.call();
    if (expected.empty())
      for (int64_t i = 0; i < d.count; ++i) expected.push_back(d.at(i));
    if (!agrees(row, d, expected))
      std::fprintf(stderr, "%s: %s computes something else\n", row.name, t.arm.name.c_str());
  }
  time_on_one_thread(arms, rounds, 0.005);
  csv.add(row.name, arms);
  const Ratio plain = ratio(arms[0], arms[2]), packed = ratio(arms[1], arms[2]);
  std::printf("| %s | %lld x %lld x %lld%s | %.0f | %.3f [%.3f, %.3f] | %.3f [%.3f, %.3f] | `%s` |\n",
              row.name, (long long)row.m, (long long)row.n, (long long)row.k,
              row.batch > 1 ? (" b" + std::to_string(row.batch)).c_str() : "",
              row.flops() / quantile(arms[2].seconds, 0.5) / 1e9, plain.median, plain.low, plain.high,
              packed.median, packed.low, packed.high, deepgen_selected_config(row.function));
  std::fflush(stdout);
  sum += std::log(plain.median), ++count;
}

} // namespace

int main(int argc, char** argv) {
  Settings s;
  int count = 0;
  double sum = 0;
  read_settings(argc, argv, s);
  deepgen_set_num_threads(1);
  Samples csv(s.csv, "row");
  std::printf("| row | M x N x K | G(FL)OP/s | vs oneDNN | vs oneDNN, B packed | config |\n| --- | --- | --- "
              "| --- | --- | --- |\n");
  for (const Row& row : rows())
    if (s.takes(row.name)) run_row(row, s.rounds, csv, sum, count);
  if (count)
    std::printf("\nGeometric mean over %d rows, against oneDNN of the same contract: %.3f.\n", count,
                std::exp(sum / count));
  return count && csv.good() ? 0 : 1;
}
