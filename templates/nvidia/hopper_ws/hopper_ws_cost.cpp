// How long a config of hopper_ws should take. The constants are fitted to 1200 configs of 47 problems that
// were timed on H200s (benchmarks/gpu/model): the best 12 by this estimate, of about 25 each, have one within
// 0.3 % of the fastest on average. That of groups' loads is fitted to searches of four grouped problems.
// The programs of these fits were never committed: benchmarks/gpu/model/README.md says how they went, and
// ModelTest holds the estimates to the times. Constants of another source say so.
#include "templates/core/group_rows.h"
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/nvidia/hopper_ws/hopper_ws_stream.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

// Per clock and multiprocessor.
constexpr double kFlops16 = 4096 * 0.958; ///< floating-point operations on 16-bit operands
constexpr double kTf32 = 0.515;           ///< of that
constexpr double kInStep = 1.02;          ///< longer do products take of consumers that share stages
/// That wgmma reads. The fit had 101; by hand, from searches of the suite on an H100, where narrow tiles take
/// up to 1.3 times what they take on an H200.
constexpr double kSharedBytes = 94;
constexpr double kIngestBytes = 86; ///< that TMA writes to shared memory, of all blocks of a cluster
constexpr double kL2Bytes = 76;     ///< that TMA reads when all multiprocessors do not: half of that then
// Of a load's time at L2: what a block alone takes, and what grows with the multiprocessors that load.
constexpr double kFillAlone = 0.05, kFillBusy = 0.95;
constexpr double kMulticast = 1.65; ///< times as long does a load take that goes to several blocks
constexpr double kFromMemory = 1.2; ///< the same of a block alone, of groups, whose weights come from memory
/// The same of rows that straddle lines, by a block alone and by several. The latter by hand, from 106
/// configs of 1777 x 4864 x 3000 (../results/h200_stream_order).
constexpr double kStraddle = 1.6, kStraddleShared = 1.33;
// The same of rows of A beyond the last one, which TMA fills with zeros; and tiles for each of those with
// such rows that make up for it. By hand, from configs of M between tiles (h200_between.jsonl).
constexpr double kBeyond = 3.5, kManyBeyond = 5;
// Clocks.
constexpr double kLatency = 1000;        ///< from a stage's release to its next use
constexpr double kHeldStages = 1.2;      ///< are multiplied: the others are on their way
constexpr double kLatencyLeft = 0.072;   ///< of the latency that no stage hides
constexpr double kClusterLatency = 0.14; ///< more of it for each other block of the cluster
constexpr double kStart = 950;           ///< until a block multiplies
constexpr double kCluster = 64;          ///< more for each other block of the cluster
constexpr double kIssue = 7;             ///< from one stage to the next that do not overlap
constexpr double kLoop = 60;             ///< around the stages of a tile
constexpr double kStore = 30;            ///< around the sums of a tile
// Times as long as by TMA does it take to store the sums of a split, and those that threads store themselves.
constexpr double kSplitStore = 0.53, kThreadStore = 2.33;
constexpr double kWriteLeft = 0.56;  ///< of the way to memory that other blocks do not hide
constexpr double kClusterSum = 2200; ///< until a cluster's blocks know each other's sums
constexpr double kClusterBytes = 27; ///< of sums, there and back, in a clock
// Stream-K, from the machine's and the other constants.
constexpr double kShare = 1500;    ///< until a block knows another one's sums
constexpr double kShareBytes = 28; ///< of sums, there and back, in a clock
constexpr double kSum = 4.0;       ///< to store a sum of each thread
constexpr double kStep = 6.4;      ///< for a step of the epilogue with a sum, by two warpgroups
// Seconds.
constexpr double kLaunch = 1.84e-6, kReduce = 1.0e-6, kPack = 1.8e-6, kEarlyStart = 0.4e-6,
                 kPrefetch = 0.3e-6;
/// The launch before is the sum over splits then: short, bound by L2, and held up by early requests.
constexpr double kPrefetchInSum = 0.5e-6;
constexpr double kClear = 0.7e-6; ///< the launch that clears flags, most of it beside the main one
constexpr double kStreamK =
    1.04; ///< the last two waves, whose tiles are in parts: parts share fewer rows and columns
/// All waves, where blocks that load alone begin with parts: they are ahead of each other by up to a tile, so
/// what several read comes from L2 at different times.
constexpr double kApart = 1.4;
constexpr double kMemoryLatency = 0.43e-6;
constexpr double kMemoryStart = 0.48e-6;

constexpr double kTraffic = 0.04;   ///< of what shared memory and L2 take slows the rest down, by power
constexpr double kBusyClock = 0.84; ///< of the peak clock: what power leaves to large problems
constexpr double kBusyFlops = 5e10; ///< are large
/// Blocks of a cluster that share K end together, and start together.
constexpr double kTogether = 0.94, kFurther = 0.06, kTogetherEarly = 0.06;
constexpr double kMemory = 0.97;      ///< of the bandwidth
constexpr double kPackMemory = 0.7;   ///< the same that packing reaches
constexpr double kCachedBytes = 40e6; ///< of operands: as many stay in L2, which has 50 MB
constexpr double kNotHidden = 0.25;   ///< of the shorter one of what multiprocessors and memory take
/// Half of what comes from memory crosses the fabric between the halves of L2 to its reader, and that is full
/// before memory is
/// (`lts__ltcfabric2ltc_cycles_active` of weights that are read once: 93 %). More of it crosses where both
/// halves have readers.
constexpr double kFabric = 0.92;  ///< of memory's bandwidth, for what has one reader
constexpr double kCrossing = 0.7; ///< at most so much more for several
constexpr double kNear = 4;       ///< blocks in the order of tiles that are in one half
/// With programmatic dependent launch, blocks start where others leave room, unevenly spread over the chip:
/// where not all multiprocessors are needed, memory is slower for it.
constexpr double kUneven = 0.35;
constexpr int64_t kSharedMultiprocessor = 233472, kRegisters = 65536; // of sm_90
constexpr int64_t kKeptShared =
    1024; ///< bytes of each block that the system keeps (CUDA C++ Programming Guide)
// Registers of a thread, roughly: beside the sums of one consumer, and of all warps with two and with three.
constexpr int64_t kOtherRegisters = 46, kMostRegisters = 255, kOfTwo = 168, kOfThree = 128;
constexpr double kLeastHertz = 1e9; ///< of a device that does not tell

class Estimate {
public:
  /// `work`: tiles of clusters. `read_again`: bytes that come from memory more than once. `grouped`: with
  /// weights for each entry.
  Estimate(const Gemm& p, const Device& d, const HopperTiling& t, double work, double read_again,
           bool grouped)
      : p(p), t(t), grouped(grouped), read_again(read_again),
        hertz(std::max(kLeastHertz, double(d.clock_khz) * 1e3)), bandwidth(double(d.memory_bandwidth)),
        all(double(std::max<int64_t>(1, d.cores))), cores(usable(t.cluster(), all)),
        blocks(work * double(t.cluster())),
        fitting(std::max(double(t.cluster()), cores * double(resident()))),
        running(std::min(blocks, fitting)), busy_cores(std::min(running, cores)),
        waves(std::ceil(blocks / fitting)) {}

  double seconds() const {
    const double loop = main_loop(), end = store();
    // Consumers that share a tile do not multiply while they store.
    const double tiles =
        (t.pingpong ? loops() * std::max(loop, end) + end : loops() * loop + waves * end) + beyond_rows();
    const double clocks = kStart + kCluster * double(t.cluster() - 1) + tiles + share();
    const double slow = (1 - kBusyClock) * std::min(1.0, p.flops() / kBusyFlops);
    const double busy = clocks / (hertz * (1 - slow)), memory = memory_seconds();
    double total = std::max({busy, memory, fabric_seconds()}) + kNotHidden * std::min(busy, memory) +
                   kLaunch - (t.dependent ? kEarlyStart : 0);
    if (t.prefetch && t.split())
      total += kPrefetchInSum;
    else if (t.prefetch && (busy > memory || t.split_tiles <= t.stages)) // all of K is asked for early
      total -= kPrefetch;
    if (t.pack.any()) total += kPack + t.pack.bytes() / (kPackMemory * bandwidth);
    if (t.stream_k) total *= 1 + (kStreamK - 1) * std::min(1.0, 2 / waves), total += kClear;
    if (t.cluster_k > 1)
      total *= kTogether + kFurther * std::log2(double(t.cluster_k)) + (t.dependent ? kTogetherEarly : 0);
    if (t.split()) total += kReduce + GpuSplitK(p, t.splits).traffic() / bandwidth;
    return total;
  }

private:
  /// Multiprocessors that clusters of so many blocks fill: GPCs hold whole clusters, and not all GPCs of a
  /// device have the same size. On H200s with their 132 there was room for 30 clusters of 3 or 4, 20 of 5, 16
  /// of 6 and 14 of 8.
  static double usable(int64_t cluster, double all) {
    constexpr double kFilled[] = {1, 1, 1, 0.69, 0.91, 0.76, 0.73, 0.75, 0.85};
    return std::max(1.0, std::floor(all * kFilled[cluster] / double(cluster))) * double(cluster);
  }
  /// Blocks of one multiprocessor, by shared memory and (roughly) registers.
  int64_t resident() const {
    const int64_t registers = t.consumers == 1   ? std::min(kMostRegisters, t.sums() + kOtherRegisters)
                              : t.consumers == 2 ? kOfTwo
                                                 : kOfThree;
    return std::max<int64_t>(
        1, std::min(kSharedMultiprocessor / (t.shared + kKeptShared), kRegisters / (registers * t.threads)));
  }
  /// Tiles whose products a block makes.
  double loops() const {
    if (!t.stream_k) return waves;
    return blocks / fitting + double(HopperStreamK::least_part(t.tiles_k)) / double(t.tiles_k);
  }
  /// Clocks around the sums that a block leaves, and those that it takes.
  double share() const { return t.stream_k ? kShare + double(t.bm * t.bn) * 4 / kShareBytes : 0; }
  double rate() const {
    return size_of(p.a) == 1 ? 2 * kFlops16 : p.a == Type::tf32 ? kFlops16 * kTf32 : kFlops16;
  }

  /// Clocks by which the tiles take longer that reach beyond the last row of A, where they copy such rows.
  /// Few blocks have several of them, unless they are most of the tiles; where they are few, others make up
  /// for them.
  double beyond_rows() const {
    const HopperTile& rows = t.swap ? t.right : t.left;
    if (grouped || !rows.k_major || rows.edge_rows) return 0;
    const int64_t tiles = t.swap ? t.tiles_n : t.tiles_m;
    const auto beyond = double(t.swap ? t.tiles_n * t.bn - t.n : t.tiles_m * t.bm - t.m);
    const double share = 1 / double(tiles), longer = main_loop(beyond) - main_loop();
    return std::min(1.0, kManyBeyond * share) * std::max(1.0, waves * share) * longer;
  }

  /// Clocks of one tile's main loop in one block. Of so many of its rows of A there is nothing to load.
  double main_loop(double beyond = 0) const {
    const double rows = double(t.bm), columns = double(t.bn), bytes_k = double(t.slices) * 128;
    const double tensor =
        2 * rows * columns * double(t.bk) / rate() * (t.consumers > 1 && !t.pingpong ? kInStep : 1);
    // Each wgmma reads 64 rows of its first operand and the whole second one.
    const double shared = bytes_k * (rows + rows / 64 * columns) / kSharedBytes;
    const double ingest = bytes_k * (rows + columns) / kIngestBytes;
    const double left = t.swap ? 0 : (kBeyond - 1) * beyond, right = t.swap ? (kBeyond - 1) * beyond : 0;
    const double loaded =
        bytes_k * ((rows + left) / double(t.cluster_n) + (columns + right) / double(t.cluster_m));
    const double fill = loaded * (straddles() ? t.sharing() > 1 ? kStraddleShared : kStraddle : 1) /
                        kL2Bytes * (kFillAlone + kFillBusy * busy_cores / all) *
                        (t.sharing() > 1 ? kMulticast
                         : grouped       ? kFromMemory
                                         : 1);
    const double latency =
        kLatency / (double(t.stages) - kHeldStages) * (1 + kClusterLatency * double(t.sharing() - 1));
    const double together = std::min(fitting / cores, std::ceil(running / cores)); // blocks that share these
    const double apart = t.stream_k && !t.whole_first && t.sharing() == 1 ? kApart : 1;
    const double longest = std::max(together * std::max({tensor, shared, apart * fill, ingest}), latency);
    return double(t.split_tiles) *
               (longest + kTraffic * together * (shared + fill) + kLatencyLeft * latency + kIssue) +
           kLoop;
  }

  bool straddles() const {
    return (!t.pack.place("a").ld && p.a_columns() * size_of(p.a) % 128 != 0) ||
           (!t.pack.place("b").ld && p.b_columns() * size_of(p.b) % 128 != 0);
  }

  /// Clocks to store one tile.
  double store() const {
    if (t.cluster_k > 1) return kStore + kClusterSum + double(t.partials.bytes) / kClusterBytes;
    const double each = t.split() ? 4.0 : double(size_of(p.d)) / double(t.weights);
    const double written = double(t.bm * t.bn) * each * running / bandwidth * hertz;
    const double way = t.stores_tiles() || t.staging.by_threads ? 1
                       : t.split()                              ? kSplitStore
                                                                : kThreadStore,
                 sums = double(t.sums());
    return kStore + sums * (kSum * way + kStep * double(epilogue_length(p) * t.consumers) / 2) +
           kWriteLeft * written;
  }

  /// What runs at a time reads each row of A and column of B once; operands that fit in L2 are read once at
  /// all.
  double memory_seconds() const {
    const double row = double(p.k * size_of(p.a)), once = double(t.m + t.n) * row;
    const double high = std::min(double(std::min(t.group, t.clusters_m) * t.cluster_m), running),
                 wide = std::ceil(running / high);
    const double rows = std::min(high * double(t.bm), double(t.m)),
                 columns = std::min(wide * double(t.bn), double(t.n));
    const double again = waves * (rows + columns) * row / double(t.parts());
    const double bytes = std::max(double(p.batch) * once, p.batch == 1 && once > kCachedBytes ? again : 0.0) +
                         double(p.batch * p.m * p.n * size_of(p.d)) + read_again;
    // Little's law, of rows that there are; and what one multiprocessor can take.
    const double useful = double(std::min(t.stages, t.split_tiles) * t.slices * 128) *
                          (double(std::min(t.bm, t.m)) / double(t.cluster_n) +
                           double(std::min(t.bn, t.n)) / double(t.cluster_m));
    const double rate =
        std::min({kMemory * bandwidth, running * useful / kMemoryLatency, busy_cores * kL2Bytes * hertz});
    return bytes / rate * uneven() + kMemoryStart;
  }
  double uneven() const { return t.dependent ? 1 + kUneven * (1 - busy_cores / all) : 1; }

  /// Bands of `group` rows of tiles are visited column by column: readers of the same part of the right
  /// operand are next to each other in a band, those of the left one a column apart.
  double fabric_seconds() const {
    auto crossing = [](double readers, bool near) {
      return near ? 1 : 1 + kCrossing * (1 - std::pow(0.5, readers - 1));
    };
    const double band = double(std::min(t.group, t.clusters_m)),
                 bands = std::ceil(double(t.clusters_m) / band), columns = double(t.clusters_n),
                 blocks_of_band = band * double(t.cluster());
    const double left = crossing(columns, blocks_of_band * columns <= kNear),
                 right = bands > 1 ? crossing(bands, false) : crossing(band, blocks_of_band <= kNear);
    const double row = double(p.k * size_of(p.a));
    const double bytes = double(p.batch) * ((double(t.m) * left + double(t.n) * right) * row +
                                            double(p.m * p.n * size_of(p.d)));
    return bytes / (kFabric * bandwidth) * uneven() + kMemoryStart;
  }

  const Gemm& p;
  const HopperTiling& t;
  const bool grouped;
  const double read_again, hertz, bandwidth, all, cores, blocks, fitting, running, busy_cores, waves;
};

/// The mean over the ways in which rows are shared out while configs are timed.
double seconds_of_groups(const Gemm& problem, const Device& device, const HopperTiling& t) {
  const Gemm p = problem.as_batch();
  const auto rows_of_tile = double(t.swap ? t.bn * t.cluster_n : t.bm * t.cluster_m);
  const auto columns = double(t.swap ? t.clusters_m : t.clusters_n),
             weights = double(p.k * p.sum_columns() * size_of(p.b));
  double seconds = 0;
  for (bool skewed : {false, true}) {
    const double tiles =
        over_groups(problem, skewed, [&](double rows) { return std::ceil(rows / rows_of_tile); });
    // Bands of rows of tiles follow each other over all columns of a group: its weights are read for each
    // band, where the cache does not hold them that long.
    const double bands = over_groups(problem, skewed, [&](double rows) {
      return std::max(0.0, std::ceil(std::ceil(rows / rows_of_tile) / double(t.group)) - 1);
    });
    const double again = t.swap || weights < double(device.l2) ? 0 : weights * bands;
    seconds += Estimate(p, device, t, tiles * columns, again, true).seconds() / 2;
  }
  return seconds;
}

} // namespace

double HopperWs::cost(const Gemm& problem, const Device& device, const Config& config) const {
  const Ungrouped ungrouped(problem);
  const HopperTiling t(ungrouped.problem(), config);
  if (problem.groups) return seconds_of_groups(problem, device, t);
  return Estimate(problem, device, t, double(t.work(problem)), 0, false).seconds();
}

} // namespace deepgen
