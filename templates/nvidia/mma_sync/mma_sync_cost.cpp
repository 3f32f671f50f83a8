// How long a config of mma_sync should take. Rates are those of the vendors' data sheets, lowered where
// measurements of mma.sync kernels are known; the search needs the order of configs only. No constant here is
// fitted: where no source is named, it is an estimate by hand, and benchmarks/gpu/model/README.md says how
// good they are together.
#include "templates/core/group_rows.h"
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/nvidia/mma_sync/mma_rate.h"
#include "templates/nvidia/mma_sync/mma_sync.h"
#include "templates/nvidia/mma_sync/mma_sync_fill.h"

#include <algorithm>

namespace deepgen {
namespace {

double rate(Type type, int64_t capability) {
  switch (type) {
  case Type::f64:
    return capability == 90 ? 256 : capability == 80 || capability == 100 ? 128 : 4;
  case Type::tf32:
    return mma_rate16(capability) / 2;
  case Type::f16:
  case Type::bf16:
    return mma_rate16(capability);
  default:
    return 2 * mma_rate16(capability);
  }
}

constexpr double kSharedBytes = 128;      ///< a clock and multiprocessor (CUDA C++ Programming Guide)
constexpr double kL2Bytes = 40;           ///< a clock and multiprocessor, all of them reading
constexpr double kLatency = 900;          ///< clocks from global memory to shared memory under load
constexpr double kStart = 700 + kLatency; ///< clocks until a block multiplies
constexpr double kTileOverhead = 60;      ///< clocks: barrier, addresses
constexpr double kAlone =
    1.1; ///< a block that has a multiprocessor to itself: nothing runs while its warps meet
constexpr double kFewWarps = 0.8;    ///< of the tensor cores' rate, with less than two warps of a scheduler
constexpr double kByElements = 1.5;  ///< times as long to read fragments element by element
constexpr double kSmallPieces = 2.0; ///< clocks for an instruction of 32 copies of less than 16 bytes
constexpr double kWordBytes = 256, kWordClocks = 8; ///< through registers: so many take so long
// Products and reads of fragments overlap, but not perfectly: together they take so much of each.
constexpr double kTensorLeft = 0.7, kSharedLeft = 0.4;
constexpr double kPass = 150;      ///< clocks for rows of a tile that are stored together
constexpr double kStaging = 1.5;   ///< times as long for sums on their way through shared memory
constexpr double kStoreLeft = 0.7; ///< of the way to memory that other blocks do not hide
constexpr double kNotHidden = 0.2; ///< of the shorter one of what multiprocessors and memory take
constexpr double kMemory = 0.9;    ///< of the bandwidth
/// Seconds; and of the p-norm that joins the two limits of memory. One row by 4096 x 4096 of B
/// took 9.7, 10.3, 10.5 and 11.5 us with 56, 40, 32 and 24 KiB of B on their way to a multiprocessor
/// (h200_balanced and earlier).
constexpr double kMemoryLatency = 0.8e-6, kSharpness = 4;
/// More time for memory by each halving of the bytes that lie side by side in a tile: 219, 231 and 244 us of
/// moe8_dec with 256, 128 and 64.
constexpr double kShortPieces = 0.03;
constexpr int64_t kLongPiece = 256;
constexpr int64_t kRegisters = 65536, kGranule = 8, kMostBlocks = 32; // of a multiprocessor, and of a thread
constexpr int64_t kKeptShared =
    1024; ///< bytes of each block that the system keeps (CUDA C++ Programming Guide)
constexpr double kLeastHertz = 1e9; ///< of a device that does not tell
/// Where memory is busy nearly all the time, what is asked for early only delays what is needed now; unless
/// it is all there is. One row and 16 rows with 4096 x 4096 and 6144 x 4096 of B took 1.06 and 1.11 of the
/// time without it (benchmarks/gpu/results/h200_balanced).
constexpr double kPrefetchInTheWay = 1.08, kNearMemory = 1.3;
constexpr double kLaunch = 1.7e-6, kReduce = 1.6e-6, kEarlyStart = 0.7e-6, kPrefetch = 0.4e-6; ///< seconds

class Estimate {
public:
  Estimate(const Gemm& p, const Device& d, const MmaTiling& t, double grid)
      : p(p), t(t), d(d), hertz(std::max(kLeastHertz, double(d.clock_khz) * 1e3)),
        cores(double(std::max<int64_t>(1, d.cores))), grid(grid) {}

  double seconds() const {
    const int64_t each = int64_t(std::max(1.0, std::ceil(grid / cores)));
    const int64_t most = std::min(resident(), each);
    double clocks = kStart + work(most);
    if (each > most) {
      // One block's end overlaps with another's beginning: either the units are busy all the time, or too few
      // blocks are there to hide how long each takes.
      const double busy = double(each) * work(most) / double(most);
      const double waiting = double(each) / double(most) * (kStart + work(1));
      clocks = kStart + std::max(busy, waiting);
    }
    const double busy = clocks / hertz, memory = memory_seconds();
    double total = std::max(busy, memory) + kNotHidden * std::min(busy, memory);
    total += kLaunch - (t.dependent ? kEarlyStart : 0);
    const bool whole = t.split_tiles <= t.ring; // all that a block reads is asked for early
    if (t.prefetch && !whole && busy <= kNearMemory * memory)
      total *= kPrefetchInTheWay;
    else if (t.prefetch && !t.split())
      total -= kPrefetch;
    if (t.split()) total += kReduce + GpuSplitK(p, t.splits).traffic() / (kL2Bytes * cores * hertz);
    return total;
  }

private:
  /// Blocks that one multiprocessor holds at a time.
  int64_t resident() const {
    const int64_t threads = resident_threads(d.compute_capability());
    const int64_t registers = std::min((t.registers + kGranule - 1) / kGranule * kGranule,
                                       kRegisters / (t.resident * t.threads) / kGranule * kGranule);
    return std::max<int64_t>(
        1, std::min({d.shared_multiprocessor / (t.shared + kKeptShared), threads / t.threads,
                     kRegisters / (registers * t.threads), kMostBlocks}));
  }

  /// Clocks of `n` blocks together on one multiprocessor, after their start.
  double work(int64_t n) const {
    const double blocks = double(n), warps = blocks * double(t.threads) / 32;
    const double flops = 2.0 * double(t.bm * t.bn * t.bk);
    const double busy = std::min(1.0, warps / 4) * (warps >= 8 ? 1.0 : kFewWarps);
    const double tensor = blocks * flops / rate(p.a, d.compute_capability()) / busy;
    const double reads = double((t.bm * t.warps_n + t.bn * t.warps_m + t.bm + t.bn) * t.bk_bytes);
    const double elements =
        t.a.load == FragmentLoad::elements || t.b.load == FragmentLoad::elements ? kByElements : 1.0;
    double shared = blocks * elements * reads / kSharedBytes;
    double fill = blocks * double(t.stage_bytes) / kL2Bytes;
    // An instruction for every small piece. By words: loads, shifts and stores cost about 8 wavefronts for
    // 256 bytes in the unit that reads fragments too.
    double words = 0;
    bool by_words = false;
    for (auto [bytes, align] : {std::pair{t.a.bytes(), t.align_a}, {t.weights * t.b.bytes(), t.align_b}})
      if (TileFill::through_registers(align))
        words += blocks * double(bytes) / kWordBytes * kWordClocks, by_words = true;
      else if (const int64_t pieces = bytes / align; align < 16)
        fill += blocks * double(pieces) / 32 * kSmallPieces;
    shared += words;
    // What goes through registers is on its way during one tile.
    const double ahead = by_words ? 1 : double(std::max<int64_t>(1, t.ring - 1));
    const double loop =
        (n == 1 ? kAlone : 1) * std::max({tensor, shared, tensor * kTensorLeft + shared * kSharedLeft});
    const double tile = std::max({loop, fill, kLatency / ahead}) + kTileOverhead;
    const int64_t rounds = t.by_warps ? 0 : t.wm / 16 / t.pass_tiles;
    const double d_bytes = double(t.bm * (t.split() ? t.bn * t.accumulator_bytes : t.columns * size_of(p.d)));
    const double store = blocks * d_bytes * cores / double(d.memory_bandwidth) * hertz * kStoreLeft / cores *
                         stores_per_core();
    const double passes = t.by_warps
                              ? t.warp_pitch ? 2.0 * double(size_of(p.d)) : 0.0
                              : double(t.accumulator_bytes * (t.k_warps + 1)); // bytes, written and read
    const double staging = blocks * double(t.bm * t.columns) * passes / kSharedBytes;
    return double(t.split_tiles) * tile + double(rounds) * kPass + staging * kStaging + store;
  }

  /// Multiprocessors that store at the same time share the memory's bandwidth.
  double stores_per_core() const { return std::min(cores, grid); }

  double memory_seconds() const {
    const double a = double(p.m * p.k * size_of(p.a)), b = double(p.sum_columns() * p.k * size_of(p.b));
    const double bytes = double(p.batch) * (a + b + double(p.m * p.n * size_of(p.d)));
    // Little's law, of rows that there are. Neither limit is a sharp one.
    const int64_t each = int64_t(std::ceil(grid / cores));
    const double running = std::min(cores, grid) * double(std::min(resident(), each));
    const double ahead = double(std::max<int64_t>(1, t.ring - 1));
    const double rows = double(std::min(t.bm, p.m) + std::min(t.bn, p.sum_columns()));
    const double in_flight = running * ahead * rows * double(t.bk_bytes);
    const double piece = double(p.b_transposed() ? t.bk_bytes : std::min(kLongPiece, t.bn * size_of(p.b)));
    const double moving = bytes / (kMemory * double(d.memory_bandwidth)) *
                          (1 + kShortPieces * std::log2(double(kLongPiece) / piece)),
                 waiting = bytes / in_flight * kMemoryLatency;
    return std::pow(std::pow(moving, kSharpness) + std::pow(waiting, kSharpness), 1 / kSharpness);
  }

  const Gemm& p;
  const MmaTiling& t;
  const Device& d;
  const double hertz, cores, grid; ///< blocks of the call
};

/// The mean over the ways in which rows are shared out while configs are timed.
double blocks_of_groups(const Gemm& problem, const MmaTiling& t) {
  const auto tiles = [&](double rows) { return std::ceil(rows / double(t.bm)); };
  return double(t.tiles_n) * (over_groups(problem, false, tiles) + over_groups(problem, true, tiles)) / 2;
}

} // namespace

double MmaSync::cost(const Gemm& problem, const Device& device, const Config& config) const {
  const Ungrouped ungrouped(problem);
  const Gemm& p = ungrouped.problem();
  const MmaTiling t(p, device.compute_capability(), config);
  const double blocks = problem.groups ? blocks_of_groups(problem, t) : double(t.blocks() * p.batch);
  return Estimate(p, device, t, blocks).seconds();
}

} // namespace deepgen
