// What configs of cpu_tile should cost.
#include "templates/core/sizes.h"
#include "templates/cpu/cpu_cut.h"
#include "templates/cpu/cpu_stream.h"
#include "templates/cpu/cpu_tile.h"

#include <algorithm>

namespace deepgen {
namespace {

/// Sizes along one axis: how many tiles of which extent.
struct TileClass {
  int64_t count, extent;
};
std::vector<TileClass> classes(int64_t size, int64_t tile) {
  std::vector<TileClass> out;
  if (size >= tile) out.push_back({size / tile, tile});
  if (size % tile) out.push_back({1, size % tile});
  return out;
}

// The estimate's constants, in cycles where no unit is named. What was measured says where; the others are
// nominal values of current x86 cores (Intel's and AMD's optimization manuals), or set by hand. None is
// fitted by a program: only the order of configs matters.
/// A cycle, from that cache. From L2 it was 32, by which panels of 96 KB seemed slower than those of 24: at
/// 64 x 4096 x 4096 on a Zen 4 they take 0.88 of the time (epyc-few-depths.csv, see kPiece in cpu_stream.h).
constexpr double kL1Bytes = 128, kL2Bytes = 48, kL3Bytes = 10;
/// The same from L2, of a B that is packed ahead: tiles of 4 x 4 vectors ask for 32, and are slower than
/// those of 5 x 4 and 6 x 4 on a Xeon.
constexpr double kPackedL2Bytes = 28;
constexpr double kL1Part = 0.8, kL2Part = 0.75;      ///< of the cache that what is swept may fill
constexpr double kFmas = 2, kLoads = 2, kIssues = 4; ///< a cycle
constexpr double kFmaLatency = 4;
/// Of AVX-512: for an element of A, beside the products; and for an instruction that steps along a row of A
/// in place, of which some take the port of a product. LLVM 22.1.8 has one for each row, and for more than
/// kAddresses rows keeps further addresses on the stack.
constexpr double kSplat = 0.05, kStep = 0.2;
constexpr int64_t kAddresses = 12, kMoreSteps = 9;
constexpr double kLoopIssues = 3;               ///< instructions around an unrolled body
constexpr double kInPlace = 1.15;               ///< loads for a vector of an unpacked B
constexpr double kOnePass = 1.5, kPasses = 3.0; ///< for a vector of D: once, or in each block of K
constexpr double kCall = 30, kSumLanes = 7;     ///< of a micro-kernel; to add up the lanes of a sum
constexpr double kCopyAlong = 0.15,
                 kCopyAcross = 0.45; ///< for 4 bytes that are packed, by the order in memory
constexpr double kSetConflict = 0.1; ///< for an element of A whose rows share cache sets
constexpr double kNewPage = 3.0;     ///< for a step of K on another page
constexpr int64_t kPage = 4096, kFewRows = 8, kShortBlock = 64;

/// Bytes per cycle at which an operand that is swept again and again arrives, by the cache that holds it.
double bytes_per_cycle(double bytes, const Device& device, double from_l2 = kL2Bytes) {
  return bytes <= kL1Part * double(device.l1d)  ? kL1Bytes
         : bytes <= kL2Part * double(device.l2) ? from_l2
                                                : kL3Bytes;
}

/// How fast a tile's operands arrive: a panel of B stays while tiles of A pass (loops 0 and 2), or the
/// reverse.
struct Supply {
  double a_rate, b_rate;
};
Supply supply(const Gemm& p, const Device& device, const CpuTiling& t) {
  const double depth = double(std::min(t.kc, p.k)) * double(size_of(p.a));
  // A tile with a part of a panel's columns has its lines in that part of the cache's sets.
  const double a_panel = double(t.mr) * depth, b_panel = double(t.pitch) * depth;
  const double a_block = double(t.mc_tiles) * a_panel, b_block = double(t.nc_tiles * t.nr) * depth;
  const bool a_stays = t.loops == 1;
  return {bytes_per_cycle(a_stays ? a_panel : a_block, device),
          bytes_per_cycle(a_stays ? b_block : b_panel, device, t.packed_b ? kPackedL2Bytes : kL2Bytes)};
}

/// Cycles of a step of k that sums cost which LLVM keeps on the stack. Where fewer registers are free, a load
/// of the next step is moved ahead and takes one; all sums are then stored behind each unrolled body and
/// loaded again ahead of the next. Read from code for AVX2 (LLVM 22.1.8): 4 x 3 and 6 x 2 tiles with ku = 4
/// spill 10 sums and more, 3 x 3 and 5 x 2 none. The factor: 4 x 3 beside 3 x 3 tiles on a Zen 4, 59 to 72
/// beside 79 to 94 GFLOP/s. AVX-512 has room for all that is legal.
///
/// Of vectors along K, LLVM moves all loads of an unrolled body ahead. 24 sums with ku = 2 took 2.0 to 3.0
/// times the time of ku = 1, 16 to 20 of them 1.0 to 1.4 times, 15 and fewer mostly 1.0
/// (benchmarks/search/cpu_f32_8x1024x1024_nt): about a cycle for each register that is short.
double spill_cycles(const CpuTiling& t, double sums, double rows, double vectors) {
  constexpr double kFreeRegisters = 3, kEachSum = 0.8, kEachShort = 0.8;
  const double registers = double(t.isa.registers());
  if (t.dot) {
    const double wanted = sums + double(t.unroll) * (rows + vectors) + 1;
    return t.unroll > 1 ? kEachShort * std::max(0.0, wanted - registers) : 0;
  }
  const bool fits = sums + vectors + 1 + kFreeRegisters <= registers;
  return fits || t.isa.level >= 4 ? 0 : kEachSum * sums / double(t.unroll);
}

/// Cycles of a step of k that AVX-512 takes longer for elements of A than for its products alone, where B is
/// packed ahead: tiles of four vectors are faster than those of two on a Xeon. Where B is taken as it is
/// stored, recorded spaces of an EPYC are ordered better without it.
double splat_cycles(const CpuTiling& t, int64_t rows) {
  if (t.isa.level < 4 || !t.packed_b) return 0;
  const int64_t steps = t.pack_a ? 0 : rows + (rows > kAddresses ? kMoreSteps : 0);
  return kSplat * double(rows) + kStep * double(steps) / double(t.unroll);
}

/// Cycles of one micro-kernel call: the largest of FMA throughput, FMA latency, load and issue slots and
/// cache bandwidth for every step of k, then the tile's own traffic. Two FMAs and two loads a cycle.
double micro_cycles(const CpuTiling& t, const Supply& from, int64_t rows, int64_t columns, double kc) {
  const int64_t lanes = t.isa.lanes();
  const double vectors = t.dot ? double(columns) : double(ceil_div(columns, lanes));
  const double sums = double(rows) * vectors, width = double(t.isa.bytes());
  const double asked = t.prefetch == kNextTile ? vectors : 0;
  const double loads = double(rows) + asked + vectors * (t.pack_b || t.packed_b || t.dot ? 1.0 : kInPlace);
  const double a_bytes = double(rows) * (t.dot ? width : width / double(lanes));
  const double traffic = a_bytes / from.a_rate + vectors * width / from.b_rate;
  const double step = std::max({sums / kFmas, kFmaLatency, loads / kLoads,
                                (sums + loads) / kIssues + kLoopIssues / double(t.unroll), traffic}) +
                      spill_cycles(t, sums, double(rows), vectors) + splat_cycles(t, rows);
  const double d_vectors = double(rows) * double(ceil_div(columns, lanes));
  const double passes = t.k_blocks > 1 ? kPasses : kOnePass;
  return step * (t.dot ? kc / double(lanes) : kc) + d_vectors * passes + kCall +
         (t.dot ? sums * kSumLanes : 0);
}

double tile_cycles(const Gemm& p, const Device& device, const CpuTiling& t) {
  const Supply from = supply(p, device, t);
  double cycles = 0;
  for (auto [m_count, rows] : classes(p.m, t.mr))
    for (auto [n_count, columns] : classes(p.n, t.nr))
      for (auto [k_count, kc] : classes(p.k, t.kc))
        cycles += double(m_count * n_count * k_count) * micro_cycles(t, from, rows, columns, double(kc));
  return cycles;
}

/// Sweeps over B of a config that copies it into panels: one, or one for each block of rows.
double copies_of_b(const CpuTiling& t) {
  const bool again = t.sums_elements && t.k_blocks > 1 && t.loops != 2;
  return again ? double(ceil_div(t.m_tiles, t.mc_tiles)) : 1;
}

/// How often B comes from beyond L2.
double sweeps_of_b(const Gemm& p, const Device& device, const CpuTiling& t) {
  if (t.pack_b) return copies_of_b(t);
  const double block = double(t.nc_tiles * t.nr * std::min(t.kc, p.k) * size_of(p.a));
  const bool each = t.loops == 1 && block > kL2Part * double(device.l2); // tile of A has B from memory
  return each ? double(t.m_tiles) : double(ceil_div(t.m_tiles, t.mc_tiles));
}

/// Copies into panels, and what reading in place costs.
double memory_cycles(const Gemm& p, const CpuTiling& t) {
  const double bytes = double(size_of(p.a)), m = double(p.m), n = double(p.n), k = double(p.k);
  double cycles = 0;
  if (t.pack_a) {
    const double sweeps = double(ceil_div(t.n_tiles, t.nc_tiles));
    cycles += m * k * sweeps * (t.dot || p.a_transposed() ? kCopyAlong : kCopyAcross) * bytes / 4;
  }
  if (t.pack_b) {
    cycles += n * k * copies_of_b(t) * (p.b_transposed() ? kCopyAcross : kCopyAlong) * bytes / 4;
  }
  if (!t.pack_a && rows_conflict(p, t.mr)) cycles += kStreamConflict * m * k * double(t.n_tiles);
  if (!t.pack_a && !p.a_transposed() && t.mr > kFewRows && (p.k * size_of(p.a)) % kPage == 0 && t.m_tiles > 1)
    cycles += kSetConflict * m * k * double(t.n_tiles);
  // A step of k takes part of a line of a transposed A, and the next one is on another page. Wider tiles of
  // AVX-512 hide it: on a Zen 4, packing makes AVX2 1.3 to 1.5 times faster (2304 and 3072 x 768 x 256), and
  // AVX-512 6 % slower.
  if (!t.pack_a && p.a_transposed() && t.kc > kShortBlock && t.isa.level < 4)
    cycles += kNewPage * k * double(t.n_tiles) * double(t.m_tiles);
  if (!t.pack_b && !t.packed_b && !t.dot && p.n * size_of(p.a) > kPage / 2 && t.kc > kShortBlock)
    cycles += kNewPage * k * double(t.n_tiles) * double(t.m_tiles); // a page of B per step of k
  return cycles;
}

/// What is seen of B's ways where it is packed ahead and L2 does not keep it between calls: of each matrix of
/// a batch, from beyond L2; of few rows, whose stream with_stream() counts, of the blocks that L1 does not
/// keep, from L2 (8 rows: with blocks of 64 steps of K, 0.86 to 0.96 of the time of 1024,
/// benchmarks/cpu/results/xeon-tile-few.csv).
double packed_cycles(const Gemm& p, const Device& device, const CpuTiling& t) {
  const auto b = double(packed_layout(p).entry_bytes);
  const double others = double(p.m * (p.k * size_of(p.a) + p.n * size_of(p.d)));
  if (double(p.batch) * (b + others) <= double(device.l2)) return 0;
  if (p.batch > 1) return (t.lines > 0 ? kSeen : 1) * b / kL3Bytes;
  const double block = double(t.pitch * t.kc * size_of(p.b));
  return p.m <= kFewPackedRows && block > kL1Part * double(device.l1d) ? kSeen * b / kPackedL2Bytes : 0;
}

} // namespace

double CpuTile::cost(const Gemm& whole, const Device& device, const Config& config) const {
  Gemm p = whole;
  if (has_cut(whole)) {
    const CpuTiling tiles(whole, config);
    p = share_of(whole, cut_of(config), tiles.mr, tiles.dr);
  }
  const CpuTiling t(p, config);
  constexpr double kHertz = 3e9; // nominal: only the order matters
  const Gemm product = p.ungated();
  const MemoryStream stream = stream_along_k(product, device, sweeps_of_b(product, device, t), t.k_blocks,
                                             t.prefetch == kNextTile ? t.nr : 0);
  double cycles = with_memory(stream, tile_cycles(product, device, t) + memory_cycles(product, t));
  if (p.packed_b) cycles += packed_cycles(p, device, t);
  return double(p.batch) * with_stream(p, device, t.lines > 0, cycles) / kHertz;
}

} // namespace deepgen
