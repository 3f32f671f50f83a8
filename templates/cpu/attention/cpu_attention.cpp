#include "templates/cpu/attention/cpu_attention.h"

#include "base/text/error.h"
#include "templates/core/cheapest.h"
#include "templates/core/rules.h"
#include "templates/core/seen_keys.h"
#include "templates/core/sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace deepgen {
namespace {

enum AttentionIndex { kAttentionIsa, kMr, kNv, kStrips, kBk, kDirect };
constexpr std::string_view kAttentionNames[] = {"isa", "mr", "nv", "strips", "bk"};

[[gnu::always_inline]] inline int64_t attention_at(const Config& config, AttentionIndex i) {
  return value_at(config, size_t(i), kAttentionNames[i]);
}

bool is_direct(const Config& config) { return value_or(config, kDirect, "direct", 0) != 0; }

/// Rows of a head of K in the tuned call with fewest.
int64_t fewest_rows(const Attention& p) { return fewest_tuned_queries(p) * p.group(); }
bool may_be_direct(const Attention& p) { return fewest_rows(p) <= kMostDirectRows; }

/// The values that constraints look at; everything is known from the parameters up to the constraint's own.
struct AttentionPoint {
  const Attention& p;
  const Device& device;
  const Config& config;
  int64_t operator[](AttentionIndex i) const { return attention_at(config, i); }
  VectorIsa isa() const { return {(*this)[kAttentionIsa], Type::f32}; }
  int64_t sums() const { return (*this)[kMr] * (*this)[kNv]; }
  int64_t panel() const { return (*this)[kNv] * isa().lanes(); }
  /// Of one head of K and V, in the call that it is tuned for.
  int64_t packed_rows() const { return p.at_queries * p.group(); }
  /// That a block of rows sees.
  int64_t most_keys() const {
    return p.windowed() ? RowTile{(*this)[kMr] * (*this)[kStrips], p.group()}.most_keys(p) : p.at_keys;
  }
  bool direct() const { return is_direct(config); }
  /// Of a strip with `direct`: a power of two, and all rows of the call with fewest.
  int64_t direct_rows() const {
    return std::min(int64_t(std::bit_ceil(uint64_t(fewest_rows(p)))), isa().lanes());
  }
  int64_t block_bytes() const { return 4 * (*this)[kMr] * (*this)[kStrips] * (p.head_dim + p.value_dim); }
};

constexpr int64_t kFewestKeys = 64;

/// As in cpu_tile: two FMA ports with a latency of 4 cycles need 8 sums, where there are so many rows.
bool hides_no_latency(const AttentionPoint& x) {
  return x.sums() < 8 && !(x[kNv] == 4 || (x[kMr] == std::min<int64_t>(x.packed_rows(), 4) && x[kNv] == 2));
}
std::string no_latency_hidden(const AttentionPoint& x) {
  return "mr*nv=" + text(x.sums()) + " sums do not hide the FMA latency";
}
bool loads_too_much(const AttentionPoint& x) {
  return x.packed_rows() >= 4 && double(x[kMr] + x[kNv]) > 0.75 * double(x.sums());
}
std::string too_much_loaded(const AttentionPoint&) { return "more than 0.75 loads per FMA"; }
bool exceeds_rows(const AttentionPoint& x) { return x[kMr] > x.packed_rows(); }
std::string rows_exceeded(const AttentionPoint& x) {
  return "mr=" + text(x[kMr]) + " exceeds the " + text(x.packed_rows()) + " rows of a head of K";
}

/// `direct` is the last to be known: where there may be one, what it need not keep to is asked for with it.
const Rule<AttentionIndex, AttentionPoint> kAttentionRules[] = {
    {kAttentionIsa, [](const AttentionPoint& x) { return x[kAttentionIsa] > x.device.isa; },
     [](const AttentionPoint& x) {
       return "isa=" + text(x[kAttentionIsa]) + " is above the device's x86-64 level " + text(x.device.isa);
     }},
    {kMr,
     [](const AttentionPoint& x) {
       return exceeds_rows(x) && !(may_be_direct(x.p) && x[kMr] == x.direct_rows());
     },
     rows_exceeded},
    // Beside the sums, the vectors of keys, and one that is a value of Q in all lanes.
    {kNv, [](const AttentionPoint& x) { return x.sums() + x[kNv] + 1 > x.isa().registers(); },
     [](const AttentionPoint& x) {
       return "mr*nv sums with their operands need more than the " + text(x.isa().registers()) +
              " vector registers";
     }},
    {kNv, [](const AttentionPoint& x) { return !may_be_direct(x.p) && hides_no_latency(x); },
     no_latency_hidden},
    {kNv, [](const AttentionPoint& x) { return !may_be_direct(x.p) && loads_too_much(x); }, too_much_loaded},
    {kStrips,
     [](const AttentionPoint& x) { return x[kStrips] > 1 && x[kStrips] / 2 * x[kMr] >= x.packed_rows(); },
     [](const AttentionPoint& x) {
       return "strips=" + text(x[kStrips]) + " where half of them hold all rows already";
     }},
    {kStrips,
     [](const AttentionPoint& x) {
       return x[kStrips] > 1 && double(x.block_bytes()) > 0.75 * double(x.device.l2);
     },
     [](const AttentionPoint&) { return std::string("a block of Q and of sums exceeds 3/4 of L2"); }},
    {kBk, [](const AttentionPoint& x) { return x[kBk] % x.panel() != 0; },
     [](const AttentionPoint& x) {
       return "bk=" + text(x[kBk]) + " is no multiple of the " + text(x.panel()) + " keys of a register tile";
     }},
    {kBk, [](const AttentionPoint& x) { return x[kBk] > kFewestKeys && x[kBk] / 2 >= x.most_keys(); },
     [](const AttentionPoint& x) {
       return "bk=" + text(x[kBk]) + " where half of it holds all keys already";
     }},
    {kBk,
     [](const AttentionPoint& x) {
       return x[kBk] > kFewestKeys &&
              double(4 * x[kBk] * (x.p.head_dim + x.p.value_dim)) > 0.75 * double(x.device.l2);
     },
     [](const AttentionPoint&) { return std::string("a block of keys and values exceeds 3/4 of L2"); }},
    {kDirect, [](const AttentionPoint& x) { return !x.direct() && exceeds_rows(x); }, rows_exceeded},
    {kDirect, [](const AttentionPoint& x) { return !x.direct() && hides_no_latency(x); }, no_latency_hidden},
    {kDirect, [](const AttentionPoint& x) { return !x.direct() && loads_too_much(x); }, too_much_loaded},
    {kDirect, [](const AttentionPoint& x) { return x.direct() && !may_be_direct(x.p); },
     [](const AttentionPoint& x) {
       return "direct=1 with " + text(fewest_rows(x.p)) + " rows of a head of K, and not at most " +
              text(kMostDirectRows) + ": they share what packing costs";
     }},
    {kDirect,
     [](const AttentionPoint& x) {
       return x.direct() && (x[kMr] != x.direct_rows() || x[kStrips] != 1 || x[kNv] != 1);
     },
     [](const AttentionPoint& x) {
       return "direct=1 takes mr=" + text(x.direct_rows()) + " nv=1 strips=1, as all rows read a key at once";
     }},
};

// The estimate's constants, in cycles where no unit is named: nominal values of current x86 cores (Intel's
// and AMD's optimization manuals), or set by hand. None is fitted by a program: only the order matters.
constexpr double kFmas = 2, kLoads = 2; ///< a cycle
constexpr double kFmaLatency = 4;
constexpr double kL1Part = 0.9;                ///< of the first-level cache that a strip may sweep
constexpr double kL2Bytes = 40, kL3Bytes = 12; ///< a cycle
constexpr double kExponential = 9;             ///< of a vector of scores: its exponential, maximum and sum
constexpr double kWithoutFma = 1.6;
constexpr double kTurn = 8;   ///< of a vector of keys that is transposed
constexpr double kCopy = 1.5; ///< of a vector of values
constexpr double kBias = 1.5; ///< of a vector of scores, to which a bias is added
constexpr double kStrip = 60; ///< of a strip and a block of keys: calls, reductions of rows
constexpr double kRowOfStrip = 8;
constexpr double kRescaled = 1.5; ///< of a vector of sums, once a block of keys
constexpr double kMerge = 2;      ///< of two vectors of partial sums that become one

/// Cycles of one step of a register tile of rows x vectors.
double step_cycles(double rows, double vectors) {
  const double sums = rows * vectors;
  return std::max({sums / kFmas, (rows + vectors) / kLoads, kFmaLatency / 2 * std::min(1.0, 8 / sums)});
}

/// Of the scores of a strip and a block of keys. With `direct`, lanes hold dimensions: as many sums as a
/// vector has lanes are made at a time, and merged into one vector of scores.
double score_cycles(const Attention& p, const AttentionTiling& t) {
  const auto rows = double(t.mr), keys = double(t.bk), lanes = double(t.isa.lanes());
  if (!t.direct) return double(p.head_dim) * keys / double(t.panel) * step_cycles(rows, double(t.nv));
  const double together = lanes / rows, steps = double(t.q_ld) / lanes;
  return keys / together * (steps * step_cycles(rows, together) + (lanes - 1) * kMerge);
}

/// Of a strip that meets a block of keys.
double strip_cycles(const Attention& p, const Device& device, const AttentionTiling& t) {
  const auto rows = double(t.mr), keys = double(t.bk), lanes = double(t.isa.lanes());
  const double slow = t.isa.has_fma() ? 1 : kWithoutFma;
  const double scores = score_cycles(p, t) * slow;
  const double groups = double(ceil_div(t.value_ld / t.isa.lanes(), t.value_vectors));
  const double sums = groups * keys * step_cycles(rows, double(t.value_ld) / lanes / groups) * slow;
  const double softmax = rows * keys / lanes * kExponential * slow * (p.softcap ? 2.5 : 1);
  const double bias = p.bias ? rows * keys * (kBias / lanes + double(size_of(*p.bias)) / kL3Bytes) : 0;
  const double bytes = 4 * keys * double(p.head_dim + t.value_ld);
  const double work = rows * double(4 * (p.head_dim + t.value_ld)) + 4 * rows * keys;
  const bool fits = bytes + work <= kL1Part * double(device.l1d);
  const double traffic = fits ? work / kL2Bytes : (bytes + work) / kL2Bytes;
  return std::max(scores + sums, traffic) + softmax + bias + kStrip + kRowOfStrip * rows +
         rows * double(t.value_ld) / lanes * kRescaled;
}

} // namespace

AttentionTiling::AttentionTiling(const Attention& p, const Config& c)
    : isa{attention_at(c, kAttentionIsa), Type::f32}, mr(attention_at(c, kMr)),
      strips(attention_at(c, kStrips)), nv(attention_at(c, kNv)), bk(attention_at(c, kBk)),
      direct(is_direct(c)), rows(mr * strips), panel(nv * isa.lanes()),
      q_ld(round_up(p.head_dim, isa.lanes())), value_ld(round_up(p.value_dim, isa.lanes())) {
  const int64_t vectors = value_ld / isa.lanes();
  const int64_t most = std::max<int64_t>(1, (isa.registers() - 1) / (mr + 1)); // mr*v + v + 1 registers
  value_vectors = ceil_div(vectors, ceil_div(vectors, most));
  int64_t at = 0;
  const auto take = [&](int64_t elements) {
    const int64_t begin = at;
    at += round_up(elements, 16); // cache lines
    return begin;
  };
  q_at = take(rows * q_ld), out_at = take(rows * value_ld);
  keys_at = take(direct ? 0 : bk * p.head_dim), values_at = take(direct ? 0 : bk * value_ld),
  scores_at = take(mr * bk);
  most_at = take(rows), sum_at = take(rows * isa.lanes()), factor_at = take(mr);
  from_at = take(rows * bound_elements), to_at = take(rows * bound_elements);
  bias_at = take(p.bias ? rows * bound_elements : 0);
  scratch_bytes = 4 * at;
}

std::string CpuAttention::why_not(const Attention& p, const std::string& arch) const {
  if (p.kv == Type::e4m3) return "cpu_attention reads f32, f16 and bf16, not e4m3: name NVIDIA GPUs in ARCHS";
  return arch == "cpu" ? "" : "cpu_attention generates x86-64 code, not " + arch;
}

std::vector<Parameter> CpuAttention::parameters(const Attention& p, const Device& device) const {
  std::vector<int64_t> levels = device.isa >= 4   ? std::vector<int64_t>{4, 3}
                                : device.isa >= 3 ? std::vector<int64_t>{3}
                                                  : std::vector<int64_t>{1};
  std::vector<Parameter> all = {
      {"isa", levels, "x86-64 level of the code: 4 AVX-512, 3 AVX2 and FMA, 1 SSE2"},
      {"mr", {1, 2, 3, 4, 5, 6, 8, 10, 12}, "rows of a register tile", {1, 16}},
      {"nv", {1, 2, 4}, "vectors of keys of a register tile", {1, 8}},
      {"strips", {1, 2, 4, 8, 16, 32, 64}, "register tiles of rows that share packed keys", {1, 256}},
      {"bk", {64, 128, 256}, "keys whose scores are known before their values are weighed", {16, 1024, 16}}};
  if (may_be_direct(p))
    all.push_back({"direct", {0, 1}, "1: keys and values are read where they lie, without packing", {}, 0});
  return all;
}

std::string CpuAttention::why_illegal(const Attention& p, const Device& device, const Config& config) const {
  const AttentionPoint point{p, device, config};
  return first_broken(kAttentionRules, point);
}

bool CpuAttention::dead_end(const Attention& p, const Device& device, const Config& config,
                            size_t assigned) const {
  const AttentionPoint point{p, device, config};
  return breaks_newly(kAttentionRules, point, assigned);
}

double CpuAttention::cost(const Attention& p, const Device& device, const Config& config) const {
  constexpr double kHertz = 3e9; // nominal: only the order matters
  const AttentionTiling t(p, config);
  const int64_t rows = p.at_queries * p.group(), blocks = ceil_div(rows, t.rows),
                strips = ceil_div(rows, t.mr), key_blocks = ceil_div(p.at_keys, t.bk);
  const bool half = p.mask == AttentionMask::causal || p.mask == AttentionMask::causal_top_left;
  // Of a causal mask: half of the pairs, and half a block at the diagonal.
  const auto seen = [&](int64_t tile) {
    return half ? std::min(1.0, 0.5 + 0.5 * double(tile) / double(std::max<int64_t>(1, p.at_keys))) : 1.0;
  };
  // Blocks of keys that tiles of so many rows go over: of a window they begin with a whole one.
  const auto met = [&](int64_t tile, int64_t tokens) {
    return p.windowed() ? RowTile{tile, p.group()}.mean_keys(p, t.bk) / double(t.bk)
                        : double(key_blocks) * seen(tokens);
  };
  const double lanes = double(t.isa.lanes());
  const double turned = double(p.head_dim) * kTurn + double(t.value_ld) * kCopy;
  const double packed = t.direct ? 0 : double(t.bk) * turned / lanes;
  const double read = 4 * double(t.bk) * double(p.head_dim + p.value_dim) / kL3Bytes;
  const double each = double(strips) * met(t.mr, t.bk) * strip_cycles(p, device, t) +
                      double(blocks) * met(t.rows, t.bk + t.rows / p.group()) * (packed + read);
  return each * double(p.kv_heads) * double(p.at_batch) / kHertz;
}

std::vector<Choice> CpuAttention::fallbacks(const Attention& p, const std::string&,
                                            const Config& config) const {
  std::vector<Choice> out;
  for (int64_t level : {3, 1}) {
    if (attention_at(config, kAttentionIsa) <= level) continue;
    const std::optional<Config> best = cheapest(*this, p, modest_cpu(level));
    if (!best)
      throw Error("no config is legal for x86-64 level " + std::to_string(level), p.key(),
                  "so the library would not run there", "a defect of cpu_attention's rules");
    out.push_back({name(), *best});
  }
  return out;
}

Attention CpuAttention::awkward(const Attention& p, const Config& config) const {
  const AttentionTiling t(p, config);
  // The same code, in a call that ends within its blocks.
  const int64_t keys = std::min(p.at_keys, 2 * t.bk + 3);
  if (t.direct) return p.alone(1, fewest_tuned_queries(p), keys);
  return p.alone(1, std::min(p.at_queries, ceil_div(t.rows, p.group()) + 3), keys);
}

} // namespace deepgen
