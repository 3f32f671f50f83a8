#include "templates/amd/amd_matrix.h"

#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/core/sum_order.h"
#include "templates/gpu/gpu_split_k.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

enum Index {
  kWide,
  kSize,
  kBm,
  kBn,
  kBk,
  kWavesM,
  kWavesN,
  kDirect,
  kBuffer,
  kStages,
  kPingpong,
  kBlocks,
  kSplits,
  kGroup,
  kXcds,
  kParameters
};
constexpr std::string_view kNames[] = {"wide",     "size",    "bm",     "bn",     "bk",
                                       "waves_m",  "waves_n", "direct", "buffer", "stages",
                                       "pingpong", "blocks",  "splits", "group",  "xcds"};
/// What dead_end() fills in for parameters that are not assigned.
constexpr int64_t kSmallest[] = {0, 16, 16, 16, 64, 1, 1, 0, 0, 1, 0, 1, 1, 1, 1};

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// The largest power of two, up to `most`, that divides x.
int64_t power_in(int64_t x, int64_t most) { return std::min(most, x & -x); }

/// Vector registers that a lane of `waves` waves on a SIMD can have; beyond 256 there are accumulation
/// registers alone.
int64_t most_registers(const AmdArch& arch, int64_t waves) {
  return std::min<int64_t>(256, arch.registers / std::max<int64_t>(1, waves) / arch.granule * arch.granule);
}

MatrixSide side_of(const Gemm& p, Size along, int64_t extent, const MatrixTiling& t) {
  MatrixSide s;
  const bool is_a = along == Size::m, k_contiguous = is_a ? !p.a_transposed() : p.b_transposed();
  s.type = is_a ? p.a : p.b, s.k_contiguous = k_contiguous, s.extent = extent, s.size = p.sizes()[along],
  s.depth = p.k, s.bytes = size_of(s.type);
  const int64_t element = t.shape.element, threads = std::max(t.shape.wave, t.threads);
  s.k = t.direct ? std::max<int64_t>(1, t.direct_bytes / element) : 16 / element; // one write to LDS
  if (!k_contiguous) {
    // A piece is transposed in registers. It gets smaller until there is one for each thread.
    s.x = power_in(unit_of(p, along), 16 / s.bytes);
    auto few = [&] { return extent / s.x * (t.bk / s.k) < threads; };
    while (few() && s.x > 1 && s.x * s.bytes > 8) s.x /= 2;
    while (few() && s.k * element > 8) s.k /= 2;
    while (few() && s.x > 1 && s.x * s.bytes > 4) s.x /= 2;
    s.x = std::min(s.x, extent);
  }
  s.along_k = t.bk / s.k, s.along_x = extent / s.x;
  s.per_thread = ceil_div(s.pieces(), threads);
  return s;
}

/// Blocks are dealt out to eight dies.
bool has_dies(const Device& device) { return device.arch == "gfx942" || device.arch == "gfx950"; }

/// Loads to LDS, of a lane. Those of 4 bytes take four times as many instructions.
int64_t bytes_of_copies(const std::string& arch) { return arch == "gfx950" ? 16 : 4; }

struct Point {
  const Gemm& p;
  const Device& device;
  const MatrixTiling& t;
  const AmdArch& arch;
  int64_t waves() const { return t.waves_m * t.waves_n; }
  int64_t grid() const { return t.tiles_m * t.tiles_n * p.batch; }
  /// Waves of a SIMD, at least, that the register allocator leaves room for.
  int64_t per_simd() const { return ceil_div(t.blocks * waves(), AmdArch::simds); }
};

/// The same tile for operands that are aligned to their elements alone, and any pitch.
Config through_registers(Config config) {
  if (at(config, kDirect)) config.set("stages", 2), config.set("pingpong", 0), config.set("blocks", 1);
  config.set("direct", 0), config.set("buffer", 0), config.set("wide", 0);
  return config;
}

bool is_aligned(const Gemm& p, const MatrixSide& s) {
  const bool any_pitch = s.k_contiguous && p.ranged(Size::k);
  return (any_pitch ? s.bytes : s.dense_pitch()) % s.align() == 0;
}

/// Whether threads can copy the operand's tile to LDS as it lies in memory, all of them as many pieces. No K
/// of a range ends with a piece, and none has as many tiles as are on their way.
bool is_copied(const Gemm& p, const MatrixTiling& t, const MatrixSide& s) {
  return s.k_contiguous && !p.ranged(Size::k) && s.k * s.bytes == t.direct_bytes &&
         s.lds_bytes(t) == t.direct_bytes && s.pieces() % t.threads == 0 &&
         p.k * s.bytes % t.direct_bytes == 0;
}

const Rule<Index, Point> kRules[] = {
    {kWide, [](const Point& x) { return x.t.wide && x.t.width_d == 1; },
     [](const Point&) { return std::string("wide=1: rows of D allow no access wider than an element"); }},
    {kSize, [](const Point& x) { return x.t.shape.name.empty(); },
     [](const Point& x) {
       return "there is no matrix instruction of size=" + text(x.t.size) + " for the types";
     }},
    {kBm, [](const Point& x) { return x.t.bm > 32 && x.t.bm / 2 >= x.p.m; },
     [](const Point& x) { return "half of bm=" + text(x.t.bm) + " already covers M"; }},
    {kBn, [](const Point& x) { return x.t.bn > 32 && x.t.bn / 2 >= x.p.n; },
     [](const Point& x) { return "half of bn=" + text(x.t.bn) + " already covers N"; }},
    {kBk, [](const Point& x) { return x.t.bk_bytes > 64 && x.t.bk / 2 >= x.p.k; },
     [](const Point& x) { return "half of bk=" + text(x.t.bk_bytes) + " bytes already covers K"; }},
    {kBk, [](const Point& x) { return x.t.stage_bytes() > x.device.shared_block; },
     [](const Point& x) { return "a stage has " + text(x.t.stage_bytes()) + " bytes, shared memory less"; }},
    {kWavesN, [](const Point& x) { return !x.t.divides(); },
     [](const Point& x) {
       return "the tile of " + text(x.t.bm) + " x " + text(x.t.bn) +
              " is not whole instructions of size=" + text(x.t.size) + " for each of the waves";
     }},
    {kWavesN,
     [](const Point& x) { return x.t.threads > 512 || (x.waves() < 4 && x.t.bm * x.t.bn > 64 * 64); },
     [](const Point& x) {
       return text(x.waves()) + " waves: a tile of this size wants 4, and at most 512 threads";
     }},
    {kWavesN, [](const Point& x) { return x.t.wm > 4 * x.t.wn || x.t.wn > 4 * x.t.wm; },
     [](const Point& x) {
       return "a wave's tile of " + text(x.t.wm) + " x " + text(x.t.wn) + " is too oblong";
     }},
    {kWavesN, [](const Point& x) { return x.t.accumulators() > 128; },
     [](const Point& x) { return text(x.t.accumulators()) + " accumulators of a lane: more than 128"; }},
    {kWavesN, [](const Point& x) { return x.t.registers() > most_registers(x.arch, ceil_div(x.waves(), 4)); },
     [](const Point& x) {
       return "about " + text(x.t.registers()) + " registers of a lane exceed " +
              text(most_registers(x.arch, ceil_div(x.waves(), 4)));
     }},
    {kDirect,
     [](const Point& x) { return x.t.direct && !(is_copied(x.p, x.t, x.t.a) && is_copied(x.p, x.t, x.t.b)); },
     [](const Point& x) {
       return "direct=1: A and B have to lie along K as LDS holds them, in whole pieces of " +
              text(x.t.direct_bytes) + " bytes, each thread with the same number of them";
     }},
    {kDirect,
     [](const Point& x) { return x.t.direct && x.t.registers_indirect() > most_registers(x.arch, 2); },
     [](const Point& x) {
       return "direct=1: less aligned operands go through about " + text(x.t.registers_indirect()) +
              " registers of a lane, more than " + text(most_registers(x.arch, 2));
     }},
    {kBuffer,
     [](const Point& x) { return x.t.buffer && !(is_aligned(x.p, x.t.a) && is_aligned(x.p, x.t.b)); },
     [](const Point&) { return std::string("buffer=1: rows of A and B have to be aligned to 4 bytes"); }},
    {kBuffer,
     [](const Point& x) {
       const int64_t padded = std::max(x.t.a.dense_pitch(), x.t.b.dense_pitch()) + 256; // as verified
       return x.t.buffer && padded > x.t.most_pitch();
     },
     [](const Point& x) {
       return "buffer=1: offsets of 32 bits reach rows that are " + text(x.t.most_pitch()) +
              " bytes apart at most";
     }},
    {kStages, [](const Point& x) { return x.t.direct && x.t.stages == 1; },
     [](const Point&) {
       return std::string("stages=1: with direct=1 a tile needs a stage while another one is read");
     }},
    {kStages, [](const Point& x) { return x.t.direct && (x.t.stages - 1) * x.t.loads() > 63; },
     [](const Point& x) {
       return text((x.t.stages - 1) * x.t.loads()) + " copies of a wave are more than it can count: 63";
     }},
    {kStages, [](const Point& x) { return x.t.stages > x.t.tiles_k; },
     [](const Point& x) { return "stages=" + text(x.t.stages) + " exceed the tiles along K"; }},
    {kStages, [](const Point& x) { return x.t.shared_bytes() > x.device.shared_block; },
     [](const Point& x) {
       return text(x.t.shared_bytes()) + " bytes of shared memory exceed the block's " +
              text(x.device.shared_block);
     }},
    {kPingpong, [](const Point& x) { return x.t.pingpong && (x.arch.wave != 64 || x.waves() != 8); },
     [](const Point& x) {
       return "pingpong=1: two waves on each SIMD take turns, and there are " + text(x.waves());
     }},
    {kPingpong, [](const Point& x) { return x.t.pingpong && x.t.stages == 1; },
     [](const Point&) {
       return std::string("pingpong=1 with stages=1: one group would write what the other reads");
     }},
    {kPingpong,
     [](const Point& x) { return x.t.pingpong && x.t.direct && x.t.stages == 2 && x.t.turns() == 1; },
     [](const Point&) {
       return std::string(
           "pingpong=1: the copies of a tile would be waited for as soon as they are asked for");
     }},
    {kBlocks, [](const Point& x) { return x.t.blocks > 1 && x.t.pingpong; },
     [](const Point&) {
       return std::string("pingpong=1: other blocks would disturb the turns; blocks is 1");
     }},
    {kBlocks, [](const Point& x) { return x.t.blocks > 1 && x.grid() <= (x.t.blocks - 1) * x.device.cores; },
     [](const Point& x) { return "there are no blocks=" + text(x.t.blocks) + " for each compute unit"; }},
    {kBlocks,
     [](const Point& x) {
       return x.t.blocks > 1 &&
              (x.per_simd() > x.arch.most_waves || x.t.registers() > most_registers(x.arch, x.per_simd()) ||
               x.t.blocks * x.t.shared_bytes() > x.device.shared_multiprocessor);
     },
     [](const Point& x) {
       return "registers or shared memory of a compute unit do not hold blocks=" + text(x.t.blocks);
     }},
    {kSplits,
     [](const Point& x) {
       return x.t.splits > 1 && ((x.t.splits - 1) * x.t.split_tiles >= x.t.tiles_k || x.t.split_tiles < 4 ||
                                 x.grid() * x.t.splits > 4 * x.device.cores);
     },
     [](const Point&) {
       return std::string("splits pay for fewer blocks than compute units, and for 4 tiles of K each");
     }},
    {kGroup,
     [](const Point& x) {
       return has_smaller_group(x.t.group, x.t.tiles_m) || (x.t.group > 1 && x.t.tiles_n == 1);
     },
     [](const Point& x) { return "group=" + text(x.t.group) + " is the same as a smaller one"; }},
    {kXcds, [](const Point& x) { return x.t.xcds > 1 && x.grid() < 2 * x.t.xcds; },
     [](const Point& x) { return "xcds=" + text(x.t.xcds) + " for a grid of " + text(x.grid()); }},
};

} // namespace

int64_t MatrixSide::registers() const { return per_thread * std::max<int64_t>(1, k * x * bytes / 4); }
int64_t MatrixSide::lds_bytes(const MatrixTiling& t) const { return k * t.shape.element; }

int64_t MatrixSide::align() const {
  return std::max(bytes, std::min<int64_t>(4, (k_contiguous ? k : x) * bytes));
}

/// Of the largest offset, what is along a row and the number of rows.
int64_t MatrixSide::most_pitch(const MatrixTiling& t) const {
  const int64_t row = (k_contiguous ? std::max(depth, t.bk) : size + extent) * bytes,
                rows = k_contiguous ? extent : std::max(depth, t.bk);
  return std::max<int64_t>(0, ((int64_t(1) << 31) - 1 - row) / rows);
}

MatrixTiling::MatrixTiling(const Gemm& p, const std::string& arch, const Config& c)
    : size(at(c, kSize)), bm(at(c, kBm)), bn(at(c, kBn)), bk_bytes(at(c, kBk)), waves_m(at(c, kWavesM)),
      waves_n(at(c, kWavesN)), direct(at(c, kDirect)), buffer(at(c, kBuffer)), stages(at(c, kStages)),
      pingpong(at(c, kPingpong)), blocks(at(c, kBlocks)), splits(at(c, kSplits)), group(at(c, kGroup)),
      xcds(at(c, kXcds)), wide(at(c, kWide)), shape(arch, p.a, p.b, size),
      threads(shape.wave * waves_m * waves_n), bk(bk_bytes / shape.element), wm(bm / waves_m),
      wn(bn / waves_n), tiles_m(ceil_div(p.m, bm)), tiles_n(ceil_div(p.n, bn)), tiles_k(ceil_div(p.k, bk)),
      split_tiles(ceil_div(tiles_k, splits)), steps(bk_bytes / shape.step_bytes()) {
  banks = lds_banks(arch);
  direct_bytes = bytes_of_copies(arch);
  paired = shape.values == 4 && size_of(p.d) <= 2 && wn % 32 == 0;
  a = side_of(p, Size::m, bm, *this);
  b = side_of(p, Size::n, bn, *this);
  b.offset = bm * bk_bytes;
  const int64_t together = paired ? 8 : shape.values;
  width_d = wide ? std::min(together, power_in(unit_of(p, Size::n), 16 / size_of(p.d))) : 1;
}

int64_t MatrixTiling::registers() const {
  const int64_t fragments = 4 * shape.pieces() * (wm / size + wn / size);
  const int64_t waiting = direct ? 0 : a.registers() + b.registers();
  return accumulators() + (pingpong && steps == 1 ? 1 : 2) * fragments + waiting +
         (direct && buffer ? 1 : 2) * (a.per_thread + b.per_thread) + 24;
}

/// direct: A's and B's tiles as they are, by 16 bytes.
int64_t MatrixTiling::registers_indirect() const {
  const int64_t fragments = 4 * shape.pieces() * (wm / size + wn / size);
  const int64_t waiting = stage_bytes() / threads / 4;
  return accumulators() + 2 * fragments + waiting + 2 * waiting / 4 + 24;
}

std::string AmdMatrix::why_not(const Gemm& p, const std::string& arch) const {
  const AmdArch* amd = find_amd(arch);
  if (!amd || !has_instructions(*amd))
    return name() + " multiplies with matrix instructions that " + arch + " does not have";
  if (p.gate) return name() + " does not serve a gate";
  if (p.groups) return name() + " serves no groups of rows";
  if (const std::string why = why_no_depth(p); !why.empty()) return why;
  if (!MatrixShape(arch, p.a, p.b, 16).name.empty()) return "";
  return arch + " has no matrix instruction for " + to_string(p.a) + " and " + to_string(p.b);
}

std::vector<Parameter> AmdMatrix::parameters(const Gemm& p, const Device& device) const {
  std::vector<int64_t> splits = {1};
  for (int64_t s : {2, 3, 4, 6, 8, 12, 16, 32})
    if (s * 128 <= p.k && p.m * p.n * p.batch / (256 * 256) < 2 * device.cores) splits.push_back(s);
  std::vector<int64_t> xcds = {1};
  if (has_dies(device)) xcds.push_back(8);
  const bool matrix_cores = find_amd(device.arch)->mfma;
  std::vector<int64_t> direct = {0}, pingpong = {0};
  if (matrix_cores) direct.push_back(1), pingpong.push_back(1);
  return {
      {"wide", {0, 1}, "0: D in accesses of one element; 1: of up to 16 bytes, as rows of the dense D allow"},
      {"size", matrix_cores ? std::vector<int64_t>{16, 32} : std::vector<int64_t>{16},
       "of the matrix instruction, along M and N"},
      {"bm", {32, 64, 128, 256}, "rows of D that a block computes", {16, 512, 16, true}},
      {"bn", {32, 64, 128, 256}, "columns of D that a block computes", {16, 512, 16, true}},
      {"bk", {64, 128}, "bytes of K of a row in a tile", {64, 256, 64, true}},
      {"waves_m", {1, 2, 4}, "waves that share the rows", {1, 8, 1, true}},
      {"waves_n", {1, 2, 4}, "waves that share the columns", {1, 8, 1, true}},
      {"direct", direct, "a tile's way to shared memory. 0: through registers; 1: copied directly"},
      {"buffer",
       {0, 1},
       "loads of A and B. 0: by pointers; 1: by offsets in a buffer, whose range is checked"},
      {"stages", {1, 2, 3}, "tiles of A and B in shared memory"},
      {"pingpong", pingpong,
       "0: each wave reads what it multiplies next meanwhile; 1: two waves of a SIMD take turns at "
       "multiplying"},
      {"blocks", {1, 2, 3, 4}, "blocks of a compute unit that registers are limited for", {1, 8}},
      {"splits", splits, "blocks that share the sum over K of one tile", {1, 256}},
      {"group", {1, 4, 8, 16}, "rows of tiles that are computed together, for the L2 cache", {1, 256}},
      {"xcds",
       xcds,
       "dies that neighbouring tiles are gathered on, as blocks are dealt out to them in turn",
       {1, 8}}};
}

std::string AmdMatrix::why_illegal(const Gemm& p, const Device& device, const Config& config) const {
  const MatrixTiling t(p, device.arch, config);
  return first_broken(kRules, Point{p, device, t, *find_amd(device.arch)});
}

bool AmdMatrix::dead_end(const Gemm& p, const Device& device, const Config& config, size_t assigned) const {
  const MatrixTiling t(p, device.arch, filled<kNames, kSmallest>(config, assigned));
  return breaks_any(kRules, Point{p, device, t, *find_amd(device.arch)}, assigned);
}

namespace {

// The estimate's constants. Nobody has timed these kernels: nothing is fitted. Rates are those that AMD's
// documents name; "nominal": as in gemv, with whose estimates these are compared. The rest is
// by hand.
constexpr double kLdsBytes = 128;                    ///< a clock and compute unit
constexpr double kTileIssues = 40, kIssueClocks = 4; ///< instructions around a tile; clocks for one of a SIMD
constexpr double kMostHiding = 8, kSimds = 4;    ///< waves that hide each other's waits, shared out to SIMDs
constexpr double kNotHidden = 0.25;              ///< of the shorter one of products and LDS
constexpr double kBarrier = 60;                  ///< clocks, over the stages that are ahead
constexpr double kTurn = 4 * 30;                 ///< clocks: four changes of turns
constexpr double kBlockClocks = 1500;            ///< until a block multiplies
constexpr double kL2Bytes = 48;                  ///< a clock and compute unit
constexpr double kLatency = 0.8e-6;              ///< seconds, nominal
constexpr double kEfficiency = 0.85;             ///< of the bandwidth, nominal
constexpr double kMemoryLeft = 0.3;              ///< of memory's time beside the rest's
constexpr double kLaunch = 3e-6, kReduce = 4e-6; ///< seconds, nominal
constexpr double kNarrow = 1.05, kNoGroup = 1.04, kNoDies = 1.03; ///< times as long without these
constexpr double kPreferBlocks = 0.001, kPreferGroup = 0.0005,
                 kPreferBuffer = 0.0002; ///< decide between equals

/// Of a wave, for a tile's way to LDS, as llvm-mca has them: of a copy by a pointer also the addition and the
/// write of M0 that wait for each other, one by one; by a pointer each load has its own addition, of 64 bits.
double issue_slots(const MatrixTiling& t, const std::string& arch) {
  if (t.direct) return double(t.loads()) * (t.buffer ? 1 : 4);
  auto loads = [](const MatrixSide& s) { return s.per_thread * (s.k_contiguous ? 1 : s.k); };
  const int64_t additions = arch == "gfx942" || arch == "gfx950" ? 1 : 2; // instructions
  const int64_t saved = t.buffer ? additions * (loads(t.a) + loads(t.b)) - 2 : 0;
  return double(t.a.registers() + t.b.registers() - saved);
}

} // namespace

/// What the parts of a tile cost by the documents.
double AmdMatrix::cost(const Gemm& p, const Device& device, const Config& config) const {
  const MatrixTiling t(p, device.arch, config);
  const AmdArch& arch = *find_amd(device.arch);
  const double clock = double(device.clock_khz) * 1e3, cores = double(device.cores);
  const int64_t waves = t.waves_m * t.waves_n, blocks = t.tiles_m * t.tiles_n * p.batch * t.splits;
  const int64_t resident =
      std::max<int64_t>(1, arch.waves(t.registers(), t.shared_bytes(), t.threads) * 4 / waves);
  const double rounds = double(ceil_div(blocks, device.cores));

  const double multiply = 2.0 * double(t.bm * t.bn * t.bk) / t.shape.rate;
  // Of LDS; what RDNA counts as a multiprocessor is two compute units, with 32 lanes a cycle on each SIMD.
  const double units = arch.wave == 32 ? 2 : 1, width = kLdsBytes * units;
  const double reads = double(waves * t.steps * (t.wm + t.wn)) / double(t.size) *
                       double(t.shape.wave * 16 * t.shape.pieces()) / width;
  const double writes = double((t.bm + t.bn) * t.bk_bytes) / width;
  const double transposed =
      double((t.a.k_contiguous ? 0 : t.bm) + (t.b.k_contiguous ? 0 : t.bn)) * double(t.bk_bytes) / width;
  const double shared = reads + writes + transposed;
  const double issue =
      double(waves) * (kTileIssues + kIssueClocks * issue_slots(t, device.arch)) / (kSimds * units * units);
  // A SIMD with one wave waits at every barrier; others fill the gaps.
  const double hidden = double(std::min<int64_t>(resident * waves, int64_t(kMostHiding))) / kSimds;
  double tile =
      std::max(multiply, shared) + (std::min(multiply, shared) * kNotHidden + issue +
                                    kBarrier / double(t.direct ? t.stages : std::min<int64_t>(2, t.stages))) /
                                       hidden;
  // Two waves of a SIMD in turns: nothing but the change of turns, twice each, is between their products, as
  // long as one's products take longer than the other's reads.
  if (t.pingpong) tile = std::max(multiply, shared + issue) + kTurn * double(t.turns());
  double seconds = rounds *
                   (double(t.split_tiles) * tile + kBlockClocks / hidden + double(t.accumulators() * waves)) /
                   clock;

  const double bytes_a = double(size_of(p.a)), bytes_b = double(size_of(p.b));
  const double tile_bytes = double(t.split_tiles * t.bk) * (double(t.bm) * bytes_a + double(t.bn) * bytes_b);
  seconds = std::max(seconds, double(blocks) * tile_bytes / (cores * units * kL2Bytes * clock)); // through L2
  // A tile is asked for while the one before is multiplied: each takes a latency of memory at least.
  const double turns = double(ceil_div(blocks, device.cores * resident));
  const double ahead = double(t.direct ? t.stages - 1 : 1);
  // With two stages a tile is written in its predecessor's first step, but asked for in the last one.
  const double late =
      t.stages == 2 && !t.direct && !t.pingpong ? tile / clock * (1 - 1 / double(t.steps)) : 0;
  seconds = std::max(seconds, turns * double(t.split_tiles) * (kLatency / ahead + late));
  const double once = double(p.batch) * (double(p.m * p.k) * bytes_a + double(p.k * p.n) * bytes_b +
                                         double(p.m * p.n) * double(size_of(p.d)));
  const double memory = once / (kEfficiency * double(device.memory_bandwidth));
  seconds = std::max(seconds, memory) + kMemoryLeft * memory + kLaunch;
  if (t.splits > 1)
    seconds += kReduce + double(2 * t.splits * p.batch * p.m * p.n * (t.shape.doubles ? 8 : 4)) /
                             double(device.memory_bandwidth);
  const bool large = t.tiles_m * t.tiles_n > device.cores;
  if (!t.wide) seconds *= kNarrow;
  if (large && t.group == 1) seconds *= kNoGroup;
  if (large && t.xcds == 1 && has_dies(device)) seconds *= kNoDies;
  return seconds * (1 + kPreferBlocks * double(t.blocks) + kPreferGroup * double(t.group == 8 ? 0 : 1) +
                    kPreferBuffer * double(t.buffer ? 0 : 1));
}

/// K begins with what its last tile lacks: where that is no whole step, tiles decide what is added together.
std::string AmdMatrix::sum_order(const Gemm& p, const std::string& arch, const Config& config) const {
  if (sums_are_exact(p)) return kExactSums;
  const MatrixTiling t(p, arch, config);
  const int64_t step = t.shape.step_bytes() / t.shape.element, first = p.k - (t.tiles_k - 1) * t.bk;
  std::string begin;
  if (p.ranged(Size::k))
    begin = ", the first tile of " + text(t.bk) + " ragged";
  else if (first % step != 0)
    begin = ", first " + text(first) + " of it";
  return t.shape.name + " in the order of K" + begin +
         (t.splits == 1 ? "" : ", splits=" + text(t.splits) + " of neighbouring tiles of " + text(t.bk));
}

std::vector<Choice> AmdMatrix::fallbacks(const Gemm& p, const std::string& arch, const Config& config) const {
  const MatrixTiling t(p, arch, config);
  if (t.width_d == 1 && !t.direct && !t.buffer) return {};
  return {{name(), through_registers(config)}};
}

/// Odd multiples of what the problem's own sizes are multiples of, so that accesses are as wide.
int64_t AmdMatrix::workspace(const Gemm& p, const Config& config) const { return split_workspace(p, config); }

Gemm AmdMatrix::awkward(const Gemm& p, const Config& config) const {
  auto like = [](int64_t size, int64_t least) {
    const int64_t unit = power_in(size, 16), units = ceil_div(least, unit);
    return unit * (units % 2 ? units : units + 1);
  };
  const int64_t bm = at(config, kBm), bn = at(config, kBn), bk = at(config, kBk) / size_of(p.a);
  Gemm small = p;
  small.m = like(p.m, bm + bm / 3 + 1), small.n = like(p.n, bn + bn / 3 + 1);
  small.k = like(p.k, bk * (std::max<int64_t>(2, at(config, kStages)) + at(config, kSplits)) + bk / 2 + 1);
  small.batch = p.batch > 1 ? 2 : 1;
  shrink_ranges(small);
  return small;
}

} // namespace deepgen
