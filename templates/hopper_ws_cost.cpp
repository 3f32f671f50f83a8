// How long a config of hopper_ws should take. Rates were measured on an H200; the search needs the order of configs only.
#include "templates/gpu_split_k.h"
#include "templates/hopper_ws.h"
#include "templates/sizes.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kRate16 = 4096 * 0.9; ///< floating-point operations a clock and multiprocessor, 16-bit operands
constexpr double kSharedBytes = 128;   ///< that wgmma reads, a clock and multiprocessor
constexpr double kL2Bytes = 46;        ///< a clock and multiprocessor, all of them reading
constexpr double kLatency = 900;       ///< clocks from global memory to shared memory under load
constexpr double kStart = 1500;        ///< clocks until a block multiplies
constexpr double kIssue = 24;          ///< clocks from one stage to the next that do not overlap
constexpr double kLaunch = 2e-6, kReduce = 1.6e-6, kEarlyStart = 0.5e-6; ///< seconds
constexpr double kBusyClock = 0.75;    ///< of the peak clock: what power leaves to large problems

class Estimate {
public:
  Estimate(const Problem& p, const Device& d, const HopperTiling& t)
      : p(p), t(t), d(d), hertz(std::max(1e9, double(d.clock_khz) * 1e3)),
        cores(double(std::max<int64_t>(1, d.cores))) {}

  double seconds() const {
    const double running = std::floor(cores / double(t.cluster())) * double(t.cluster());
    const double blocks = double(t.work(p) * t.cluster()), waves = std::ceil(blocks / running);
    const double each = main_loop(std::min(blocks, running)), end = store(std::min(blocks, running));
    // The last tile's end overlaps with nothing; cooperating consumers do not multiply while they store.
    const double clocks = kStart + (t.pingpong ? waves * std::max(each, end) + end : waves * (each + 0.6 * end) + 0.4 * end);
    const double clock = p.flops() > 2e10 ? hertz * kBusyClock : hertz;
    const double busy = clocks / clock, memory = memory_seconds(std::min(blocks, running));
    double total = std::max(busy, memory) + 0.15 * std::min(busy, memory) + kLaunch - (t.dependent ? kEarlyStart : 0);
    if (t.split()) total += kReduce + GpuSplitK(p, t.splits).traffic() / (kL2Bytes * cores * hertz);
    return total;
  }

private:
  double rate() const { return size_of(p.a) == 1 ? 2 * kRate16 : p.a == Type::tf32 ? kRate16 / 2 : kRate16; }

  /// Clocks of one tile's main loop in one block.
  double main_loop(double running) const {
    const double rows = double(t.bm), depth = double(t.bk);
    const double tensor = 2 * rows * double(t.bn) * depth / rate();
    // Each wgmma reads 64 rows of its first operand and the whole second one, for each of the consumers.
    const double m_tiles = rows / 64;
    const double bytes = double(t.slices) * (rows + m_tiles * double(t.bn)) * 128;
    const double shared = bytes / kSharedBytes;
    const double loaded = double(t.slices) * 128 *
                          (rows / double(t.cluster_n) + double(t.bn) / double(t.cluster_m)) * (t.cluster() > 1 ? 1.1 : 1.0);
    const double fill = loaded / kL2Bytes * (0.4 + 0.6 * running / cores);
    const double latency = kLatency / double(std::max<int64_t>(1, t.stages - 1));
    const double alone = t.consumers == 1 ? 1.1 : 1.0;
    return double(t.split_tiles) * (std::max({tensor * alone, shared, fill, latency}) + kIssue) + kLatency * 0.3;
  }

  /// Clocks to store one tile.
  double store(double running) const {
    const double bytes = double(t.bm * t.bn * (t.split() ? 4 : size_of(p.d)));
    const double written = bytes * running / double(d.memory_bandwidth) * hertz;
    const double passes = double(t.sums()) * (t.stores_tiles() ? 6 : t.split() ? 8 : 16);
    return 300 + passes + 0.7 * written;
  }

  double memory_seconds(double running) const {
    const double bytes = double(p.batch) * (double(p.m * p.k * size_of(p.a)) + double(p.n * p.k * size_of(p.b)) +
                                            double(p.m * p.n * size_of(p.d)));
    // Little's law with a microsecond of latency.
    const double in_flight = running * double(t.stages * t.stage_bytes);
    return bytes / std::min(0.92 * double(d.memory_bandwidth), in_flight / 1.0e-6);
  }

  const Problem& p;
  const HopperTiling& t;
  const Device& d;
  const double hertz, cores;
};

} // namespace

double HopperWs::cost(const Problem& p, const Device& device, const Config& config) const {
  return Estimate(p, device, HopperTiling(p, config)).seconds();
}

} // namespace deepgen
