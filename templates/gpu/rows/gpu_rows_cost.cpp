// What a call of gpu_rows should take. The constants without another source are fitted to 168 times of 11
// problems on an H200 (benchmarks/gpu/results/h200_rows, kernels of revision 1) by scripts/fit_gpu_rows.py,
// which has the same formulas and tells how good the estimate is. "By counting": of the instructions in the
// code, and "by hand": neither fitted nor measured.
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_limits.h"
#include "templates/gpu/rows/gpu_rows.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

// Seconds. A load under way in a kernel that saturates the memory takes about twice the 0.6 to 0.8 us of one
// alone.
constexpr double kLaunch = 3.0e-6, kLatency = 1.47e-6;
constexpr double kEfficiency = 0.86;               ///< of the peak bandwidth, at best
constexpr double kBarrier = 150;                   ///< clocks, with what warps wait for each other
constexpr double kShuffle = 25;                    ///< clocks, of dependent ones; not fitted: hardly matters
constexpr double kHidden = 1.4;                    ///< warps of a scheduler that dependent instructions cost
constexpr double kOverlap = 0.094;                 ///< of what is hidden behind the longest part
constexpr double kLayerNorm = 8.9, kRmsNorm = 5.4; ///< instructions for an element
constexpr double kSoftmax = 8, kE4m3 = 8, kI8 = 6; ///< the same, by counting: too few times
constexpr double kShared = 9.2;                    ///< instructions for a vector's way through shared memory
constexpr double kAccess = 4;       ///< instructions for an access to global memory, by counting
constexpr double kNextLoads = 0.5;  ///< of a latency for each further group of loads, by hand
constexpr double kHintGain = 0.999; ///< decides between equals, by hand
constexpr double kSet = 1e-10;      ///< seconds, the same of a set
constexpr double kL2 = 2;           ///< bandwidth of L2 / of memory, nominal
constexpr double kCached = 0.7;     ///< of L2 that rows may fill and stay

/// So that a config without `resident` goes before the same one with it: the default has to compile. Rounds
/// reach the others as neighbours.
constexpr double kUntold = 1.02;

/// Blocks that one multiprocessor holds at a time. Of `resident` it knows nothing: whether the assembler
/// spills for it, nobody can tell before. On an H200 half of the candidates with it were rejected.
int64_t resident_blocks(const Rows& p, const GpuRowsTiling& t, const Device& device) {
  constexpr int64_t kMostBlocks = 32;
  const GpuLimits limits(device.arch);
  const int64_t registers = round_up(t.registers(p), limits.granule);
  return std::max<int64_t>(
      1, std::min({device.shared_multiprocessor / std::max<int64_t>(1, t.shared_bytes() + limits.kept),
                   limits.registers / (registers * t.threads), limits.resident / t.threads, kMostBlocks}));
}

/// For one element, of all passes.
double instructions(const Rows& p, const GpuRowsTiling& t) {
  const double decode = size_of(p.x) < 4 ? 1 : 0, access = kAccess / double(t.elements);
  const double passes = t.hold == GpuRowsTiling::in_registers ? 1 : double(t.passes);
  const double shared =
      t.hold == GpuRowsTiling::in_shared ? kShared * double(t.passes) / double(t.elements) : 0;
  const double kind = p.kind == RowsKind::layer_norm ? kLayerNorm
                      : p.kind == RowsKind::rms_norm ? kRmsNorm
                                                     : kSoftmax;
  const double vectors = double(p.scale + p.bias) * (1 + decode + access);
  const double quantise = p.d == Type::e4m3 ? kE4m3 : p.d == Type::i8 ? kI8 : 1;
  return double(1 + p.residual) * passes * (decode + access) + shared + kind + vectors + quantise + access;
}

} // namespace

// A multiprocessor works on as many blocks as fit and as there are, and each takes its sets one after
// another: nothing of the next one is under way before, unless it is read ahead. So few long blocks are slow,
// however many bytes each reads at once, and few warps leave the schedulers idle.
double GpuRows::cost(const Rows& p, const Device& device, const Config& config) const {
  const GpuRowsTiling t(p, config);
  const GpuLimits limits(device.arch);
  const double clock = double(device.clock_khz) * 1e3, cores = double(device.cores);
  const double issues = limits.wave == 64 ? 2 : 4; // warps of 32 in a clock
  const double blocks = double(t.blocks) / cores;
  const double resident = std::min(double(resident_blocks(p, t, device)), std::ceil(blocks));
  const double warps = resident * double(t.threads) / 32 / issues;

  const double slots = double(t.turns * t.elements * t.threads) / 32;
  const double set_issue = slots * instructions(p, t) / issues / clock;
  const double issue = blocks * double(t.sets) * set_issue * (1 + kHidden / warps);

  const double shuffles = std::log2(double(std::min<int64_t>(32, t.lanes))) * double(t.shuffle_rounds);
  const double across =
      t.crosses_warps() ? double(t.barriers) * (kBarrier + std::log2(double(t.warps)) * kShuffle) : 0;
  const double groups =
      t.hold == GpuRowsTiling::in_registers ? 1 : double(ceil_div(t.turns, t.unroll)); // of loads
  const double load = kLatency * (1 + kNextLoads * (groups - 1));
  const double work = (shuffles * kShuffle + across) / clock + set_issue;
  const double sets = double(t.sets);
  const double block = t.ahead() ? load + sets * std::max(load, work) : sets * (load + work);
  const double chain = std::max(std::ceil(blocks) / resident, 1.0) * block;

  const double best = double(device.memory_bandwidth) * kEfficiency;
  const double again = t.hold == GpuRowsTiling::read_again ? double(t.passes - 1) * double(p.m * p.n) *
                                                                 double(size_of(p.x) * (1 + p.residual))
                                                           : 0;
  const bool in_l2 = resident * cores * p.bytes() / double(t.all_sets) < kCached * double(device.l2);
  const double memory = p.bytes() / best + again / (in_l2 ? kL2 * best : best);

  const double most = std::max({memory, issue, chain});
  const double total = kLaunch + most + kOverlap * (memory + issue + chain - most);
  return total * (t.hint ? kHintGain : 1) * (t.resident ? kUntold : 1) + kSet * double(t.sets);
}

} // namespace deepgen
