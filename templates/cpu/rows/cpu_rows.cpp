#include "templates/cpu/rows/cpu_rows.h"

#include "base/text/error.h"
#include "templates/core/cheapest.h"
#include "templates/core/rules.h"
#include "templates/core/sizes.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

enum RowsIndex { kIsa, kRows, kUnroll, kBlock, kKeep, kStream, kAhead };
constexpr std::string_view kRowsNames[] = {"isa", "rows", "unroll", "block", "keep", "stream", "ahead"};
constexpr int64_t kLeastBlock = 1024, kBlockStep = 4;

[[gnu::always_inline]] inline int64_t rows_at(const Config& config, RowsIndex i) {
  return value_at(config, size_t(i), kRowsNames[i]);
}

/// The values that constraints look at; everything is known from the parameters up to the constraint's own.
struct RowsPoint {
  const Rows& p;
  const Device& device;
  const Config& config;
  int64_t operator[](RowsIndex i) const { return rows_at(config, i); }
  VectorIsa isa() const { return {(*this)[kIsa], Type::f32}; }
  int64_t chains() const { return (*this)[kRows] * (*this)[kUnroll]; }
  int64_t vectors() const { return ceil_div(p.n, isa().lanes()); }
  /// Of X, and of a residual.
  double tile_bytes() const {
    return double((*this)[kRows]) * double(p.n) * double(size_of(p.x) * (1 + p.residual));
  }
};

const Rule<RowsIndex, RowsPoint> kRowsRules[] = {
    {kIsa, [](const RowsPoint& x) { return x[kIsa] > x.device.isa; },
     [](const RowsPoint& x) {
       return "isa=" + text(x[kIsa]) + " is above the device's x86-64 level " + text(x.device.isa);
     }},
    {kRows, [](const RowsPoint& x) { return x[kRows] > x.p.m; },
     [](const RowsPoint& x) { return "rows=" + text(x[kRows]) + " exceeds M"; }},
    {kUnroll, [](const RowsPoint& x) { return x[kUnroll] > 1 && x[kUnroll] > x.vectors(); },
     [](const RowsPoint& x) { return "unroll=" + text(x[kUnroll]) + " exceeds the vectors of a row"; }},
    // Each chain has a sum and the value in work; an exponential's constants take the rest.
    {kUnroll, [](const RowsPoint& x) { return 2 * x.chains() > x.isa().registers(); },
     [](const RowsPoint& x) {
       return "rows*unroll=" + text(x.chains()) + " sums with their values need more than the " +
              text(x.isa().registers()) + " vector registers";
     }},
    {kBlock, [](const RowsPoint& x) { return x[kBlock] > kLeastBlock && x[kBlock] / kBlockStep >= x.p.n; },
     [](const RowsPoint& x) {
       return "block=" + text(x[kBlock]) + " where a smaller one holds the row already";
     }},
    // Each chain sums groups of its terms (cpu_rows_emit.cpp), which bounds their number alone.
    {kBlock,
     [](const RowsPoint& x) { return std::min(x[kBlock], x.p.n) > 2048 * x.isa().lanes() * x[kUnroll]; },
     [](const RowsPoint& x) {
       return "more than 2048 terms in each of the " + text(x.isa().lanes() * x[kUnroll]) +
              " sums of a block";
     }},
    {kKeep,
     [](const RowsPoint& x) {
       return x[kKeep] && double(x[kRows]) * 4.0 * double(x.p.n) > double(x.device.l3) / 2;
     },
     [](const RowsPoint& x) {
       return "scratch of " + text(4 * x[kRows] * x.p.n) + " bytes exceeds half of the last-level cache";
     }},
    {kAhead, [](const RowsPoint& x) { return x[kAhead] && x[kRows] >= x.p.m; },
     [](const RowsPoint&) { return std::string("ahead=1 where all rows are one tile"); }},
    {kAhead, [](const RowsPoint& x) { return x[kAhead] && 2 * x.tile_bytes() > double(x.device.l2); },
     [](const RowsPoint& x) {
       return "ahead=1 with " + text(int64_t(x.tile_bytes())) +
              " bytes of the next rows, more than half of L2";
     }},
};

// The estimate's constants, in cycles where no unit is named: nominal values of current x86 cores (Intel's
// and AMD's optimization manuals), or set by hand, but for kApart. None is fitted by a program: only the
// order of configs matters. The counts of vector_steps() are of the emitted code.
constexpr double kL1Bytes = 64, kL2Bytes = 32, kL3Bytes = 10, kMemoryBytes = 4; ///< a cycle, from there
constexpr double kL1Part = 0.8, kCachePart = 0.75; ///< of the cache that what is swept may fill
constexpr double kStepsPerCycle = 2.5;
constexpr double kReduction = 60; ///< of a row's sums, one after the other
constexpr double kSumLatency = 4,
                 kSumsOfRow = 3;     ///< of an addition; additions to a vector's sums, in all sweeps
constexpr int64_t kMostInFlight = 8; ///< sums
constexpr double kLoopSteps = 2;     ///< of the loops' own, for an unrolled step
constexpr double kNotHidden = 0.3;   ///< of the shorter one of instructions and caches
/// Of the first reading of a row, without ahead: measured on a Xeon, for layer_norm of bf16, 4096 x 1024, by
/// four rows; by one row it was 1.1.
constexpr double kNotAhead = 0.4;
constexpr double kReadFirst = 1.0 / 4,
                 kPastCaches = 1.0 / 2; ///< for a byte of D that a store reads, or takes away
/// Rows half a page apart, or further, that come from the last-level cache: measured on an EPYC, for
/// layer_norm of 4096 x 1024; no such loss in the level before it, nor from memory.
constexpr double kApart = 1.6, kHalfPage = 2048;

/// Bytes a cycle from the cache that holds `bytes`.
double rows_bytes_per_cycle(double bytes, const Device& device) {
  return bytes <= kL1Part * double(device.l1d)     ? kL1Bytes
         : bytes <= kCachePart * double(device.l2) ? kL2Bytes
         : bytes <= kCachePart * double(device.l3) ? kL3Bytes
                                                   : kMemoryBytes;
}

/// Instructions on vectors for one vector of a row, all sweeps together: nominal counts of the emitted code.
double vector_steps(const Rows& p, const RowsTiling& t) {
  const double emulated = t.isa.level >= 3 || p.x != Type::f16 ? 1 : 8;
  const double widening = p.x == Type::f32 ? 0 : t.paired ? 1 : 2 * emulated;
  const double load = 1 + widening + (p.residual ? 2 + widening : 0);
  const double exponential = t.isa.has_fma() ? 14 : 22;
  const bool softmax = p.kind == RowsKind::softmax, log_softmax = p.kind == RowsKind::log_softmax;
  const bool once = t.blocks == 1 && t.keep;
  const double again = t.keep ? 1 : load; // a further reading
  const double first = double(t.sampled(t.block)) / double(t.block);
  double steps = first * load + (t.keep ? 1 : 0);
  if (softmax) steps += 1 + again + exponential + 1 + (once ? 2 : again + exponential) + 1;
  if (log_softmax) steps += 1 + again + exponential + 1 + again + 2;
  if (p.kind == RowsKind::layer_norm) steps += first + again + 3 + again + 2;
  if (p.kind == RowsKind::rms_norm) steps += 1 + again + 1;
  if (p.scale) steps += 2 + widening;
  if (p.bias) steps += 2 + widening;
  if (p.quantised()) steps += (t.keep ? 2 : again + 3) + 14;
  const double stores = t.paired            ? 5.5
                        : p.d == Type::bf16 ? 9
                        : p.d == Type::f16  ? (t.isa.level >= 3 ? 2 : 16)
                                            : 1;
  return steps + stores + (p.output_residual ? 2 : 0);
}

double row_cycles(const Rows& p, const Device& device, const RowsTiling& t) {
  const double vectors = std::ceil(double(p.n) / double(t.isa.lanes()));
  const double in_flight = double(std::min(t.rows * t.unroll, kMostInFlight));
  const double latency = kSumLatency * vectors * kSumsOfRow / in_flight;
  const double work = std::max(vectors * vector_steps(p, t) / kStepsPerCycle, latency) +
                      vectors * kLoopSteps / double(t.unroll);
  const double reductions = kReduction * double(t.blocks) * (p.normalises() ? 1 : 2) / double(t.rows);
  // Sweeps after the first read a block, or the row, from the cache that holds it.
  const double row_bytes = double(p.n) * double(t.keep ? 4 : size_of(p.x) * (1 + p.residual));
  const double again =
      row_bytes / rows_bytes_per_cycle(row_bytes * double(t.rows), device) +
      row_bytes / rows_bytes_per_cycle(row_bytes / double(t.blocks) * double(t.rows), device);
  // What does not fit is written through the caches: read first, unless the store goes past them.
  const double d_bytes = double(p.n) * double(size_of(p.d));
  const double all = double(p.m) * (d_bytes + double(p.n) * double(size_of(p.x)));
  const bool large = all > double(device.l3) / 2;
  const double x_bytes = double(p.n) * double(size_of(p.x) * (1 + p.residual));
  const double waits = t.ahead ? 0 : kNotAhead * x_bytes / rows_bytes_per_cycle(all, device);
  const double memory = large && !t.stream   ? d_bytes * kReadFirst
                        : !large && t.stream ? d_bytes * kPastCaches
                                             : 0;
  const bool apart =
      t.rows > 1 && row_bytes >= kHalfPage && all > double(device.l2) && all < 2 * double(device.l3);
  const double cycles =
      std::max(work, again) + kNotHidden * std::min(work, again) + reductions + memory + waits;
  return cycles * (apart ? kApart : 1);
}

} // namespace

RowsTiling::RowsTiling(const Rows& p, const Config& c)
    : isa{rows_at(c, kIsa), Type::f32}, rows(rows_at(c, kRows)), unroll(rows_at(c, kUnroll)),
      block(std::min(rows_at(c, kBlock), p.n)), keep(rows_at(c, kKeep)), stream(rows_at(c, kStream)),
      ahead(rows_at(c, kAhead)),
      // All that is loaded and stored has one order then.
      paired(p.x == Type::bf16 && p.d == Type::bf16 && unroll % 2 == 0), tiles(ceil_div(p.m, rows)),
      rest(p.m - (tiles - 1) * rows), blocks(ceil_div(p.n, block)), last(p.n - (blocks - 1) * block),
      // A line more, so that rows of a power of two do not share cache sets.
      scratch_columns(keep ? round_up(p.n, 16) + 16 : 0), samples(p.kind == RowsKind::layer_norm && !keep) {}

int64_t RowsTiling::sampled(int64_t columns) const {
  const int64_t step = unroll * isa.lanes(), steps = columns / step;
  return samples && steps >= 2 * sample_each ? ceil_div(steps, sample_each) * step : columns;
}

std::string CpuRows::why_not(const Rows&, const std::string& arch) const {
  return arch == "cpu" ? "" : "cpu_rows generates x86-64 code, not " + arch;
}

std::vector<Parameter> CpuRows::parameters(const Rows& p, const Device& device) const {
  std::vector<int64_t> levels = device.isa >= 4   ? std::vector<int64_t>{4, 3}
                                : device.isa >= 3 ? std::vector<int64_t>{3}
                                                  : std::vector<int64_t>{1};
  return {{"isa", levels, "x86-64 level of the code: 4 AVX-512, 3 AVX2 and FMA, 1 SSE2"},
          {"rows", {1, 2, 4}, "rows that go side by side", {1, std::min<int64_t>(8, p.m)}},
          {"unroll", {1, 2, 4, 8}, "vectors of each row a step", {1, 16}},
          {"block",
           {1024, 4096, 16384},
           "columns whose maximum, or mean, is found before their sums",
           {1024, 65536, 1024}},
          {"keep", {0, 1}, "0: each sweep reads X again; 1: rows stay in scratch as f32"},
          {"stream", {0, 1}, "1: D goes past the caches where it is aligned"},
          {"ahead", {0, 1}, "1: the next rows are asked for while D is written"}};
}

std::string CpuRows::why_illegal(const Rows& p, const Device& device, const Config& config) const {
  const RowsPoint point{p, device, config};
  return first_broken(kRowsRules, point);
}

bool CpuRows::dead_end(const Rows& p, const Device& device, const Config& config, size_t assigned) const {
  const RowsPoint point{p, device, config};
  return breaks_newly(kRowsRules, point, assigned);
}

double CpuRows::cost(const Rows& p, const Device& device, const Config& config) const {
  constexpr double kHertz = 3e9; // nominal: only the order matters
  return double(p.m) * row_cycles(p, device, RowsTiling(p, config)) / kHertz;
}

std::vector<Choice> CpuRows::fallbacks(const Rows& p, const std::string&, const Config& config) const {
  std::vector<Choice> out;
  for (int64_t level : {3, 1}) {
    if (rows_at(config, kIsa) <= level) continue;
    const std::optional<Config> best = cheapest(*this, p, modest_cpu(level));
    if (!best)
      throw Error("no config is legal for x86-64 level " + std::to_string(level), p.key(),
                  "so the library would not run there", "a defect of cpu_rows' rules");
    out.push_back({name(), *best});
  }
  return out;
}

Rows CpuRows::awkward(const Rows& p, const Config& config) const {
  const RowsTiling t(p, config);
  Rows small = p;
  small.m = t.rows + 1;
  // A whole step, or enough for a sample; a loose vector and a ragged one; behind a whole block where the row
  // has several.
  const int64_t steps = t.samples ? 2 * t.sample_each + 1 : 1;
  const int64_t ragged = (steps * t.unroll + 1) * t.isa.lanes() + t.isa.lanes() / 2 + 1;
  small.n = t.blocks > 1 ? t.block + ragged : std::min(ragged, rows_at(config, kBlock));
  return small;
}

} // namespace deepgen
