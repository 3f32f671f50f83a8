// How long a config of hopper_ws should take. Rates are those of a prototype on an H200; the search needs the order of
// configs only.
#include "templates/gpu_split_k.h"
#include "templates/hopper_ws.h"
#include "templates/sizes.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kRate16 =
    4096 * 0.92; ///< floating-point operations a clock and multiprocessor, 16-bit operands
constexpr double kSharedBytes = 128; ///< that wgmma reads, a clock and multiprocessor
constexpr double kL2Bytes = 46;      ///< a clock and multiprocessor, all of them reading
constexpr double kLatency =
    1400; ///< clocks from a stage's release to its next use: 64 x 128 of 1024^3 with 4, 6, 8 stages
constexpr double kStart = 1500;  ///< clocks until a block multiplies
constexpr double kCluster = 250; ///< clocks more for blocks that wait for each other
constexpr double kIssue = 20;    ///< clocks from one stage to the next that do not overlap
constexpr double kTraffic = 0.1; ///< of what shared memory and L2 take slows the rest down, by power
constexpr double kLaunch = 2e-6, kReduce = 1.6e-6, kPack = 1.6e-6, kEarlyStart = 0.5e-6; ///< seconds
constexpr double kBusyClock = 0.78; ///< of the peak clock: what power leaves to large problems
constexpr double kBusyFlops = 5e10; ///< are large

class Estimate {
public:
  Estimate(const Problem& p, const Device& d, const HopperTiling& t)
      : p(p), t(t), hertz(std::max(1e9, double(d.clock_khz) * 1e3)), bandwidth(double(d.memory_bandwidth)),
        cores(double(std::max<int64_t>(1, d.cores))), blocks(double(t.work(p) * t.cluster())),
        running(std::min(blocks, fitting())), waves(std::ceil(blocks / fitting())) {}

  double seconds() const {
    const double each = main_loop(), end = store();
    // The last tile's end overlaps with nothing; consumers that share a tile do not multiply while they
    // store.
    const double tiles =
        t.pingpong ? waves * std::max(each, end) + end : waves * (each + 0.7 * end) + 0.3 * end;
    const double clocks = kStart + (t.cluster() > 1 ? kCluster : 0) + tiles;
    const double busy = clocks / (p.flops() > kBusyFlops ? hertz * kBusyClock : hertz),
                 memory = memory_seconds();
    double total =
        std::max(busy, memory) + 0.15 * std::min(busy, memory) + kLaunch - (t.dependent ? kEarlyStart : 0);
    if (t.pack.any()) total += kPack + 2 * double(t.pack.end()) / (0.7 * bandwidth);
    if (t.split()) total += kReduce + GpuSplitK(p, t.splits).traffic() / (kL2Bytes * cores * hertz);
    return total;
  }

private:
  /// Larger clusters do not fill the GPCs: 120 of 132 multiprocessors (measured).
  double fitting() const {
    return std::max(double(t.cluster()), std::floor(t.cluster() > 2 ? cores * 0.91 : cores));
  }
  double rate() const { return size_of(p.a) == 1 ? 2 * kRate16 : p.a == Type::tf32 ? kRate16 / 2 : kRate16; }

  /// Clocks of one tile's main loop in one block.
  double main_loop() const {
    const double rows = double(t.bm), columns = double(t.bn), bytes_k = double(t.slices) * 128;
    const double tensor = 2 * rows * columns * double(t.bk) / rate() * (t.consumers == 1 ? 1.08 : 1.0);
    // Each wgmma reads 64 rows of its first operand and the whole second one.
    const double shared = bytes_k * (rows + rows / 64 * columns) / kSharedBytes;
    const double loaded = bytes_k * (rows / double(t.cluster_n) + columns / double(t.cluster_m));
    // Rows that straddle lines take one line more for each 128 bytes.
    const double lines = straddles() ? 1.6 : 1.0;
    const double fill =
        loaded * lines / kL2Bytes * (0.4 + 0.6 * running / cores) * (t.cluster() > 1 ? 1.1 : 1.0);
    const double latency = kLatency / (double(t.stages) - 1.5);
    const double longest = std::max({tensor, shared, fill, latency});
    return double(t.split_tiles) * (longest + kTraffic * (shared + fill) + 0.03 * latency + kIssue) + 300;
  }

  bool straddles() const {
    return (!t.pack.place("a").ld && p.a_columns() * size_of(p.a) % 128 != 0) ||
           (!t.pack.place("b").ld && p.b_columns() * size_of(p.b) % 128 != 0);
  }

  /// Clocks to store one tile.
  double store() const {
    const double bytes = double(t.bm * t.bn * (t.split() ? 4 : size_of(p.d)));
    const double written = bytes * running / bandwidth * hertz;
    const double each = t.stores_tiles() ? 6 : t.split() ? 8 : 14; // clocks for a row of 128 sums
    return 300 + double(t.sums()) * each + 0.7 * written;
  }

  /// What runs at a time reads each row of A and column of B once; operands that fit in L2 are read once at
  /// all.
  double memory_seconds() const {
    const double a = double(t.m * p.k * size_of(t.left.type)), b = double(t.n * p.k * size_of(t.right.type));
    const double high = std::min(double(std::min(t.group, t.clusters_m) * t.cluster_m), running),
                 wide = std::ceil(running / high);
    const double rows = std::min(high * double(t.bm), double(t.m)),
                 columns = std::min(wide * double(t.bn), double(t.n));
    const double once = a + b,
                 again = waves * (rows + columns) * double(p.k * size_of(p.a)) / double(t.splits);
    const double bytes = std::max(double(p.batch) * once, p.batch == 1 && once > 40e6 ? again : 0.0) +
                         double(p.batch * p.m * p.n * size_of(p.d));
    // Little's law with a microsecond of latency; and what one multiprocessor can take.
    const double in_flight = running * double(t.stages * t.stage_bytes) / 1.0e-6;
    return bytes / std::min({0.92 * bandwidth, in_flight, running * kL2Bytes * hertz});
  }

  const Problem& p;
  const HopperTiling& t;
  const double hertz, bandwidth, cores, blocks, running, waves;
};

} // namespace

double HopperWs::cost(const Problem& p, const Device& device, const Config& config) const {
  return Estimate(p, device, HopperTiling(p, config)).seconds();
}

} // namespace deepgen
