// CPU time of every call of attention.txt on one thread: DeepGen, and what users compose of products and a
// softmax, beside a core's peak; interleaved in rounds of random order, ratios within a round.
//   attention_benchmark --csv FILE [--rounds n] [--row name]      raw samples to FILE, the table to stdout
#include "compositions.h"

#include <suite.h>

#include <cmath>

namespace {

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
#include "suite_rows.inc"
  };
  return all;
}

AttentionOperands operands(const Call& c) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  AttentionOperands x;
  x.q.resize(size_t(c.batch * c.queries * c.heads * c.dimension)), x.out = x.q;
  x.key.resize(size_t(c.batch * c.keys * c.kv_heads * c.dimension)), x.value = x.key;
  for (auto* values : {&x.q, &x.key, &x.value})
    for (float& v : *values) v = normal(rng);
  return x;
}

[[noreturn]] void fail(const Call& c, const std::string& what) {
  std::fprintf(stderr, "attention_benchmark: %s: %s\n", c.name, what.c_str());
  std::exit(1);
}

/// All arms that are counted compute what the first one does.
void check(const Call& c, const std::vector<Timed>& arms, AttentionOperands& x) {
  arms[0].arm.call();
  const std::vector<float> expected = x.out;
  for (const Timed& t : arms) {
    if (!t.arm.counted) continue;
    std::fill(x.out.begin(), x.out.end(), NAN);
    t.arm.call();
    for (size_t i = 0; i < expected.size(); ++i)
      if (!(std::abs(x.out[i] - expected[i]) <= 1e-5f + 1e-4f * std::abs(expected[i])))
        fail(c, t.arm.name + " computes something else");
  }
}

/// One line of the table; the least ratio of a composition.
double run(const Call& c, int rounds, Samples& csv) {
  AttentionOperands x = operands(c);
  deepgen_attention_args args;
  args.q = x.q.data(), args.key = x.key.data(), args.value = x.value.data(), args.out = x.out.data();
  args.batch = c.batch, args.max_queries = c.queries, args.max_keys = c.keys;
  if (const deepgen_status status = c.run(&args)) fail(c, deepgen_status_string(status));
  std::vector<Timed> arms;
  arms.push_back({{"DeepGen", true, [&] { c.run(&args); }}, 1, {}});
  for (Arm& arm : compositions(c, x)) arms.push_back({std::move(arm), 1, {}});
  check(c, arms, x);
  arms.push_back({peak_arm(), 1, {}});
  time_on_one_thread(arms, rounds, 0.02);
  csv.add(c.name, arms);

  const double own = quantile(arms[0].seconds, 0.5), rate = c.flops() / own;
  const Ratio peak = ratio(arms.back(), arms[0]); // of times
  const double share = peak.median * c.flops() / kPeakOperations;
  std::printf("| %s | %lld x %lld x %lld, %lld/%lld heads, %lld%s | %.1f | %.1f | %.3f |", c.name,
              (long long)c.batch, (long long)c.queries, (long long)c.keys, (long long)c.heads,
              (long long)c.kv_heads, (long long)c.dimension, c.causal ? ", causal" : "", own * 1e6,
              rate * 1e-9, share);
  double least = INFINITY;
  for (size_t i = 1; i + 1 < arms.size(); ++i) {
    const Ratio r = ratio(arms[i], arms[0]);
    std::printf(" %s %.3f [%.3f, %.3f];", arms[i].arm.name.c_str(), r.median, r.low, r.high);
    least = std::min(least, r.median);
  }
  std::printf(" | `%s` |\n", deepgen_selected_config(c.function));
  std::fflush(stdout);
  return least;
}

} // namespace

int main(int argc, char** argv) {
  Settings s;
  read_settings(argc, argv, s);
  deepgen_set_num_threads(1);
  Samples csv(s.csv, "row");
  std::printf("| row | batch x queries x keys, heads, dimension | us | GFLOP/s | of the peak | time of a "
              "composition / "
              "DeepGen's, with quartiles | config |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  double sum = 0, worst = INFINITY;
  int count = 0;
  for (const Call& c : calls()) {
    if (!s.takes(c.name)) continue;
    const double least = run(c, s.rounds, csv);
    sum += std::log(least), worst = std::min(worst, least), ++count;
  }
  if (count)
    std::printf("\nOf %d calls, the best composition's time / DeepGen's: geometric mean %.3f, least %.3f.\n",
                count, std::exp(sum / count), worst);
  return count && csv.good() ? 0 : 1;
}
