// What a call of mma_attention should take. Rates are nominal or those of mma_sync; the other constants are
// set by hand, none is fitted: the search needs the order of configs only.
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_limits.h"
#include "templates/nvidia/attention/mma_attention.h"
#include "templates/nvidia/mma_sync/mma_rate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepgen {
namespace {

constexpr double kSharedBytes = 128; ///< a clock and multiprocessor (CUDA C++ Programming Guide)
constexpr double kLanes = 128;       ///< of all schedulers, that issue at a clock
constexpr double kExponentials = 16; ///< a clock and multiprocessor (the same guide)
constexpr double kScore = 6;         ///< instructions for a score: maximum, power, sum, conversion
constexpr double kCapped = 6;        ///< more of them, and a second exponential, with a softcap
constexpr double kBias = 3;          ///< instructions more with a bias: its address, load, conversion
constexpr double kLatency = 900;     ///< clocks from global to shared memory under load
constexpr double kFewWarps = 0.8;    ///< of the rates, with less than two warps of a scheduler
constexpr int64_t kSurelyFit = 224; ///< counted registers; of those with 228, ptxas 13.0 spilled five of nine
constexpr double kMaySpill = 1.2; ///< so that a default is none of these; ours: more than any gained by them
constexpr double kMeet = 80;      ///< clocks of a block's barrier
constexpr double kStart = 2500;   ///< clocks for Q, the first keys, and results
constexpr double kNotHidden = 0.35; ///< of what is not the longest part
constexpr double kByElements = 12;  ///< clocks for 32 pieces that are copied element by element
constexpr double kMemory = 0.9;     ///< of the bandwidth
constexpr double kLaunch = 3e-6;    ///< seconds
constexpr double kCombine = 2e-6;   ///< more of them, for the launch that adds up parts of rows
constexpr double kLeastHertz = 1e9; ///< of a device that does not tell

struct Estimate {
  const Attention& p;
  const Device& d;
  const MmaAttentionTiling& t;

  /// Blocks that a multiprocessor holds at a time.
  double resident() const {
    const GpuLimits limits(d.arch);
    const int64_t registers =
        std::min(limits.most_registers, round_up(t.registers, limits.granule)) * t.threads;
    return double(
        std::max<int64_t>(1, std::min({d.shared_multiprocessor / (t.shared + limits.kept),
                                       limits.registers / registers, limits.resident / t.threads})));
  }

  /// Clocks of `n` blocks together on one multiprocessor for a block of keys each.
  double key_block(double n) const {
    const auto rows = double(t.rows), keys = double(t.keys), depth = double(t.depth + t.columns);
    const double tensor = 2 * rows * keys * depth / mma_rate16(d.compute_capability());
    const double reads = 2 * keys * depth * double(t.warps + 1) + (t.hold ? 0 : 2 * rows * double(t.depth));
    double shared = reads / kSharedBytes;
    if (t.align < 16) shared += 2 * keys * depth / 16 / 32 * kByElements;
    const double scores = rows * keys, capped = p.softcap ? 1 : 0, biased = p.bias ? 1 : 0;
    const double issue =
        (scores * (kScore + capped * kCapped + biased * kBias) + rows * double(t.columns)) / kLanes +
        2 * rows * keys * depth / 4096;
    const double power = scores * (1 + 2 * capped) / kExponentials;
    // Each quarter of a multiprocessor has its own tensor cores, and works on warps of its own.
    const double warps = n * double(t.warps);
    const double busy = std::min(1.0, warps / 4) * (warps < 8 ? kFewWarps : 1);
    const double units[] = {tensor / busy, issue / busy, power / busy, shared};
    const double most = std::ranges::max(units);
    const double all = most + kNotHidden * (std::accumulate(std::begin(units), std::end(units), 0.0) - most);
    const double waits =
        t.stages == 1 ? 2 * kMeet + kLatency / 4 : kMeet + kLatency / 8 / double(t.stages - 1);
    return n * all + waits;
  }

  double seconds() const {
    const double hertz = std::max(kLeastHertz, double(d.clock_khz) * 1e3), cores = double(d.cores);
    const double blocks = double(t.tuned_blocks(p)) * double(t.splits);
    const double each = std::ceil(blocks / cores), together = std::min(resident(), each);
    const double block = kStart + t.tuned_key_blocks(p) * key_block(together);
    const double clocks = block * std::max(1.0, each / together);
    const double bytes = p.bytes() + t.part_bytes(p);
    const double memory = bytes / (kMemory * double(d.memory_bandwidth)),
                 combine = t.splits > 1 ? kCombine : 0;
    const double risk = t.registers > kSurelyFit ? kMaySpill : 1;
    return (kLaunch + combine + std::max(clocks / hertz, memory) +
            kNotHidden * std::min(clocks / hertz, memory)) *
           risk;
  }
};

} // namespace

double MmaAttention::cost(const Attention& p, const Device& device, const Config& config) const {
  const MmaAttentionTiling t(p, config);
  return Estimate{p, device, t}.seconds();
}

} // namespace deepgen
