#include "templates/gpu/gemv/gemv.h"

#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/core/sum_order.h"
#include "templates/gpu/gpu_limits.h"
#include "templates/gpu/gpu_split_k.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace deepgen {
namespace {

enum Index {
  kForm,
  kVec,
  kWidth,
  kRowWarps,
  kKWarps,
  kUnroll,
  kSplits,
  kHint,
  kPipeline,
  kDependent,
  kVectors, ///< only of a range of M
  kParameters
};
constexpr std::string_view kNames[] = {"form",   "vec",  "width", "rwarps", "kwarps", "unroll",
                                       "splits", "hint", "pipe",  "pdl",    "vectors"};
constexpr int64_t kFirst[] = {0, 16, 64, 1, 1, 1, 1, 0, 0, 0, 1};

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// Whether mma.sync multiplies these operands straight from registers as they were loaded. Elements of 8 bits
/// that are not consecutive along K would first have to be transposed byte by byte.
std::string why_no_mma(const Gemm& p, const GemvTiling& t, int64_t capability) {
  if (!capability) return "form=1 (mma.sync) is NVIDIA's";
  if (p.a == Type::f32 || p.a == Type::f64) return "form=1 (mma) does not multiply " + to_string(p.a);
  if (p.a != p.b && !is_fp8(p.a)) return "form=1 (mma) needs A and B of one type";
  if (is_fp8(p.a) && capability < 89) return "form=1 (mma) multiplies 8-bit floats from sm_89 on";
  if (t.size == 1 && !t.k_major) return "form=1 (mma) needs 8-bit weights with rows along K";
  return "";
}

/// The bytes, up to 16, to which every row of W (of the vectors) starts in a dense problem.
int64_t dense_alignment(const Gemm& p, bool of_b) {
  if (!of_b) return dense_alignment(unit_of(p, p.a_transposed() ? Size::m : Size::k), p.a);
  return dense_alignment(unit_of(p, p.b_transposed() ? Size::k : Size::n),
                         p.b); // that of the second weight too
}

/// What does not depend on a config.
GemvTiling bare(const Gemm& p) {
  Config c = filled<kNames, kFirst>({}, 0);
  if (p.gate) c.values[kRowWarps].second = 2;
  return GemvTiling(p, c);
}

/// Blocks that one multiprocessor holds at a time.
int64_t resident_blocks(const GemvTiling& t, const Device& device) {
  const int64_t shared = round_up(t.shared_bytes() + 1024, 1024);
  return std::clamp<int64_t>(device.shared_multiprocessor / shared, 1, t.min_blocks(device.arch));
}

/// The values that rules look at.
struct GemvPoint {
  const Gemm& p;
  const Device& device;
  const GemvTiling& t;
  const GpuLimits limits{device.arch};
  int64_t weights_align() const { return dense_alignment(p, t.weights_b); }
  int64_t vectors_align() const { return dense_alignment(p, !t.weights_b); }
  std::string why_no_mma() const { return deepgen::why_no_mma(p, t, device.compute_capability()); }
  int64_t width_unit() const {
    return !t.mma ? (t.k_major ? 1 : t.elements) : (t.k_major ? 16 : 8 * t.elements);
  }
  int64_t least_width() const { return !t.mma && !t.k_major ? 4 * width_unit() : width_unit(); }
  int64_t most_width() const {
    if (!t.mma) return t.k_major ? 8 : 32 * width_unit();
    return (t.k_major ? 4 : 2) * width_unit();
  }
  int64_t warps() const { return t.row_warps * t.k_warps; }
  int64_t steps() const { return ceil_div(t.k, t.k_step); }
  int64_t blocks() const { return t.row_blocks * p.batch; }
  int64_t most_registers() const { return std::min<int64_t>(168, limits.registers / t.threads); }
};

const Rule<Index, GemvPoint> kRules[] = {
    {kVec, [](const GemvPoint& x) { return x.t.vec < x.t.size || x.t.vec > 16; },
     [](const GemvPoint& x) {
       return "vec=" + text(x.t.vec) + " is not between an element of " + text(x.t.size) + " and 16 bytes";
     }},
    {kVec, [](const GemvPoint& x) { return x.t.vec > x.weights_align(); },
     [](const GemvPoint& x) {
       return "vec=" + text(x.t.vec) + " exceeds the alignment of W's dense rows, " +
              text(x.weights_align()) + " bytes";
     }},
    {kVec, [](const GemvPoint& x) { return x.t.vector_align() > x.vectors_align(); },
     [](const GemvPoint& x) {
       return "loads of " + text(x.t.vector_align()) +
              " bytes exceed the alignment of the vectors' dense rows, " + text(x.vectors_align()) + " bytes";
     }},
    {kForm, [](const GemvPoint& x) { return x.p.ranged(Size::m) && x.p.m > 16; },
     [](const GemvPoint& x) { return "gemv is for M of at most 16, not " + text(x.p.m); }},
    {kVectors,
     [](const GemvPoint& x) { return x.p.ranged(Size::m) && x.t.vectors > 1 && x.t.vectors / 2 >= x.p.m; },
     [](const GemvPoint& x) { return "half of vectors=" + text(x.t.vectors) + " covers M"; }},
    {kForm, [](const GemvPoint& x) { return x.t.mma && !x.why_no_mma().empty(); },
     [](const GemvPoint& x) { return x.why_no_mma(); }},
    {kVec, [](const GemvPoint& x) { return x.t.mma && x.t.k_major && x.t.vec < 8; },
     [](const GemvPoint& x) {
       return "form=1 (mma) needs loads of two registers, not vec=" + text(x.t.vec);
     }},
    {kVec, [](const GemvPoint& x) { return x.t.mma && !x.t.k_major && x.t.vec < 2 * x.t.size; },
     [](const GemvPoint&) { return std::string("form=1 (mma) needs two rows of W in a load"); }},
    {kWidth,
     [](const GemvPoint& x) {
       return x.t.width < x.least_width() || x.t.width > x.most_width() || x.t.width % x.width_unit() ||
              (x.t.width / x.width_unit() & (x.t.width / x.width_unit() - 1));
     },
     [](const GemvPoint& x) {
       return "width=" + text(x.t.width) + " is not a power of two times " + text(x.width_unit()) + " from " +
              text(x.least_width()) + " to " + text(x.most_width());
     }},
    {kDependent, [](const GemvPoint& x) { return x.t.dependent && x.device.compute_capability() < 90; },
     [](const GemvPoint&) { return std::string("programmatic dependent launch needs sm_90"); }},
    {kKWarps, [](const GemvPoint& x) { return x.warps() > 16; },
     [](const GemvPoint& x) { return "rwarps*kwarps=" + text(x.warps()) + " exceeds 16 warps of a block"; }},
    {kUnroll,
     [](const GemvPoint& x) { return x.warps() == 1 && (x.steps() > 1 || x.blocks() >= 2 * x.device.cores); },
     [](const GemvPoint&) {
       return std::string("one warp of a block leaves most of a multiprocessor idle");
     }},
    {kWidth,
     [](const GemvPoint& x) { return x.t.k_major && !x.t.mma && x.t.width > 1 && x.t.width / 2 >= x.t.rows; },
     [](const GemvPoint& x) { return "half of width=" + text(x.t.width) + " covers all rows"; }},
    {kRowWarps, [](const GemvPoint& x) { return x.t.row_warps % x.t.weights != 0; },
     [](const GemvPoint&) {
       return std::string("a gate needs as many rwarps for one weight as for the other");
     }},
    {kRowWarps,
     [](const GemvPoint& x) { return x.t.row_warps > x.t.weights && x.t.block_outputs / 2 >= x.t.rows; },
     [](const GemvPoint& x) { return "half of rwarps=" + text(x.t.row_warps) + " covers all rows"; }},
    {kUnroll, [](const GemvPoint& x) { return x.t.unroll > 1 && x.t.k_step / 2 >= x.t.k; },
     [](const GemvPoint& x) { return "half of unroll=" + text(x.t.unroll) + " covers K"; }},
    {kSplits, [](const GemvPoint& x) { return x.t.workers > 1 && x.t.workers > x.steps(); },
     [](const GemvPoint& x) {
       return "kwarps*splits=" + text(x.t.workers) + " warps share " + text(x.steps()) + " steps of K";
     }},
    {kPipeline, [](const GemvPoint& x) { return x.t.pipeline && x.t.k / x.t.k_step <= x.t.workers; },
     [](const GemvPoint&) { return std::string("pipe=1 needs more than one step of K for a warp"); }},
    {kSplits, [](const GemvPoint& x) { return x.t.splits > 1 && x.blocks() >= 2 * x.device.cores; },
     [](const GemvPoint& x) {
       return "splits=" + text(x.t.splits) + " although " + text(x.blocks()) +
              " blocks fill the device twice";
     }},
    {kSplits,
     [](const GemvPoint& x) {
       return x.t.row_warps > x.t.weights && x.blocks() * x.t.splits < x.device.cores;
     },
     [](const GemvPoint& x) {
       return "rwarps=" + text(x.t.row_warps) + " although " + text(x.blocks() * x.t.splits) +
              " blocks do not fill the device";
     }},
    {kKWarps, [](const GemvPoint& x) { return x.t.threads % x.limits.wave != 0; },
     [](const GemvPoint& x) {
       return text(x.t.threads) + " threads are no whole waves of " + text(x.limits.wave);
     }},
    {kVectors, [](const GemvPoint& x) { return x.t.registers() > x.most_registers(); },
     [](const GemvPoint& x) {
       return "about " + text(x.t.registers()) + " registers a thread exceed the " +
              text(x.most_registers()) + " of " + text(x.t.threads) + " threads";
     }},
    {kVectors, [](const GemvPoint& x) { return x.t.shared_bytes() > x.device.shared_block; },
     [](const GemvPoint& x) {
       return text(x.t.shared_bytes()) + " bytes of shared memory exceed the device's " +
              text(x.device.shared_block);
     }},
    // Rules that only save time.
    {kPipeline,
     [](const GemvPoint& x) {
       return x.t.loads() * x.t.vec * (x.t.pipeline ? 2 : 1) < 32 && x.t.k > x.t.k_step;
     },
     [](const GemvPoint&) { return std::string("less than 32 bytes of a lane in flight"); }},
    {kVectors,
     [](const GemvPoint& x) {
       return !x.t.mma && x.t.vec < x.weights_align() && 2 * x.t.elements * x.t.vectors <= 64;
     },
     [](const GemvPoint& x) {
       return "vec=" + text(x.t.vec) + " although W is aligned to " + text(x.weights_align()) +
              " bytes and few registers hold the sums";
     }},
    {kUnroll, [](const GemvPoint& x) { return x.t.loads() > 16; },
     [](const GemvPoint& x) {
       return text(x.t.loads()) + " loads of one lane in flight: more than 16 do not pay";
     }},
    {kVectors,
     [](const GemvPoint& x) {
       return !x.t.mma && x.t.size == 2 && x.t.vectors > 8 && x.t.vec == 16 && x.why_no_mma().empty();
     },
     [](const GemvPoint& x) {
       return "form=0 multiplies " + text(x.t.vectors) + " vectors more slowly than W arrives";
     }},
};

// The estimate's constants. None is fitted but kMeasured; the others are nominal, or estimates by hand: only
// the order of configs matters, and benchmarks/gpu/model/README.md says how good that is. Seconds: latency of
// memory under load; of a block to start and end; of a launch.
constexpr double kLatency = 0.8e-6, kBlock = 1.0e-6, kLaunch = 1.5e-6;
constexpr double kDependentLaunch = 0.7, kPrefetchLaunch = 0.6, kReduceLaunch = 0.5; ///< of a launch
constexpr double kEfficiency = 0.85; ///< of the peak bandwidth, at best
constexpr double kCoreBytes = 64;    ///< a clock and multiprocessor
constexpr double kL2 = 1.6;          ///< bandwidth of L2 / of memory
constexpr double kKept = 0.5;        ///< of L1 and shared memory, that vectors may fill
constexpr double kSectorBytes = 32;  ///< are moved at a time
constexpr double kNoPipeline = 0.7;  ///< of the loads under way, where none is while a warp multiplies
constexpr double kQueue = 0.2, kLeastQueue = 0.5;       ///< more time for memory, by how full its queues are
constexpr double kOverlap = 0.2;                        ///< of all parts, beside the longest
constexpr double kReduceClocks = 8;                     ///< for a sum of another warp
constexpr double kHintLoss = 0.02e-6, kRegister = 1e-9; ///< seconds, that decide between equals
/// Beside the other templates' estimates: between the median of 29 that were timed (0.86,
/// benchmarks/gpu/model) and what the best of 1 x 4096 x 4096 and 1 x 5120 x 5120 took (0.72): others of
/// these are up to 1.3 times as slow.
constexpr double kMeasured = 0.8;
// Instructions, by counting.
constexpr double kLoadIssues = 2, kPairIssues = 1.5, kGather = 2, kConvert8 = 1.5;

/// Warp instructions per iteration of a warp: loads, conversions, multiplications.
double instructions(const GemvTiling& t) {
  const double words = std::max(1.0, double(t.vec) / 4), loads = double(t.loads());
  const double vectors = double(t.vectors), elements = double(t.elements);
  if (t.mma) {
    const double tiles = loads * words / 4;              // of m16 by one k step
    const int64_t columns = t.positions * t.columns / 8; // of one instruction
    const double pieces = double(columns) * (t.vectors_k_major ? 1.0 : elements * kGather);
    return loads * kLoadIssues + pieces * kLoadIssues + tiles * double(t.columns) / 8 * 2 +
           (t.k_major ? 0 : loads * words * kPairIssues);
  }
  const double convert = t.size >= 4 ? 0 : t.size == 2 ? 1 : kConvert8;
  const double dot =
      t.weight_type == Type::i8 && t.k_major && t.vec >= 4 ? 4 : 1; // elements of an instruction
  const double per_vector = t.k_major
                                ? elements * convert + (t.vectors_k_major ? kLoadIssues : kGather * elements)
                                : kLoadIssues + convert;
  return loads * (kLoadIssues + elements * convert + elements * vectors / dot) +
         double(t.positions) * vectors * per_vector;
}

} // namespace

bool gemv_weights_are_b(const Gemm& p) {
  return p.ranged(Size::m) || (p.m <= 16 && (p.n > 16 || p.m <= p.n));
}

GemvTiling::GemvTiling(const Gemm& p, const Config& c)
    : weights_b(gemv_weights_are_b(p)), k_major(weights_b ? p.b_transposed() : !p.a_transposed()),
      vectors_k_major(weights_b ? !p.a_transposed() : p.b_transposed()), weight_type(weights_b ? p.b : p.a),
      vector_type(weights_b ? p.a : p.b), rows(weights_b ? p.n : p.m),
      vectors(p.ranged(Size::m) ? at(c, kVectors)
              : weights_b       ? p.m
                                : p.n),
      k(p.k), any_k(p.ranged(Size::k)), size(size_of(p.a)), mma(at(c, kForm) == 1), vec(at(c, kVec)),
      width(at(c, kWidth)), row_warps(at(c, kRowWarps)), k_warps(at(c, kKWarps)), unroll(at(c, kUnroll)),
      splits(at(c, kSplits)), hint(at(c, kHint)), pipeline(at(c, kPipeline) == 1),
      dependent(at(c, kDependent) != 0), prefetch(at(c, kDependent) == 2) {
  elements = std::max<int64_t>(1, vec / size);
  if (!k_major && !mma) {
    lanes_k = std::max<int64_t>(1, 32 / std::max<int64_t>(1, width / elements)), groups = 1,
    positions = unroll;
    k_step = lanes_k * unroll, lane_k = 1, vector_elements = 1;
  } else if (!k_major) {
    // An instruction takes two registers of consecutive elements of K from each of four lanes.
    const int64_t run = 8 / size;
    lanes_k = 4, groups = std::max<int64_t>(1, width / (8 * elements)), positions = run * unroll;
    k_step = 4 * run * unroll, lane_k = run, vector_elements = run;
  } else {
    lanes_k = mma ? 4 : 32, groups = mma ? width / 8 : width, positions = unroll;
    k_step = lanes_k * elements * unroll, lane_k = elements, vector_elements = elements;
  }
  columns = mma ? round_up(vectors, 8) : vectors;
  weights = p.gate ? 2 : 1;
  block_rows = width * row_warps, block_outputs = std::max<int64_t>(1, block_rows / weights);
  threads = 32 * row_warps * k_warps, row_blocks = ceil_div(rows, block_outputs);
  workers = k_warps * splits;
  rounds = p.ranged(Size::m) ? ceil_div(p.m, vectors) : 1;
}

int64_t GemvTiling::registers() const {
  const int64_t word = size == 8 ? 2 : 1, piece = std::max<int64_t>(1, vec / 4);
  const int64_t accumulators = mma       ? width * columns / 32
                               : k_major ? groups * vectors * word
                                         : elements * vectors * word;
  const int64_t vector_piece = mma ? columns / 8 * (k_major ? piece : 2) : vectors * (k_major ? piece : word);
  const int64_t converted = mma ? (k_major ? 0 : 2 * piece) : elements * word;
  // Of a K that a call says the ragged step's loads are guarded one by one: each has its address.
  const int64_t guards = any_k ? 2 * (loads() + vectors) + 16 : 0;
  return 28 + accumulators + loads() * piece * (pipeline ? 2 : 1) + vector_piece + converted +
         2 * (k_major ? groups : positions) + guards;
}

int64_t GemvTiling::min_blocks(const std::string& arch) const {
  const GpuLimits limits(arch);
  const int64_t each = round_up(registers() * 115 / 100 + 8, limits.granule);
  return std::clamp<int64_t>(std::min(limits.registers / (each * threads), limits.resident / threads), 1, 16);
}

int64_t GemvTiling::shared_bytes() const { return k_warps * block_rows * columns * (size == 8 ? 8 : 4); }

std::string Gemv::why_not(const Gemm& p, const std::string& arch) const {
  const int64_t capability = compute_capability(arch);
  if (!is_amd(arch) && capability < 80) return "gemv is for AMD GPUs, and NVIDIA GPUs from sm_80 on";
  if (p.a == Type::u8) return "gemv does not multiply u8";
  if (p.groups) return "gemv serves no groups of rows";
  if (const std::string why = why_no_depth(p); !why.empty()) return why;
  if (p.m > 16 && p.n > 16 && !p.ranged(Size::m)) return "gemv needs M <= 16 or N <= 16";
  if (p.ranged(Size::m) && *p.least[size_t(Size::m)] > 16)
    return "gemv needs a range of M that begins below 17";
  if (p.gate && !gemv_weights_are_b(p)) return "gemv serves a gate with M of at most 16 and N";
  if ((is_fp8(p.a) || is_fp8(p.b)) && capability && capability < 89)
    return "8-bit floats need sm_89 or later";
  return "";
}

std::vector<Parameter> Gemv::parameters(const Gemm& p, const Device& device) const {
  const GemvTiling t = bare(p);
  const bool mma = why_no_mma(p, t, device.compute_capability()).empty();
  const int64_t align = dense_alignment(p, t.weights_b);
  std::vector<int64_t> vecs = {align}, widths;
  if (!t.k_major && align / 2 >= t.size && align > 4) vecs.push_back(align / 2);
  for (int64_t vec : vecs)
    for (int64_t lanes : {4, 8, 16, 32})
      if (!t.k_major) widths.push_back(lanes * (vec / t.size));
  if (t.k_major)
    widths = mma ? std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64} : std::vector<int64_t>{1, 2, 4, 8};
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  std::vector<Parameter> all = {
      {"form", mma ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0},
       "0: fused multiply-add; 1: tensor cores (mma.sync)"},
      {"vec", vecs, "bytes of one load of W"},
      {"width", widths, "rows of W of one warp"},
      {"rwarps", {1, 2, 4, 8}, "warps of a block side by side along the rows of W", {1, 16, 1, true}},
      {"kwarps", {1, 2, 4, 8, 16}, "warps of a block that share K"},
      {"unroll", {1, 2, 4, 8, 16}, "loads along K that are in flight together, per row", {1, 64, 1, true}},
      {"splits",
       {1, 2, 3, 4, 6, 8, 16},
       "blocks that share K; above 1, a second launch adds their sums",
       {1, 256}},
      {"hint", is_amd(device.arch) ? std::vector<int64_t>{1} : std::vector<int64_t>{2, 1},
       "1: W by read-only loads; 2: it bypasses L1, and L2 fetches 256 bytes at a time"},
      {"pipe", {0, 1}, "1: the next iteration's loads are issued before this one's arithmetic"},
      {"pdl", device.compute_capability() >= 90 ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{0},
       "1: programmatic dependent launch; 2: and the first weights are asked for before they may be read"}};
  if (p.ranged(Size::m))
    all.push_back({"vectors", {1, 2, 4, 8, 16}, "rows of A that a block multiplies by", {1, 16}});
  return all;
}

std::string Gemv::why_illegal(const Gemm& p, const Device& device, const Config& config) const {
  const GemvTiling t(p, config);
  return first_broken(kRules, GemvPoint{p, device, t});
}

bool Gemv::dead_end(const Gemm& p, const Device& device, const Config& config, size_t assigned) const {
  // Without a range of M `vectors` is known before all others, but not told which of them.
  if (assigned == kVectors && !p.ranged(Size::m)) assigned = kParameters;
  const GemvTiling t(p, filled<kNames, kFirst>(config, std::min<size_t>(assigned, config.values.size())));
  return breaks_any(kRules, GemvPoint{p, device, t}, assigned);
}

// Little's law decides: bandwidth is bytes in flight over latency.
double Gemv::cost(const Gemm& p, const Device& device, const Config& config) const {
  const GemvTiling t(p, config);
  const double clock = double(device.clock_khz) * 1e3, cores = double(device.cores);
  const double blocks = double(t.row_blocks * t.rounds * t.splits * p.batch);
  const double per_core = std::ceil(blocks / cores);
  const double resident = std::min(double(resident_blocks(t, device)), per_core);
  const double waves = std::ceil(per_core / resident);
  const double steps = std::ceil(double(t.k) / double(t.k_step * t.workers)); // of one warp
  const double weights = double(t.rounds * t.weights * t.rows * t.k * t.size * p.batch);
  // Loads that touch a sector only in part still move all of it.
  const double run = double(t.k_major ? t.lanes_k * t.vec : t.width * t.size);
  const double sectors = std::max(1.0, kSectorBytes / run);
  // While a block starts and ends it has nothing in flight; without a pipeline neither while a warp
  // multiplies.
  const double busy = waves > 1 ? steps * kLatency / (steps * kLatency + kBlock) : 1.0;
  const double in_flight = resident * double(t.threads * t.loads() * t.vec) * busy *
                           (t.pipeline || steps == 1 ? 1.0 : kNoPipeline);
  const bool rdna = is_amd(device.arch) && GpuLimits(device.arch).wave == 32; // of two compute units
  const double core_rate = std::min(in_flight / kLatency, (rdna ? 2 * kCoreBytes : kCoreBytes) * clock);
  const double block_bytes = double(t.block_rows * t.k_step * t.size * t.k_warps) * steps;
  const double best = double(device.memory_bandwidth) * kEfficiency, wanted = best * kLatency / cores;
  const double memory = std::max(weights * sectors / best, per_core * block_bytes / core_rate) *
                        (1 + kQueue * std::max(kLeastQueue, wanted / in_flight));
  // Every multiprocessor fetches the vectors once from L2, or every block does when L1 cannot keep them.
  const double vector_bytes = double(t.vectors * t.k * t.size) / double(t.splits);
  const bool kept = vector_bytes < kKept * double(device.shared_multiprocessor);
  const double fetched = (kept ? std::min(blocks, cores) : blocks) * vector_bytes;
  const double l2 = (weights + fetched) / (kL2 * double(device.memory_bandwidth));
  const double warps =
      GpuLimits(device.arch).wave == 64 ? 2 : 4; // that a multiprocessor issues for in a cycle
  const int64_t warps_of_block = t.threads / 32;
  const double issue = per_core * double(warps_of_block) * steps * instructions(t) / warps / clock;
  const double reduce =
      double(t.k_warps * t.block_rows * t.columns) / double(t.threads) * kReduceClocks / clock;
  const double second = t.splits > 1 ? kReduceLaunch * kLaunch +
                                           GpuSplitK(p, t.splits).traffic() / double(device.memory_bandwidth)
                                     : 0;
  const double total = kLaunch * (t.prefetch    ? kPrefetchLaunch
                                  : t.dependent ? kDependentLaunch
                                                : 1.0) +
                       kBlock + std::max({memory, l2, issue}) + kOverlap * (memory + l2 + issue) +
                       waves * reduce + second + (t.hint == 1 ? kHintLoss : 0) +
                       kRegister * double(t.registers());
  return kMeasured * total;
}

/// Warps take steps of K in turn; within a step each lane adds up what it has loaded.
std::string Gemv::sum_order(const Gemm& p, const std::string&, const Config& config) const {
  if (sums_are_exact(p)) return kExactSums;
  const GemvTiling t(p, config);
  return std::string("gemv ") + (t.mma ? "by mma.sync" : "by multiply-adds") + ", " + text(t.lanes_k) +
         " lanes of " + text(t.elements) + " x " + text(t.unroll) + ", warps=" + text(t.k_warps) +
         " splits=" + text(t.splits);
}

std::vector<Choice> Gemv::fallbacks(const Gemm& p, const std::string&, const Config& config) const {
  const GemvTiling t(p, config);
  if (t.vec == t.size && !t.dependent && !t.mma) return {};
  const int64_t values[] = {0, t.size,   t.k_major ? (t.vectors > 8 ? 2 : 4) : 32, t.weights, 8, 4, 1, 1, 0,
                            0, t.vectors};
  Config generic;
  for (size_t i = 0; i < (p.ranged(Size::m) ? kParameters : kVectors); ++i)
    generic.values.emplace_back(kNames[i], values[i]);
  return {{name(), generic}};
}

int64_t Gemv::workspace(const Gemm& p, const Config& config) const { return split_workspace(p, config); }

Gemm Gemv::awkward(const Gemm& p, const Config& config) const {
  const GemvTiling t(p, config);
  // Whole loads, so that the small problem's dense operands are as aligned as the config wants.
  const int64_t row_unit = t.k_major ? 1 : t.elements;
  const int64_t k_unit = std::max(t.k_major ? t.elements : 1, t.vectors_k_major ? t.vector_elements : 1);
  const int64_t rows = round_up(std::max<int64_t>(t.block_outputs + row_unit, 17), row_unit);
  // One whole round of all workers where that is short, and a ragged step.
  const int64_t round = t.k_step * t.workers;
  const int64_t k = (round <= 8192 ? round : t.k_step) + round_up(t.k_step / 2 + 1, k_unit);
  Gemm small = p;
  (t.weights_b ? small.n : small.m) = rows;
  small.k = k;
  small.batch = p.batch > 1 ? 2 : 1;
  if (p.ranged(Size::m)) small.m = t.vectors + (t.vectors + 1) / 2;
  shrink_ranges(small);
  return small;
}

} // namespace deepgen
