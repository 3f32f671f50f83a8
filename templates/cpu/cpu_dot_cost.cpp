#include "templates/cpu/cpu_dot_cost.h"

#include "base/kernel/cpu_isa.h"
#include "templates/core/sizes.h"
#include "templates/cpu/cpu_stream.h"

#include <algorithm>

namespace deepgen {
namespace {

// In cycles where no unit is named: nominal values of current x86 cores (Intel's and AMD's optimization
// manuals). None is fitted by a program: only the order of configs matters.
constexpr double kL1Bytes = 128, kL2Bytes = 48, kL3Bytes = 10; ///< a cycle, from that cache
/// From L2 where A and B both come again at each step (128 x 1024 x 4096, bf16, 6 x 4 tiles along K on a
/// quiet Zen 5: 234 GFLOP/s, 640 bytes in 27 cycles). Few rows do not show it: with it 8 x 4096 x 4096 came
/// to 8 x 3 tiles, which take 1.3 times the time of 4 x 4 (deepgen-measure compare, 57 rounds, not kept).
constexpr double kL2BothBytes = 24;
constexpr double kL1Part = 0.8, kL2Part = 0.75; ///< of the cache that what is swept may fill
constexpr double kLoads = 2, kIssues = 4;       ///< a cycle
constexpr double kLatency = 5;
constexpr double kLoopIssues = 3, kCall = 60;
// Of AMX, measured on cores of Intel's fourth generation of scalable processors: a product; a tile's load
// from each cache; from L2 where all tiles come from there; and where a tile's rows lie a multiple of 1 KiB
// apart, of which L1 holds few, of A and of B, also where the same rows come again at once. Those of A apart,
// of both from L2 and of panels asked for are set by whole kernels (results/xeon-amx-variants.csv).
constexpr double kTileProduct = 16.5, kTileL1 = 10, kTileL2 = 24, kTileL3 = 100, kTileL2Both = 34;
constexpr double kTileApartA = 60, kTileApartAStays = 52, kTileApartB = 36, kTileApartBStays = 34;
constexpr double kTileAsked = 0.35; ///< of what a panel from beyond L2 costs, where it is asked for ahead
/// Of L2 that what is swept may fill beside D and what passes (1024^3, i8: a block of 1 MiB took 1.6 times).
constexpr double kTilesL2Part = 0.45;
/// The same column by column, where all of a block of A is swept (1024^3, i8: 512 KiB took 1.23 times).
constexpr double kTilesColumnPart = 0.25;
constexpr double kTilesStore = 150; ///< until up to four tiles of sums are in scratch
/// From one block of K to the next, where sums are in each cache; and the part of L1 that they may fill.
constexpr double kTileSums = 100, kTileSumsL2 = 200, kTileSumsL3 = 250, kTilesSumsL1Part = 0.6;
/// Of panels of A that were packed once, and follow each other in memory: from L2, where those of B come from
/// there, too; and what L3 takes more. A line of B, whose rows of a page and more are copied a thousand at a
/// time, costs kTileCopyPage more. All five are set by 180 configs of nine problems
/// (results/xeon-amx-fit.csv).
constexpr double kTileL2Panels = 30, kTilePanelsL3 = 30, kTileCopyPage = 64;
constexpr int64_t kManyRows = 1024;
/// For a row of a tile, where a column of tiles goes through more pages of D than are near (300 x 4000 x 700,
/// i8: 128 rows at a time 839 us, 256 975, 300 by rows 818).
constexpr double kTilePage = 10;
constexpr int64_t kNearPages = 128;
constexpr double kTileTurn = 80;
constexpr double kTileCopy = 6,
                 kTileCopyFar = 12; ///< a row of 64 bytes into a panel, from L1 and from beyond
/// Of one row of bytes, beside vpdpbusd, where memory decides (1 x 4096 x 4096, i8, packed ahead: 5 %
/// slower; the samples were not kept).
constexpr double kTilesOneRow = 1.06;
constexpr double kSumLanes = 7;
/// To add 128 to a word of A in place. On a Zen 4 it hides behind products, on Intel's cores it has half a
/// cycle of their units (4096 x 32 x 256, i8, 14 x 2 tiles on the former: 160 us, and 176 with A packed).
constexpr double kShift = 0.25;
/// For a word of A in place whose rows lie a multiple of a page apart, of more rows than a set of L1 has ways
/// (128 x 1024 x 4096, bf16, 13 x 2 tiles on a Zen 5: 4.20 ms, and 3.52 with A packed; not kept).
constexpr double kSetConflict = 0.3;
constexpr int64_t kNearRows = 8, kPage = 4096;
/// Lines of one set of L1 that streams may take, and what more of them cost: rows of A and B along K in
/// place, a multiple of a page apart (8 x 4096 x 4096, bf16 on a Zen 5: 8 x 3 of them 1.9 times the time of 4
/// x 6; with A packed 1.1 times; i8: 8 x 3 twice the time of A packed; deepgen-measure compare, not kept).
constexpr int64_t kSetLines = 10;
constexpr double kSetLinesConflict = 1.9;
/// Bytes for which a cycle more passes where rows along K come from L3 unasked: 1 and 8 x 4096 x 4096, i8 and
/// bf16 on a Zen 4, 0.63 to 0.9 of the time where each tile asks for the next one's
/// (results/epyc-next-tile-dot.csv).
constexpr double kUnaskedL3Bytes = 100;
/// Of several rows that share a B in place from L3, beside one row (8 x 4096 x 4096 and 1 x 4096 x 4096,
/// measured: 1.8 with bytes, 2.4 with bf16).
constexpr double kSharedStream = 1.6;

/// Of what is swept and does not fit into L2, as much as fits still comes from there.
double dot_bytes_per_cycle(double bytes, const Device& device) {
  if (bytes <= kL1Part * double(device.l1d)) return kL1Bytes;
  const double l2 = kL2Part * double(device.l2);
  if (bytes <= l2) return kL2Bytes;
  return bytes / (l2 / kL2Bytes + (bytes - l2) / kL3Bytes);
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
  if (t.dot.splits()) return t.dot.kind == DotKind::f32 ? 2 : 3;
  if (t.dot.mixed()) return t.quads ? 8 : t.dot.b == Type::i8 ? 11 : 2;
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
  const DotSupply from{dot_bytes_per_cycle(t.a_stays ? a_panel : a_block, device),
                       dot_bytes_per_cycle(t.a_stays ? b_block : b_panel, device)};
  const bool near = a_panel + b_panel <= kL1Part * double(device.l1d); // else both come again at each step
  const bool far = std::min(from.a_rate, from.b_rate) < kL2Bytes;
  const bool few = t.m_tiles * t.mr <= kFewPackedRows;
  return t.along() && !few && !near && !far ? DotSupply{kL2BothBytes, kL2BothBytes} : from;
}

/// Cycles for a tile of A, and of B, in a step of K.
struct TileLoads {
  double a, b;
};
TileLoads tile_loads(const Gemm& p, const Device& device, const DotTiling& t) {
  const double words = 4 * double(t.block_words);
  const double a_panel = words * double(t.mr), b_panel = words * double(t.nr);
  const double a_block = a_panel * double(t.mc_tiles), b_block = b_panel * double(t.nc_tiles);
  const double l2 = (t.by_columns ? kTilesColumnPart : kTilesL2Part) * double(device.l2);
  const double sums = t.k_blocks > 1 ? 4 * double(t.sums_words()) : 0; // they share L2 with the rest
  const auto missing = [&](double bytes) { return bytes + sums > l2 ? 1 - l2 / (bytes + sums) : 0.0; };
  const bool a_apart = t.a_in_place() && p.a_columns() * size_of(p.a) % 1024 == 0;
  const bool b_apart = t.b_in_place() && p.b_columns() * size_of(p.b) % 1024 == 0;
  // As much is taken of A as of B: what stays, stays in L1 only where both fit.
  const bool near = a_panel + b_panel <= kL1Part * double(device.l1d);
  const auto load = [&](bool stays) {
    return !near ? t.a_once() ? kTileL2Panels : kTileL2Both : stays ? kTileL1 : kTileL2;
  };
  TileLoads x{a_apart ? t.a_stays ? kTileApartAStays : kTileApartA : load(t.a_stays),
              b_apart ? t.a_stays ? kTileApartB : kTileApartBStays : load(!t.a_stays)};
  // Rows that are taken piece by piece: no prefetcher follows (128 x 1024 x 4096, B in place, kc of 512: 2.0
  // times the time of one block).
  const double pieces = t.k_blocks > 1 ? 2 : 1;
  const double a_far = (kTileL3 - x.a) * (t.a_in_place() ? pieces : 1),
               b_far = (kTileL3 - x.b) * (t.b_in_place() ? pieces : 1);
  // What is swept, and what comes for the first time.
  if (t.a_stays)
    x.b += b_far * missing(b_block + a_panel);
  else
    x.a += a_far * missing(a_block * double(t.by_columns ? t.k_blocks : 1) + b_panel);
  const double a_all = double(p.m) * double(p.k * size_of(p.a)),
               b_all = t.b_in_place() ? double(p.sum_columns()) * double(p.k * size_of(p.b))
                                      : b_block * double(t.k_blocks);
  if (t.a_in_place()) x.a += a_far * missing(a_all) / double(t.nc_tiles);
  // What is packed once comes again for each block of N. It is swept: once it does not fit, little of it
  // stays.
  if (t.a_once() && !t.by_columns) {
    const double gone = std::min(1.0, 2 * missing(a_block * double(t.k_blocks) + b_block));
    x.a += (std::max(kTileL2 - x.a, 0.0) + gone * kTilePanelsL3) / double(t.nc_tiles);
  }
  const double asked = t.asks_for_panel() ? kTileAsked : 1;
  if (!t.packed_b || p.m > kFewPackedRows) // else with_stream() counts it
    x.b += asked * b_far * missing(b_all + (t.a_in_place() ? a_block : 0)) / double(t.mc_tiles);
  return x;
}

/// One tile of D over all of K, up to sums in scratch.
double tiles_cycles(const Gemm& p, const Device& device, const DotTiling& t, const TileLoads& from,
                    int64_t rows, int64_t columns) {
  const auto m = double(ceil_div(rows, 16)), n = double(t.halves * ceil_div(columns, 16));
  const double step = std::max(m * n * kTileProduct, m * from.a + n * from.b);
  const double all_sums = 4 * double(t.sums_words());
  const double sums = all_sums <= kTilesSumsL1Part * double(device.l1d) ? kTileSums
                      : all_sums <= kL2Part * double(device.l2)         ? kTileSumsL2
                                                                        : kTileSumsL3;
  const bool pages = t.sweeps_rows() && t.mc_tiles * t.mr > kNearPages && p.n * size_of(p.d) >= kPage;
  return double(ceil_div(p.k, t.chunk)) * step + double(t.k_blocks) * kCall + kTilesStore +
         (pages ? kTilePage * double(rows) : 0) +
         m * n * (double(t.k_blocks - 1) * sums + (t.turned ? kTileTurn : 0));
}

double vector_cycles(const DotTiling& t, const DotSupply& from, const Device& device, int64_t rows,
                     int64_t columns, double words) {
  const bool along = t.along();
  const double vectors = double(t.halves * (along ? columns : ceil_div(columns, t.isa.lanes())));
  const double sums = double(rows) * vectors, width = double(t.isa.bytes());
  const double group = double(t.dot.group());
  const double loads = double(rows) * (t.dot.mixed() && !t.quads ? group : 1) + (t.asks ? vectors : 0) +
                       vectors * (t.form == DotForm::in_place || t.quads ? group : 1.0);
  const double shifted = t.pack_a || !t.dot.shifts_a() ? 0 : double(rows); // packed words have their 128
  const double counted = t.dot.shifts_a() && along ? vectors : 0;          // products, of what 128 more add
  const double shifts = shifted + counted;
  const double others = conversions(t) * (vectors + (along ? double(rows) : 0.0)) + shifts;
  const double a_bytes = double(rows) * (along ? width : 4.0);
  const double stream = along && rows > 1 && from.b_rate < kL2Bytes ? kSharedStream : 1;
  const double traffic = a_bytes / from.a_rate + stream * vectors * width / from.b_rate;
  const double parts = t.dot.mixed() ? double(t.dot.group()) : t.dot.splits() ? 2 : 1;
  const double products = parts * sums / products_per_cycle(t.dot, device);
  const double issued = parts * sums * (t.dot.kind == DotKind::pairs ? 2 : 1) + loads + others;
  const double step = std::max({products + (along ? 0.5 : kShift) * shifted + counted / 2, kLatency,
                                loads / kLoads, issued / kIssues + kLoopIssues / double(t.unroll), traffic});
  return step * (along ? words / double(t.isa.lanes()) : words) + (along ? sums * kSumLanes : 0);
}

/// From a tile's sums to D, in instructions for a vector.
double finish_steps(const Gemm& p, const DotTiling& t) {
  const double narrow = p.d == Type::f32 || p.d == Type::i32   ? 1
                        : p.d == Type::f16 && t.isa.level >= 3 ? 2
                        : p.d == Type::bf16                    ? t.dot.rounds_bf16() ? 1 : 8
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

double vector_block_cycles(const Gemm& p, const Device& device, const DotTiling& t, int64_t rows,
                           int64_t columns) {
  const DotSupply from = dot_supply(device, t);
  const bool conflict =
      t.along() && !t.pack_a && p.k * size_of(p.a) % kPage == 0 && rows + t.halves * columns > kSetLines;
  double cycles = 0;
  for (auto [k_count, depth] : extents(p.k, t.kc))
    cycles += double(k_count) * (conflict ? kSetLinesConflict : 1) *
              (kCall + vector_cycles(t, from, device, rows, columns, double(ceil_div(depth, t.dot.group()))));
  return cycles;
}

double block_cycles(const Gemm& p, const Device& device, const DotTiling& t) {
  const TileLoads loads = t.dot.tiles() ? tile_loads(p, device, t) : TileLoads{};
  double cycles = 0;
  for (auto [m_count, rows] : extents(p.m, t.mr))
    for (auto [n_count, columns] : extents(p.n, t.dr)) {
      const double sums = t.dot.tiles() ? tiles_cycles(p, device, t, loads, rows, columns)
                                        : vector_block_cycles(p, device, t, rows, columns);
      cycles += double(m_count * n_count) *
                (sums + double(rows * ceil_div(columns, t.isa.lanes())) * finish_steps(p, t) / kIssues);
    }
  return cycles;
}

/// For a word that is packed: along the source's rows, or across them; converted where it is.
double packed_word(const DotTiling& t, bool turned) {
  const double lanes = double(t.isa.lanes());
  const double converted = t.dot.raw() ? 0 : 2;
  const double across = t.dot.raw() && !t.dot.mixed() ? 1.25 : 3; // instructions for a row of the group
  return (turned ? 5.5 + converted : across * double(t.dot.group()) + converted) / lanes;
}

double packing_cycles(const Gemm& p, const Device& device, const DotTiling& t) {
  const double words = double(ceil_div(p.k, t.dot.group()));
  double cycles = 0;
  if (t.pack_a) {
    const bool near = double(p.m) * double(p.k * size_of(p.a)) <= double(device.l1d);
    const double copied_row = near ? kTileCopy : kTileCopyFar;
    const bool turned = t.a_by_rows() ? p.a_transposed() : !p.a_transposed();
    const double times = t.a_once() ? 1 : double(ceil_div(t.n_tiles, t.nc_tiles));
    cycles += double(p.m) * words * times *
              (t.a_by_rows() && !turned ? copied_row / double(t.isa.lanes()) : packed_word(t, turned));
    // The copy is written and read again.
    if (!t.dot.tiles())
      cycles += 2 * 4 * double(p.m) * words * times / dot_bytes_per_cycle(4 * double(t.a_words()), device);
  }
  if (!t.pack_a && !t.dot.tiles() && rows_conflict(p, t.mr))
    cycles += kStreamConflict * double(p.m) * words * double(t.n_tiles);
  if (!t.pack_a && !t.dot.tiles() && !p.a_transposed() && t.mr > kNearRows && t.m_tiles > 1 &&
      p.k * size_of(p.a) % kPage == 0)
    cycles += kSetConflict * double(p.m) * words * double(t.n_tiles);
  const bool packs_b = t.form == DotForm::panel && !t.packed_b;
  if (packs_b) {
    const double all = double(p.sum_columns()) * words, block = 4 * double(t.b_words());
    cycles += all * packed_word(t, p.b_transposed());
    if (t.dot.tiles() && !p.b_transposed() && t.kc >= kManyRows && p.b_columns() * size_of(p.b) >= kPage)
      cycles += kTileCopyPage * all / double(t.isa.lanes());
    // The copy is written and read again (8 x 4096 x 4096: 2.4 times the time of B in place).
    cycles += 2 * 4 * all / dot_bytes_per_cycle(block, device);
  }
  if (packs_b && t.dot.shifts_a()) cycles += double(p.sum_columns()) * words / double(t.isa.lanes());
  return cycles;
}

/// How often a B along K comes from beyond L2, whether it is copied or multiplied in place.
double sweeps_of_b(const DotTiling& t) {
  return t.form == DotForm::panel ? 1 : double(ceil_div(t.m_tiles, t.mc_tiles));
}

/// What rows along K cost from L3 that nobody asks for ahead.
double unasked_cycles(const Gemm& p, const Device& device, const DotTiling& t) {
  const double bytes = bytes_of_b(p);
  const bool from_l3 = bytes > double(device.l2) && bytes <= double(device.l3);
  return t.along() && !t.asks && from_l3 ? sweeps_of_b(t) * bytes / kUnaskedL3Bytes : 0;
}

} // namespace

double dot_seconds(const Gemm& p, const Device& device, const DotTiling& t) {
  constexpr double kHertz = 3e9; // nominal: only the order matters
  const double one_row = t.dot.tiles() && t.dot.integer() && p.m == 1 ? kTilesOneRow : 1;
  const MemoryStream stream = stream_along_k(p, device, sweeps_of_b(t), t.k_blocks, t.asks ? t.nr : 0);
  const double cycles = with_memory(stream, block_cycles(p, device, t) + packing_cycles(p, device, t) +
                                                unasked_cycles(p, device, t));
  return one_row * double(p.batch) * with_stream(p, device, t.shares > 0, cycles) / kHertz;
}

} // namespace deepgen
