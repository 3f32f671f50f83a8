// Wall time of every row of rows.txt: DeepGen, oneDNN where it serves the row, and a loop that reads the
// operands once; interleaved in rounds of random order, ratios within a round.
//   rows_benchmark --csv FILE [--threads n] [--rounds n] [--row name] [--sample s]
// Raw samples go to FILE, the table to stdout.
#include <suite.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <dnnl.hpp>
#include <fstream>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

struct Row {
  const char *name, *kind, *type;
  int64_t m, n;
  deepgen_status (*run)(const deepgen_rows_args*);
  const deepgen_function* function;
  int64_t element() const { return std::string(type) == "f32" ? 4 : 2; }
  int64_t bytes() const { return m * n * element(); } ///< of X, and of D
};

/// On cache lines, as tensors of frameworks are.
template <typename T>
struct OnLines {
  using value_type = T;
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const OnLines&) const { return true; }
  bool operator!=(const OnLines&) const { return false; }
};
using Bytes = std::vector<char, OnLines<char>>;

struct Arm {
  std::string name;
  std::function<void()> call;
  int64_t calls = 1; ///< per sample
  std::vector<double> seconds = {};
};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[size_t(q * double(v.size() - 1) + 0.5)];
}

[[noreturn]] void fail(const Row& row, const std::string& what) {
  std::fprintf(stderr, "rows_benchmark: %s: %s\n", row.name, what.c_str());
  std::exit(1);
}

/// As f32, or as bf16 cut off.
void fill(Bytes& data, int64_t element, uint32_t seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(-4, 4);
  for (size_t i = 0; i < data.size(); i += size_t(element)) {
    const float x = uniform(rng);
    std::memcpy(&data[i], reinterpret_cast<const char*>(&x) + 4 - element, size_t(element));
  }
}

volatile uint64_t sink; ///< so that what is read is not left out

/// The sum of all words, by all threads: what memory, or a cache, gives.
uint64_t read(const char* data, int64_t bytes, int threads) {
  std::atomic<uint64_t> sum = 0;
  const auto part = [&](int t) {
    constexpr int64_t kLine = 64;
    uint64_t own[8] = {}, words[8];
    const int64_t lines = bytes / kLine;
    for (int64_t i = lines * t / threads; i < lines * (t + 1) / threads; ++i) {
      std::memcpy(words, data + i * kLine, sizeof words);
      for (int j = 0; j < 8; ++j) own[j] += words[j];
    }
    for (uint64_t x : own) sum += x;
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(part, t);
  part(0);
  for (std::thread& thread : pool) thread.join();
  return sum;
}

/// Nothing where oneDNN does not serve the row.
void add_onednn(std::vector<Arm>& arms, const Row& row, char* x, char* d, std::vector<float>& scale,
                std::vector<float>& bias) {
  using namespace dnnl;
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  const auto type = row.element() == 4 ? memory::data_type::f32 : memory::data_type::bf16;
  const memory::desc matrix({row.m, row.n}, type, memory::format_tag::ab);
  const memory::desc vector({row.n}, memory::data_type::f32, memory::format_tag::a);
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(matrix, cpu, x)},
                                               {DNNL_ARG_DST, memory(matrix, cpu, d)}};
  primitive p;
  try {
    if (!std::strcmp(row.kind, "softmax")) {
      p = softmax_v2_forward(softmax_v2_forward::primitive_desc(
          {prop_kind::forward_inference, algorithm::softmax_accurate, matrix, matrix, 1}, cpu));
    } else if (!std::strcmp(row.kind, "layer_norm")) {
      const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
      p = layer_normalization_forward(layer_normalization_forward::primitive_desc(
          {prop_kind::forward_inference, matrix, 1e-5f, flags}, cpu));
      arguments.insert({DNNL_ARG_SCALE, memory(vector, cpu, scale.data())});
      arguments.insert({DNNL_ARG_SHIFT, memory(vector, cpu, bias.data())});
    } else {
      return;
    }
  } catch (const dnnl::error&) {
    return;
  }
  arms.push_back({"oneDNN", [=] {
                    p.execute(queue, arguments);
                    queue.wait();
                  }});
}

struct Settings {
  int threads = 1, rounds = 21;
  double sample = 0.05;
  std::string only, csv;
};

double sample_of(const Arm& arm) {
  arm.call();
  const double begin = wall_seconds();
  for (int64_t c = 0; c < arm.calls; ++c) arm.call();
  return (wall_seconds() - begin) / double(arm.calls);
}

void measure(std::vector<Arm>& arms, const Settings& s) {
  for (Arm& arm : arms) arm.calls = std::max<int64_t>(1, int64_t(s.sample / std::max(sample_of(arm), 1e-7)));
  std::mt19937 rng(1);
  std::vector<size_t> order(arms.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; round < s.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), rng);
    for (size_t i : order) arms[i].seconds.push_back(sample_of(arms[i]));
  }
}

/// Both compute the same to a few roundings.
void check(const Row& row, std::vector<Arm>& arms, const Bytes& d) {
  if (row.element() != 4 || arms.size() < 3) return;
  const auto* values = reinterpret_cast<const float*>(d.data());
  arms[0].call();
  const std::vector<float> own(values, values + row.m * row.n);
  arms[2].call();
  for (size_t i = 0; i < own.size(); ++i)
    if (!(std::abs(values[i] - own[i]) <= 1e-5f + 1e-4f * std::abs(own[i])))
      fail(row, "oneDNN computes something else");
}

std::string ratio_text(const Arm& peer, const Arm& own, double factor) {
  std::vector<double> r;
  for (size_t i = 0; i < own.seconds.size(); ++i) r.push_back(factor * peer.seconds[i] / own.seconds[i]);
  char text[60];
  std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", quantile(r, 0.5), quantile(r, 0.25),
                quantile(r, 0.75));
  return text;
}

void run_row(const Row& row, const Settings& s, std::ofstream& csv) {
  Bytes x(size_t(row.bytes())), d(size_t(row.bytes())), scale(size_t(row.n * row.element())),
      bias(scale.size());
  fill(x, row.element(), 1), fill(scale, row.element(), 2), fill(bias, row.element(), 3);
  std::vector<float> wide_scale(size_t(row.n)), wide_bias(size_t(row.n));
  for (size_t i = 0; i < wide_scale.size(); ++i) { // oneDNN's are f32
    std::memcpy(reinterpret_cast<char*>(&wide_scale[i]) + 4 - row.element(),
                &scale[i * size_t(row.element())], size_t(row.element()));
    std::memcpy(reinterpret_cast<char*>(&wide_bias[i]) + 4 - row.element(), &bias[i * size_t(row.element())],
                size_t(row.element()));
  }
  deepgen_rows_args args;
  args.x = x.data(), args.d = d.data(), args.scale = scale.data(), args.bias = bias.data();
  if (deepgen_status status = row.run(&args)) fail(row, deepgen_status_string(status));
  std::vector<Arm> arms = {{"DeepGen", [&] { row.run(&args); }},
                           {"read", [&] { sink = read(x.data(), row.bytes(), s.threads); }}};
  add_onednn(arms, row, x.data(), d.data(), wide_scale, wide_bias);
  check(row, arms, d);
  measure(arms, s);
  for (const Arm& arm : arms)
    for (size_t i = 0; i < arm.seconds.size(); ++i)
      csv << row.name << ',' << s.threads << ',' << arm.name << ',' << i << ',' << arm.seconds[i] << '\n';
  // X is read and D written: twice the bytes that the loop reads.
  std::printf("| %s | %s | %lld x %lld | %.1f | %s | %s | `%s` |\n", row.name, row.kind, (long long)row.m,
              (long long)row.n, 2 * double(row.bytes()) / quantile(arms[0].seconds, 0.5) / 1e9,
              ratio_text(arms[1], arms[0], 2).c_str(),
              arms.size() > 2 ? ratio_text(arms[2], arms[0], 1).c_str() : "none",
              deepgen_selected_config(row.function));
  std::fflush(stdout);
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#include "suite_rows.inc"
  };
  return all;
}

} // namespace

int main(int argc, char** argv) {
  Settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--threads") s.threads = std::atoi(argv[i + 1]);
    if (key == "--rounds") s.rounds = std::atoi(argv[i + 1]);
    if (key == "--row") s.only = argv[i + 1];
    if (key == "--csv") s.csv = argv[i + 1];
    if (key == "--sample") s.sample = std::atof(argv[i + 1]);
  }
  if (s.rounds < 3 || s.threads < 1 || s.csv.empty()) {
    std::fprintf(
        stderr, "usage: rows_benchmark --csv FILE [--threads n] [--rounds n>=3] [--row name] [--sample s]\n");
    return 1;
  }
  deepgen_set_num_threads(s.threads);
  // Debian's oneDNN shares out its work by OpenMP.
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(s.threads);
  std::ofstream csv(s.csv);
  csv << "row,threads,arm,round,seconds\n";
  std::printf("%d threads, medians [quartiles] of %d rounds. Reading: the loop's time for as many bytes / "
              "DeepGen's time. oneDNN: "
              "its time / DeepGen's.\n\n",
              s.threads, s.rounds);
  std::printf("| row | kind | M x N | GB/s | reading | oneDNN | config |\n| --- | --- | --- | --- | --- | "
              "--- | --- |\n");
  for (const Row& row : rows())
    if (s.only.empty() || s.only == row.name) run_row(row, s, csv);
  return csv.good() ? 0 : 1;
}
