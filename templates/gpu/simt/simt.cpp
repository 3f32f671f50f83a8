#include "templates/gpu/simt/simt.h"

#include "base/kernel/amd.h"
#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/core/sum_order.h"
#include "templates/gpu/gpu_limits.h"
#include "templates/gpu/gpu_split_k.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

enum Index { kWide, kBm, kBn, kBk, kTm, kTn, kStages, kBlocks, kSplits, kGroup, kParameters };
constexpr std::string_view kNames[] = {"wide", "bm",     "bn",     "bk",     "tm",
                                       "tn",   "stages", "blocks", "splits", "group"};

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// Elements, up to 16 bytes, that one access may cover in rows of so many elements.
int64_t widest(int64_t columns, int64_t bytes) {
  int64_t width = 16 / bytes;
  while (columns % width) width /= 2;
  return width;
}

bool has_copies(const std::string& arch) { return !is_amd(arch); }

/// As many as any arch adds up.
int64_t longest_dot(Type type) {
  return type == Type::i8 ? 4 : type == Type::f16 || type == Type::bf16 ? 2 : 1;
}

/// The elements of one dot product; `as_is`: both operands have so many in a row along K. On NVIDIA GPUs
/// others than those are for tensor cores.
int64_t dot_length(const Gemm& p, const std::string& arch, bool as_is) {
  if (p.a != p.b) return 1;
  if (!is_amd(arch)) return p.a == Type::i8 && as_is ? 4 : 1;
  const bool bf16 = arch == "gfx950" || arch == "gfx1100" || arch == "gfx1201";
  return p.a == Type::bf16 && !bf16 ? 1 : longest_dot(p.a);
}

/// Multiply-adds per cycle and multiprocessor (CUDA C++ Programming Guide, "Arithmetic Instructions"; AMD's
/// ISA documents).
double multiply_rate(Type accumulate, const Device& device) {
  if (const AmdArch* amd = find_amd(device.arch)) {
    if (accumulate == Type::f64) return amd->mfma ? 64 : amd->wave == 64 ? 32 : 4;
    return amd->wave == 64 ? 64 : 256;
  }
  const int64_t capability = device.compute_capability();
  const bool consumer = capability == 86 || capability == 89 || capability == 120;
  if (accumulate == Type::f64) return consumer ? 2 : capability == 80 ? 32 : 64;
  return accumulate == Type::i32 || capability == 80 ? 64 : 128;
}

// The estimate's constants. Nothing of it is fitted: where no source is named, these are estimates by hand,
// and benchmarks/gpu/model/README.md says how good they are together on a recorded space.
constexpr double kCopyClocks = 2,
                 kWayClocks = 4;      ///< of shared memory for 32 pieces; of those through registers
constexpr double kFragmentClocks = 3; ///< of shared memory for a warp's fragment
constexpr double kConvertIssues = 3;  ///< instructions for an element that is converted
constexpr double kPieceIssues = 6;    ///< instructions for a piece
constexpr double kSchedulers = 4;     ///< of a multiprocessor
constexpr double kLongBody = 2048, kLongCode = 1.02; ///< longer loop bodies leave the instruction caches
constexpr double kTileClocks = 30, kBlockClocks = 1200, kStoreClocks = 2; ///< of a tile, a block, and a sum
constexpr double kOneWarp = 0.25; ///< of its time does a scheduler with one warp wait for latencies
constexpr double kL2Bytes = 40;   ///< a clock and multiprocessor
constexpr double kNarrow = 1.02;  ///< times as long by accesses of one element
constexpr double kPreferStages = 0.002, kPreferBlocks = 0.001; ///< decide between equals
constexpr int64_t kMostResident = 16;                          ///< blocks of a multiprocessor
/// Of the bandwidth that is reached, of memory's time that stays beside the rest's; seconds.
struct Surroundings {
  double bandwidth, left, launch, reduce;
};
constexpr Surroundings kNvidia = {1, 0.05, 1.6e-6, 2e-6};
constexpr Surroundings kAmd = {0.85, 0.3, 3e-6,
                               4e-6}; ///< as nominal as in the templates this is compared with

/// Blocks that one multiprocessor holds at a time; `blocks` caps the registers that the assembler takes.
int64_t resident_blocks(const SimtTiling& t, const Device& device) {
  const GpuLimits limits(device.arch);
  const int64_t unit = limits.granule, most = limits.registers / (t.blocks * t.threads) / unit * unit;
  const int64_t registers = std::max(unit, std::min<int64_t>(ceil_div(t.registers(), unit) * unit, most));
  return std::max<int64_t>(
      1, std::min({device.shared_multiprocessor / (t.shared_bytes() + limits.kept),
                   limits.registers / (registers * t.threads), limits.resident / t.threads, kMostResident}));
}

/// The values that rules look at; of parameters that are not known yet, the smallest.
struct Point {
  const Gemm& p;
  const Device& device;
  const SimtTiling& t;
  const GpuLimits limits{device.arch};
  int64_t most_registers() const { return std::min(limits.most_registers, limits.registers / t.threads); }
};

const Rule<Index, Point> kRules[] = {
    {kWide,
     [](const Point& x) { return x.t.wide && x.t.a.width == 1 && x.t.b.width == 1 && x.t.width_d == 1; },
     [](const Point&) {
       return std::string("wide=1: rows of the dense operands allow no access wider than an element");
     }},
    {kBm, [](const Point& x) { return x.t.bm > 16 && x.t.bm / 2 >= x.p.m; },
     [](const Point& x) { return "bm=" + text(x.t.bm / 2) + " already covers M"; }},
    {kBn, [](const Point& x) { return x.t.bn > 16 && x.t.bn / 2 >= x.p.sum_columns(); },
     [](const Point& x) { return "bn=" + text(x.t.bn / 2) + " already covers N"; }},
    {kBk, [](const Point& x) { return x.t.bk > 8 && x.t.bk / 2 >= x.t.k; },
     [](const Point& x) { return "bk=" + text(x.t.bk / 2) + " already covers K"; }},
    {kTn, [](const Point& x) { return x.t.warps_m == 0 || x.t.warps_n == 0; },
     [](const Point& x) {
       return "warps of " + text(x.t.lanes_m) + " x " + text(x.t.lanes_n) + " threads with " + text(x.t.tm) +
              " x " + text(x.t.tn) + " elements each do not divide the tile of " + text(x.t.bm) + " x " +
              text(x.t.bn);
     }},
    {kTn, [](const Point& x) { return x.t.threads < 64 || x.t.threads > 512; },
     [](const Point& x) { return text(x.t.threads) + " threads are not between 64 and 512"; }},
    {kTn, [](const Point& x) { return x.t.threads % x.limits.wave != 0; },
     [](const Point& x) {
       return text(x.t.threads) + " threads are no whole waves of " + text(x.limits.wave);
     }},
    {kTn, [](const Point& x) { return x.t.registers() > x.most_registers(); },
     [](const Point& x) {
       return "about " + text(x.t.registers()) + " registers of a thread exceed " + text(x.most_registers());
     }},
    {kStages, [](const Point& x) { return !x.t.async && x.t.stages != 2; },
     [](const Point&) {
       return std::string("operands that are converted on their way to shared memory have stages=2");
     }},
    {kStages, [](const Point& x) { return x.t.stages > 2 && x.t.stages > x.t.tiles_k + 1; },
     [](const Point& x) {
       return "stages=" + text(x.t.stages) + " exceed the " + text(x.t.tiles_k) + " tiles along K";
     }},
    {kStages, [](const Point& x) { return x.t.shared_bytes() > x.device.shared_block; },
     [](const Point& x) {
       return text(x.t.shared_bytes()) + " bytes of shared memory exceed the device's " +
              text(x.device.shared_block);
     }},
    {kBlocks, [](const Point& x) { return x.t.blocks * x.t.threads > x.limits.resident; },
     [](const Point& x) {
       return "blocks=" + text(x.t.blocks) + " have more threads than a multiprocessor";
     }},
    {kBlocks,
     [](const Point& x) {
       return x.t.blocks > 1 &&
              x.t.blocks * (x.t.shared_bytes() + x.limits.kept) > x.device.shared_multiprocessor;
     },
     [](const Point& x) {
       return "blocks=" + text(x.t.blocks) + " exceed the shared memory of a multiprocessor";
     }},
    {kBlocks,
     [](const Point& x) {
       return x.t.blocks > 1 && x.t.registers() * x.t.threads * x.t.blocks > x.limits.registers;
     },
     [](const Point& x) {
       return "about " + text(x.t.registers()) + " registers of " + text(x.t.blocks * x.t.threads) +
              " threads exceed " + text(x.limits.registers);
     }},
    {kSplits,
     [](const Point& x) {
       return x.t.splits > 1 && x.t.tiles_m * x.t.tiles_n * x.p.batch >= 2 * x.device.cores;
     },
     [](const Point&) { return std::string("splits for a grid that fills the device twice without"); }},
    {kSplits,
     [](const Point& x) { return x.t.splits > 1 && (x.t.splits - 1) * x.t.split_tiles >= x.t.tiles_k; },
     [](const Point& x) {
       return "splits=" + text(x.t.splits) + " of " + text(x.t.tiles_k) + " tiles along K leave one without";
     }},
    {kSplits, [](const Point& x) { return x.t.splits > 1 && x.t.split_tiles * x.t.bk < 64; },
     [](const Point&) { return std::string("less than 64 of K in a split"); }},
    {kGroup,
     [](const Point& x) {
       return has_smaller_group(x.t.group, x.t.tiles_m) || (x.t.group > 1 && x.t.tiles_n == 1);
     },
     [](const Point& x) { return "group=" + text(x.t.group) + " is the same as a smaller one"; }},
};

/// Cycles that one multiprocessor spends on one block's share of the sum, when others hide its latencies.
double block_cycles(const SimtTiling& t, Type accumulate, const Device& device) {
  const double warps = double(t.threads) / 32, products = double(t.bm * t.bn * t.bk);
  const int64_t loads = t.tm / t.chunk_m() + t.tn / t.chunk_n();
  const double multiply = products / multiply_rate(accumulate, device);
  // Shared memory gives a register of 32 lanes a cycle at best; several lanes that read one word cost less
  // than that.
  const double copies = double(t.a.pieces + t.weights * t.b.pieces) / 32;
  const double shared =
      warps * double(t.bk) * double(loads) * kFragmentClocks + copies * (t.async ? kCopyClocks : kWayClocks);
  const double convert =
      t.as_is ? 0 : double(t.a.pieces * t.a.unit + t.weights * t.b.pieces * t.b.unit) / 32 * kConvertIssues;
  const double each = accumulate == Type::i32 && t.dot == 1 ? 2 : 1;
  const double issue =
      (warps * double(t.bk) * (double(t.tm * t.tn) * each + loads) + copies * kPieceIssues + convert) /
      kSchedulers;
  // The units overlap, but not perfectly.
  const double tile = std::sqrt(multiply * multiply + shared * shared / 2 +
                                std::max(0.0, issue * issue - multiply * multiply));
  const double code = double(t.tm * t.tn * t.bk) > kLongBody ? kLongCode : 1;
  return double(t.split_tiles) * (tile * code + kTileClocks) + kBlockClocks +
         double(t.tm * t.tn) * warps * kStoreClocks;
}

/// Bytes from memory, when the blocks that run at a time share what they read through L2: bands of `group`
/// tiles.
double memory_bytes(const Gemm& p, const SimtTiling& t, const Device& device, double once) {
  const double bytes_a = double(size_of(p.a)), bytes_b = double(size_of(p.b));
  const double tiles = double(t.tiles_m * t.tiles_n), at_once = std::min(tiles, double(device.cores));
  const double rows = std::min(double(t.group), double(t.tiles_m));
  const double columns = std::min(at_once / rows, double(t.tiles_n));
  const double wave = double(p.k) * (rows * double(t.bm) * bytes_a + columns * double(t.bn) * bytes_b);
  return std::max(once, double(p.batch) * tiles / (rows * columns) * wave);
}

/// Steps from row to row that cost nothing yet, as ptxas then reads the next fragments later. Among 220
/// random configs of f32 near their limit on sm_90a (CUDA 13), it spilled in 15; in 9 of the 208 that this
/// leaves.
constexpr int64_t kStepsInReserve = 5;

} // namespace

SimtTiling::SimtTiling(const Gemm& p, const Config& config, const std::string& arch)
    : copies(has_copies(arch)) {
  bm = at(config, kBm), bn = at(config, kBn), bk = at(config, kBk), tm = at(config, kTm),
  tn = at(config, kTn);
  stages = at(config, kStages), wide = at(config, kWide), blocks = at(config, kBlocks),
  splits = at(config, kSplits);
  group = at(config, kGroup);
  const int64_t width_a = wide ? widest(unit_of(p, p.a_transposed() ? Size::m : Size::k), size_of(p.a)) : 1;
  const int64_t width_b = wide ? widest(unit_of(p, p.b_transposed() ? Size::k : Size::n), size_of(p.b))
                               : 1; // the second weight's too
  const int64_t longest = longest_dot(p.a);
  const bool rows_along_k = p.layout == Layout::nt && width_a >= longest && width_b >= longest;
  dot = dot_length(p, arch, rows_along_k);
  // Less aligned operands are multiplied one by one: in another order.
  if (p.batch_invariant && p.accumulate != Type::i32) dot = 1;
  as_is = dot > 1 ? rows_along_k : p.a == Type::f32 || p.a == Type::tf32 || p.a == Type::f64;
  async = as_is && copies;
  element = p.a == Type::f64 ? 8 : 4;
  depth = p.k, k = ceil_div(depth, dot), any_depth = p.ranged(Size::k);

  weights = p.gate ? 2 : 1;
  lanes_n = std::clamp<int64_t>(bn / tn, 1, 8), lanes_m = 32 / lanes_n;
  warps_n = bn % (lanes_n * tn) ? 0 : bn / (lanes_n * tn);
  warps_m = bm % (lanes_m * tm) ? 0 : bm / (lanes_m * tm);
  threads = warps_m * warps_n * 32;
  tiles_m = ceil_div(p.m, bm), tiles_n = ceil_div(p.n, columns()), tiles_k = ceil_div(k, bk);
  split_tiles = ceil_div(tiles_k, splits);

  auto side = [&](Type type, bool k_major, int64_t extent, int64_t size, int64_t width) {
    SimtSide s;
    s.type = type, s.k_major = k_major, s.extent = extent, s.size = size;
    s.bytes = size_of(type);
    // Copies cannot transpose: along k they take one element of shared memory each.
    s.width = async && k_major ? dot : std::min(width, k_major ? bk * dot : extent);
    // What is put together of several rows: narrower, so that all threads have some of it.
    while (dot > 1 && !k_major && s.width * s.bytes > 4 && extent * bk / s.width < threads) s.width /= 2;
    s.lines = k_major ? ceil_div(dot, s.width) : dot;
    s.unit = k_major ? ceil_div(s.width, dot) : s.width;
    s.row = extent + (k_major ? 16 / element : 0);
    s.pieces = extent * bk / s.unit;
    s.per_thread = threads ? std::max<int64_t>(1, s.pieces / threads) : 1;
    if (k_major) {
      s.k_lanes = std::min<int64_t>(8, bk / s.unit);
      s.rows = threads ? std::max<int64_t>(1, extent * s.k_lanes / threads) : 1;
    }
    return s;
  };
  a = side(p.a, !p.a_transposed(), bm, p.m, width_a);
  a.ragged = p.groups > 0 || p.ranged(Size::m);
  b = side(p.b, p.b_transposed(), columns(), p.n, width_b);
  b.ragged = p.ranged(Size::n);
  b.offset = bk * a.row * element;
  width_d = wide ? std::min(widest(unit_of(p, Size::n), size_of(p.d)), chunk_n()) : 1;
}

int64_t SimtTiling::registers() const {
  const int64_t words = element / 4;
  int64_t count = words * (tm * tn + 2 * (tm + tn)) + 28;
  int64_t steps = 0; // along rows that may end, each a pair of registers over the loop
  for (auto [s, matrices] : {std::pair{&a, int64_t(1)}, {&b, weights}})
    if (s->clamped()) steps += matrices * (s->rows - 1);
  if (copies) count += 2 * std::max<int64_t>(0, steps - kStepsInReserve);
  if (!async)
    for (auto [s, matrices] : {std::pair{&a, int64_t(1)}, {&b, weights}}) {
      const int64_t words = s->lines * std::max<int64_t>(1, s->width * s->bytes / 4);
      count += matrices * s->per_thread * (words + (copies ? 0 : 2));
      if (s->lines > 1)
        count += matrices * (s->per_thread + 1) * s->lines; // while they are put together; found
    }
  return copies ? count
                : count -
                      12; // without: AMD, where addresses are of 64 bits and much else is in scalar registers
}

std::string Simt::why_not(const Gemm& p, const std::string& arch) const {
  if (p.a == Type::u8) return "simt does not multiply u8";
  if (const std::string why = why_no_depth(p); !why.empty()) return why;
  if (is_amd(arch)) return "";
  return compute_capability(arch) >= 80 ? "" : "simt is for AMD GPUs, and NVIDIA GPUs from sm_80 on";
}

std::vector<Parameter> Simt::parameters(const Gemm& p, const Device& device) const {
  std::vector<int64_t> stages = {2};
  if (has_copies(device.arch) &&
      (p.a == Type::f32 || p.a == Type::tf32 || p.a == Type::f64 || p.a == Type::i8))
    stages = {2, 3, 4, 5};
  std::vector<int64_t> splits = {1};
  for (int64_t s : {2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64})
    if (s * 64 <= p.k && p.m * p.n * p.batch / (256 * 256) < 2 * device.cores) splits.push_back(s);
  return {{"wide",
           {0, 1},
           "0: accesses of one element; 1: of up to 16 bytes, as rows of the dense operands allow"},
          {"bm", {16, 32, 64, 128, 256}, "rows of D that a block computes", {16, 512, 1, true}},
          {"bn", {16, 32, 64, 128, 256}, "columns of D that a block computes", {16, 512, 1, true}},
          {"bk",
           {8, 16, 32},
           "steps of K in a tile (of four or two elements where one instruction multiplies so many)",
           {8, 128, 1, true}},
          {"tm", {1, 2, 4, 8}, "rows of D that a thread computes", {1, 16, 1, true}},
          {"tn", {4, 8, 16}, "columns of D that a thread computes", {4, 32, 1, true}},
          {"stages", stages, "tiles of A and B in shared memory", {2, stages.size() > 1 ? 12 : 2}},
          {"blocks", {1, 2, 3, 4}, "blocks of a multiprocessor that registers are limited for", {1, 16}},
          {"splits", splits, "blocks that share the sum over K of one tile", {1, 256}},
          {"group", {1, 4, 8, 16}, "rows of tiles that are computed together, for the L2 cache", {1, 256}}};
}

std::string Simt::why_illegal(const Gemm& problem, const Device& device, const Config& config) const {
  if (problem.groups && (at(config, kSplits) > 1 || at(config, kGroup) > 1))
    return "tiles of groups of rows are visited group by group, and their sums are not split: splits=1 "
           "group=1";
  const Ungrouped ungrouped(problem, for_rules);
  const Gemm& p = ungrouped.problem();
  const SimtTiling t(p, config, device.arch);
  return first_broken(kRules, Point{p, device, t});
}

bool Simt::dead_end(const Gemm& problem, const Device& device, const Config& config, size_t assigned) const {
  const Ungrouped ungrouped(problem, for_rules);
  const Gemm& p = ungrouped.problem();
  static constexpr int64_t kSmallest[] = {0, 16, 16, 8, 1, 4, 2, 1, 1, 1};
  const SimtTiling t(p, filled<kNames, kSmallest>(config, assigned), device.arch);
  return breaks_any(kRules, Point{p, device, t}, assigned);
}

double Simt::cost(const Gemm& whole, const Device& device, const Config& config) const {
  const Ungrouped ungrouped(whole);
  const Gemm& problem = ungrouped.problem();
  const SimtTiling t(problem, config, device.arch);
  const Gemm p = problem.ungated();
  const double clock = double(device.clock_khz) * 1e3, cores = double(device.cores);
  const double bandwidth = double(device.memory_bandwidth);
  const int64_t blocks = t.tiles_m * t.tiles_n * p.batch * t.splits;
  const double waves = double(ceil_div(blocks, device.cores)); // blocks of the busiest multiprocessor
  // Four warps of a scheduler hide nearly all latencies.
  const double warps = std::min(waves, double(resident_blocks(t, device))) * double(t.threads) / 128;
  const double busy = 1 - kOneWarp * std::exp2(1 - std::max(1.0, warps));
  double seconds = waves * block_cycles(t, p.accumulate, device) / (busy * clock);

  // Every tile comes through L2.
  const double bytes_a = double(size_of(p.a)), bytes_b = double(size_of(p.b));
  const double depth = double(t.split_tiles * t.bk * t.dot);
  const double tile_bytes = depth * (double(t.bm) * bytes_a + double(t.bn) * bytes_b);
  seconds = std::max(seconds, double(blocks) * tile_bytes / (cores * kL2Bytes * clock));
  const double once = double(p.batch) * (double(p.m * p.k) * bytes_a + double(p.k * p.n) * bytes_b +
                                         double(p.m * problem.n) * double(size_of(p.d)));
  const Surroundings& around = is_amd(device.arch) ? kAmd : kNvidia;
  const double memory = memory_bytes(p, t, device, once) / (around.bandwidth * bandwidth);
  seconds = std::max(seconds, memory) + (around.left * memory + around.launch);
  if (t.splits > 1) seconds += around.reduce + double(t.splits * p.batch * p.m * p.n * t.element) / bandwidth;
  if (!t.wide) seconds *= kNarrow;
  return seconds * (1 + kPreferStages * double(std::abs(t.stages - 3)) + kPreferBlocks * double(t.blocks));
}

std::string Simt::sum_order(const Gemm& p, const std::string& arch, const Config& config) const {
  if (sums_are_exact(p)) return kExactSums;
  const SimtTiling t(p, config, arch);
  return "multiply-adds in the order of K" + (t.dot > 1 ? " by " + text(t.dot) : "") +
         neighbouring_parts(p, t.splits, t.bk * t.dot);
}

std::vector<Choice> Simt::fallbacks(const Gemm& p, const std::string& arch, const Config& config) const {
  const SimtTiling t(p, config, arch);
  if (!t.wide) return {};
  Config narrow = config;
  narrow.set("wide", 0);
  if (t.dot > 1) narrow.set("stages", 2), narrow.set("blocks", 1); // which converts in registers
  return {{name(), narrow}};
}

/// Odd multiples of what the problem's own sizes are multiples of, so that accesses are as wide.
int64_t Simt::workspace(const Gemm& p, const Config& config) const { return split_workspace(p, config); }

Gemm Simt::awkward(const Gemm& p, const Config& config) const {
  const SimtTiling t(p, config, "sm_80"); // its sizes alone, which are those of every arch
  auto like = [](int64_t size, int64_t least) {
    const int64_t unit = std::min<int64_t>(16, size & -size);
    const int64_t units = ceil_div(least, unit);
    return unit * (units % 2 ? units : units + 1);
  };
  Gemm small = p;
  shrink_groups(small, like(p.m, t.bm + t.bm / 3 + 1)),
      small.n = like(p.n, t.columns() + t.columns() / 3 + 1);
  small.k = like(p.k, longest_dot(p.a) * (t.bk * (t.stages + t.splits) + t.bk / 2 + 1));
  small.batch = p.batch > 1 ? 2 : 1;
  shrink_ranges(small);
  return small;
}

} // namespace deepgen
