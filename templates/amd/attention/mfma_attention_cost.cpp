// What a call of mfma_attention should take. Nobody has timed these kernels: nothing is fitted. Rates are
// those of AMD's documents; the other constants are set by hand. The search needs the order of configs only.
#include "base/kernel/amd.h"
#include "templates/amd/attention/mfma_attention.h"
#include "templates/core/sizes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepgen {
namespace {

constexpr double kLdsBytes = 128;   ///< a clock and compute unit (AMD's white paper of CDNA 3)
constexpr double kLanes = 64;       ///< of all SIMDs, that issue at a clock
constexpr double kScore = 6;        ///< instructions for a score: maximum, product, sum, conversion
constexpr double kExponential = 4;  ///< issues that one takes (LLVM's scheduling model)
constexpr double kCapped = 6;       ///< instructions more, and two such, with a softcap
constexpr double kFill = 3;         ///< instructions for a register on its way to LDS
constexpr double kBias = 3;         ///< instructions more with a bias: its address, load, conversion
constexpr double kLatency = 1600;   ///< clocks until a load is there: 0.8 us, nominal as for GEMM
constexpr double kFewWaves = 0.8;   ///< of the rates, with less than two waves of a SIMD
constexpr double kBarrier = 60;     ///< clocks
constexpr double kStart = 2500;     ///< clocks for Q, the first keys, and results
constexpr double kNotHidden = 0.35; ///< of what is not the longest part
constexpr double kMemory = 0.85;    ///< of the bandwidth, nominal
constexpr double kLaunch = 3e-6;    ///< seconds, nominal
constexpr double kCombine = 4e-6;   ///< seconds of the launch that adds up parts of a row, nominal
constexpr double kLeastHertz = 1e9; ///< of a device that does not tell
constexpr double kSpills = 1.2;     ///< of a config whose count comes near to all registers, so that a
                                    ///< default is none
constexpr int64_t kSurelyFit = 216; ///< counted registers

struct Estimate {
  const Attention& p;
  const Device& d;
  const MfmaAttentionTiling& t;
  const AmdArch& arch = *find_amd(d.arch);

  /// Blocks that a compute unit holds at a time.
  double resident() const {
    const int64_t waves = arch.waves(t.registers, t.shared, t.threads) * AmdArch::simds;
    return double(std::max<int64_t>(1, waves / t.waves));
  }

  /// Clocks of `n` blocks together on one compute unit for a block of keys each.
  double key_block(double n) const {
    const auto rows = double(t.rows), keys = double(t.keys), depth = double(t.depth + t.columns);
    const double products = 2 * rows * keys * depth / t.shape.rate;
    const double shared = 2 * keys * depth * double(t.waves + 1) / kLdsBytes;
    const double scores = rows * keys, capped = p.softcap ? 1 : 0, biased = p.bias ? 1 : 0;
    const double issue =
        (scores * (kScore + kExponential + capped * (kCapped + 2 * kExponential) + biased * kBias) +
         rows * double(t.columns) + keys * depth / 2 * kFill) /
        kLanes;
    const double waves = n * double(t.waves), simds = double(AmdArch::simds);
    const double busy = std::min(1.0, waves / simds) * (waves < 2 * simds ? kFewWaves : 1);
    const double units[] = {products / busy, issue / busy, shared};
    const double most = std::ranges::max(units);
    const double all = most + kNotHidden * (std::accumulate(std::begin(units), std::end(units), 0.0) - most);
    // Other blocks, and the rest of this one, hide a load's time.
    const double waits = t.stages == 1 ? 2 * kBarrier : kBarrier;
    return std::max(n * all + waits, kLatency);
  }

  double seconds() const {
    const double hertz = std::max(kLeastHertz, double(d.clock_khz) * 1e3), cores = double(d.cores);
    const double blocks = double(t.tuned_blocks(p)) * double(t.splits);
    const double each = std::ceil(blocks / cores), together = std::min(resident(), each);
    const double block = kStart + t.tuned_key_blocks(p) * key_block(together);
    const double compute = block * std::max(1.0, each / together) / hertz;
    const double bytes = p.bytes() + t.part_bytes(p);
    const double memory = bytes / (kMemory * double(d.memory_bandwidth)),
                 combine = t.splits > 1 ? kCombine : 0;
    const double risk = t.registers > kSurelyFit ? kSpills : 1;
    return (kLaunch + combine + std::max(compute, memory) + kNotHidden * std::min(compute, memory)) * risk;
  }
};

} // namespace

double MfmaAttention::cost(const Attention& p, const Device& device, const Config& config) const {
  const MfmaAttentionTiling t(p, device.arch, config);
  return Estimate{p, device, t}.seconds();
}

} // namespace deepgen
