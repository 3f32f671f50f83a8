#include "templates/cpu/cpu_dot_cost.h"

#include "base/kernel/cpu_isa.h"
#include "templates/core/sizes.h"

#include <algorithm>

namespace deepgen {
namespace {

// In cycles where no unit is named: nominal values of current x86 cores (Intel's and AMD's optimization
// manuals). None is fitted by a program: only the order of configs matters.
constexpr double kL1Bytes = 128, kL2Bytes = 48, kL3Bytes = 10; ///< a cycle, from that cache
constexpr double kL1Part = 0.8, kL2Part = 0.75;                ///< of the cache that what is swept may fill
constexpr double kLoads = 2, kIssues = 4;                      ///< a cycle
constexpr double kLatency = 5;
constexpr double kLoopIssues = 3, kCall = 60;
constexpr double kTilesProduct = 16, kTilesLoad = 8; ///< a tile's
constexpr double kSumLanes = 7;

double dot_bytes_per_cycle(double bytes, const Device& device) {
  return bytes <= kL1Part * double(device.l1d)  ? kL1Bytes
         : bytes <= kL2Part * double(device.l2) ? kL2Bytes
                                                : kL3Bytes;
}

/// Products of vectors that begin in a cycle. Of cores with AMX, vdpbf16ps has a quarter of the rate of
/// multiply-adds (measured on a core of Intel's fourth generation of scalable processors: 120 beside 240
/// GFLOP/s); of others the same.
double products_per_cycle(const Dot& dot, const Device& device) {
  if (dot.kind == DotKind::pairs) return 1;
  if (dot.kind == DotKind::bf16 && isa_of(device) & isa_amx) return 0.5;
  return 2;
}

/// Instructions around a vector of words of B that is not packed, and around one of A along K.
double conversions(const DotTiling& t) {
  if (t.form == DotForm::panel) return 0;
  const double each = t.dot.kind == DotKind::f32 ? 2 : t.dot.kind == DotKind::pairs ? 1 : 0;
  return t.form == DotForm::along_k ? each : t.dot.kind == DotKind::f32 ? 1 : 3 * double(t.dot.group()) - 1;
}

/// Whoever is swept again and again while the other one stays.
struct DotSupply {
  double a_rate, b_rate;
};
DotSupply dot_supply(const Device& device, const DotTiling& t) {
  const double words = 4 * double(t.block_words);
  const double a_panel = words * double(t.mr), b_panel = words * double(t.nr);
  const double a_block = a_panel * double(t.mc_tiles), b_block = b_panel * double(t.nc_tiles);
  // Tiles of AMX take as much of A as of B: what stays, stays only where both fit (1024^3, bf16, kc of 256
  // beside 512: 0.80 of the time).
  if (t.dot.tiles() && a_panel + b_panel > kL1Part * double(device.l1d))
    return {dot_bytes_per_cycle(std::max(a_block, double(device.l1d)), device),
            dot_bytes_per_cycle(std::max(b_panel, double(device.l1d)), device)};
  return {dot_bytes_per_cycle(t.a_stays ? a_panel : a_block, device),
          dot_bytes_per_cycle(t.a_stays ? b_block : b_panel, device)};
}

double tiles_cycles(const DotTiling& t, const DotSupply& from, double words) {
  const double rows = double(t.mr) / 16, columns = double(t.nr) / 16;
  const double traffic = 1024 * (rows / from.a_rate + columns / from.b_rate);
  return words / 16 * std::max({rows * columns * kTilesProduct, (rows + columns) * kTilesLoad, traffic});
}

double vector_cycles(const DotTiling& t, const DotSupply& from, const Device& device, int64_t rows,
                     int64_t columns, double words) {
  const bool along = t.form == DotForm::along_k;
  const double vectors = double(t.halves * (along ? columns : ceil_div(columns, t.isa.lanes())));
  const double sums = double(rows) * vectors, width = double(t.isa.bytes());
  const double loads = double(rows) + vectors * (t.form == DotForm::in_place ? double(t.dot.group()) : 1.0);
  const double shifts = t.dot.shifts_a() && !t.pack_a ? double(rows) + (along ? vectors : 0.0) : 0.0;
  const double others = conversions(t) * (vectors + (along ? double(rows) : 0.0)) + shifts;
  const double a_bytes = double(rows) * (along ? width : 4.0);
  const double traffic = a_bytes / from.a_rate + vectors * width / from.b_rate;
  const double products = sums / products_per_cycle(t.dot, device);
  const double issued = sums * (t.dot.kind == DotKind::pairs ? 2 : 1) + loads + others;
  const double step = std::max({products + shifts / 2, kLatency, loads / kLoads,
                                issued / kIssues + kLoopIssues / double(t.unroll), traffic});
  return step * (along ? words / double(t.isa.lanes()) : words) + (along ? sums * kSumLanes : 0);
}

/// From a tile's sums to D, in instructions for a vector.
double finish_steps(const Gemm& p, const DotTiling& t) {
  const double narrow = p.d == Type::f32 || p.d == Type::i32   ? 1
                        : p.d == Type::f16 && t.isa.level >= 3 ? 2
                                                               : 9;
  return narrow + (t.by_registers ? 2 : 5) + (t.k_blocks > 1 ? 3 : 0) + (t.dot.integer() ? 1 : 0);
}

struct Extent {
  int64_t count, extent;
};
std::vector<Extent> extents(int64_t size, int64_t tile) {
  std::vector<Extent> out;
  if (size >= tile) out.push_back({size / tile, tile});
  if (size % tile) out.push_back({1, size % tile});
  return out;
}

double block_cycles(const Gemm& p, const Device& device, const DotTiling& t) {
  const DotSupply from = dot_supply(device, t);
  double cycles = 0;
  for (auto [m_count, rows] : extents(p.m, t.mr))
    for (auto [n_count, columns] : extents(p.n, t.dr)) {
      double tile = double(rows * ceil_div(columns, t.isa.lanes())) * finish_steps(p, t) / kIssues;
      for (auto [k_count, depth] : extents(p.k, t.kc)) {
        const double words = double(ceil_div(depth, t.dot.group()));
        tile += double(k_count) *
                (kCall + (t.dot.tiles() ? tiles_cycles(t, from, words)
                                        : vector_cycles(t, from, device, rows, columns, words)));
      }
      cycles += double(m_count * n_count) * tile;
    }
  return cycles;
}

/// For a word that is packed: along the source's rows, or across them; converted where it is.
double packed_word(const DotTiling& t, bool turned) {
  const double lanes = double(t.isa.lanes());
  const double converted = t.dot.raw() ? 0 : 2;
  return (turned ? 5.5 + converted : 3 * double(t.dot.group()) + converted) / lanes;
}

double packing_cycles(const Gemm& p, const Device& device, const DotTiling& t) {
  const double words = double(ceil_div(p.k, t.dot.group()));
  double cycles = 0;
  if (t.pack_a) {
    const bool turned = p.a_transposed() == t.dot.tiles();
    cycles += double(p.m) * words * double(ceil_div(t.n_tiles, t.nc_tiles)) *
              (t.dot.tiles() && !turned ? 1.5 / 16 : packed_word(t, turned));
  }
  if (t.b_panel) {
    const double all = double(p.sum_columns()) * words, block = 4 * double(t.b_words());
    cycles += all * packed_word(t, p.b_transposed());
    // The copy is written and read again (8 x 4096 x 4096: 2.4 times the time of B in place).
    cycles += 2 * 4 * all / dot_bytes_per_cycle(block, device);
  }
  if (t.b_panel && t.dot.shifts_a()) cycles += double(p.sum_columns()) * words / double(t.isa.lanes());
  return cycles;
}

} // namespace

double dot_seconds(const Gemm& p, const Device& device, const DotTiling& t) {
  constexpr double kHertz = 3e9; // nominal: only the order matters
  return double(p.batch) * (block_cycles(p, device, t) + packing_cycles(p, device, t)) / kHertz;
}

} // namespace deepgen
