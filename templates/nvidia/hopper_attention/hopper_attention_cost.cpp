// What a call of hopper_attention should take. Rates are nominal; the other constants are set by hand, none
// is fitted: the search needs the order of configs only.
#include "templates/core/seen_keys.h"
#include "templates/core/sizes.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kTensor = 4096;     ///< operations a clock and multiprocessor (H100 data sheet)
constexpr double kLanes = 128;       ///< of all schedulers, that issue at a clock
constexpr double kExponentials = 16; ///< a clock and multiprocessor (CUDA C++ Programming Guide)
constexpr double kScore = 4;         ///< instructions for a score: maximum, power, sum, conversion
constexpr double kCapped = 6;        ///< more of them, and a second exponential, with a softcap
constexpr double kBias = 3;          ///< more of them with a bias: its address, load, conversion
constexpr double kSoft = 8;     ///< more of them, which nothing hides, of an exponential by multiplications
constexpr double kMasked = 0.5; ///< of a block of keys more, where it is masked
constexpr double kMeet = 220;   ///< clocks of barriers and waits of a block of keys
constexpr double kMeetLazily = 200; ///< the same, where maxima are not shared
// Swapped, all set by hand but the first, before any was timed.
constexpr double kReads = 128;         ///< bytes a clock of shared memory (CUDA C++ Programming Guide)
constexpr double kTold = 16;           ///< instructions of a thread for a row that warps tell each other of
constexpr double kMeetWarps = 120;     ///< clocks more of a block of keys: two barriers, a fence
constexpr double kUnderWay = 40 << 10; ///< bytes for a multiprocessor: 4.8 TB/s and 1.1 us, over 132 of them

constexpr double kShared = 40;  ///< bytes of keys and values a clock, from L2 to a multiprocessor
constexpr double kBox = 60;     ///< clocks of the producer to bring a box of a page, by one slice or more
constexpr double kTurn = 40;    ///< clocks of a warp that transposes 32 values in 16 columns
constexpr double kStart = 1500; ///< clocks for Q and the first keys
constexpr double kCopy = 40;    ///< clocks of the producer to copy 32 pieces of 16 bytes of a packed Q
constexpr double kStore = 1200; ///< for results
constexpr double kHidden = 0.8; ///< of both, where the next keys are brought meanwhile
constexpr double kAhead = 0.75; ///< the same, where the next Q is, too
constexpr double kBeside = 0.3; ///< of the shorter one of computing and memory, or boxes, is not hidden
/// Of the shorter one of products and softmax, by consumers of a multiprocessor: what the other does not
/// hide. Of 11 configs at dimension 64 on an H100. Two in turn hide all that is much shorter.
constexpr double kOpen[] = {1.1, 1, 0.7, 0.6}, kInTurn[] = {1.1, 0.1, 0.5, 0.55};
constexpr double kTwoAlike = 0.8; ///< more of two in turn, where both take as long
constexpr double kMemory = 0.85;  ///< of the bandwidth
// Swapped, by searches of decoding on an H200 (benchmarks/gpu/results/h200_attention_ahead).
constexpr double kSwappedMemory = 0.93; ///< of the bandwidth
constexpr double kSwappedBeside = 0.1;  ///< as kBeside
constexpr double kSwappedStart = 1000;  ///< clocks
constexpr double kCombine = 1.5e-6;     ///< seconds of the launch that adds up splits
constexpr double kPart = 16e-9;         ///< more of them, for each split
constexpr double kLaunch = 3e-6;        ///< seconds
constexpr double kLeastHertz = 1e9;     ///< of a device that does not tell

struct Estimate {
  const Attention& p;
  const Device& d;
  const HopperAttentionTiling& t;

  bool causal() const { return p.mask == AttentionMask::causal || p.mask == AttentionMask::causal_top_left; }

  /// Clocks of both products of a block of keys. Swapped, their steps wait for 64 rows of the one operand,
  /// few though the rows of the other are.
  double products() const {
    const int64_t size = size_of(p.kv); // half the bytes, twice the rate
    const int64_t depth = t.depth_steps * 32 / size;
    const double all = double(t.rows * t.keys) * double(depth + t.columns) * double(size) / kTensor;
    if (!t.swap) return all;
    const int64_t steps = t.keys / kSwappedKeys * t.depth_steps + t.value_slices * t.keys / 16;
    return std::max(all, double(steps * (kSwappedKeys + t.rows) * 32) / kReads);
  }

  /// Clocks of a block of rows for a block of keys.
  double key_block() const {
    const auto rows = double(t.rows), keys = double(t.keys), scores = rows * keys;
    const double tensor = products();
    const double capped = p.softcap ? 1 : 0, biased = p.bias ? 1 : 0;
    const double soft = double(t.soft) / 8, rescaled = t.lazy ? 0 : rows * double(t.columns);
    const double told = t.swap ? 128 * double(t.swapped_rows()) * kTold : 0;
    const double issue = (scores * (kScore + capped * kCapped + biased * kBias) + rescaled + told) / kLanes;
    const double softmax = std::max(issue, scores * (1 - soft + 2 * capped) / kExponentials);
    const auto warpgroups = size_t(std::min<int64_t>(4, t.consumers * t.resident));
    double open = (t.pingpong ? kInTurn : kOpen)[warpgroups - 1];
    if (t.pingpong && warpgroups == 2)
      open += kTwoAlike * std::min(tensor, softmax) / std::max(tensor, softmax);
    const double meet = ((t.lazy ? kMeetLazily : kMeet) + (t.swap ? kMeetWarps : 0)) / double(t.resident);
    const double all = std::max(tensor, softmax) + open * std::min(tensor, softmax) + meet;
    const double bytes = double(t.key_bytes + t.value_bytes) / kShared;
    const double others = std::max(all + scores * soft * kSoft / kLanes, bytes), boxes = producer();
    return std::max(others, boxes) + kBeside * std::min(others, boxes);
  }

  /// Clocks of the producer for a block of keys of pages, of which it begins each box of keys and of values;
  /// or of the warps that transpose values meanwhile.
  double producer() const {
    const int64_t boxes = p.paged() ? 2 * (t.keys / t.box) : 0;
    const int64_t steps = t.keys / 32, chunks = ceil_div(t.columns / 16, kTurningWarps),
                  turns = steps * chunks;
    return std::max(t.narrow ? kTurn * double(turns) : 0, kBox * double(boxes));
  }

  /// A consumer leaves out blocks behind all that its rows see, not those before: the mean of what all rows
  /// and its own see.
  double window_blocks() const {
    const double all = RowTile{t.rows, t.group}.mean_key_blocks(p, t.keys);
    return t.consumers == 1 ? all : (all + RowTile{64, t.group}.mean_key_blocks(p, t.keys)) / 2;
  }

  /// Of a block of rows, or of its part of the keys, on average.
  double key_blocks() const {
    const auto keys = double(p.at_keys), queries = double(p.at_queries), width = double(t.keys);
    const double seen = causal() ? std::max(1.0, keys - std::min(keys, queries) / 2) : keys;
    const double edge = causal() ? ((double(t.rows) + 64) / double(t.group) / 2 + width) / 2 : 0;
    const double blocks = p.windowed() ? window_blocks()
                                       : std::min(std::ceil(keys / width),
                                                  causal() ? (seen + edge) / width : std::ceil(keys / width));
    const double own = t.splits > 1 ? std::ceil(blocks / double(t.splits)) : blocks;
    const double end = std::ceil(double(t.rows) / double(t.group) / width); // of what rows see, in blocks
    if (p.windowed())
      return own + kMasked * std::min(own, (p.at_left >= 0 ? end : 0) + (p.at_right >= 0 ? end : 0));
    return own + kMasked * (causal() ? end : 1);
  }

  /// Of the time of memory: swapped, all blocks that run at a time are to have enough keys and values under
  /// way beside those that they work on. (Others are not estimated by it, as their constants were set
  /// without.)
  double starved(double blocks, double cores) const {
    if (!t.swap) return 1;
    const double running = std::min(blocks, cores * double(t.resident));
    const double stages = std::max(0.5, double(t.stages - 1));
    return std::max(1.0, cores * kUnderWay / (running * stages * double(t.key_bytes + t.value_bytes)));
  }

  double seconds() const {
    const double hertz = std::max(kLeastHertz, double(d.clock_khz) * 1e3);
    const double blocks = double(t.tuned_blocks(p) * t.splits);
    const double cores = double(std::max<int64_t>(1, d.cores)), waves = blocks / cores;
    // Rows of different lengths even out; of equal ones the last wave takes as long as any.
    const double each = causal() ? std::max(1.0, waves + 0.5) : std::ceil(waves);
    const bool covered = waves > double(t.resident) && (t.persistent || t.resident > 1);
    double ends = (t.swap ? kSwappedStart : kStart) + kStore;
    if (t.pack) // rows that there are
      ends += kCopy / 512 * double(std::min(t.rows, p.at_queries * t.group) * t.depth_steps * 32);
    ends *= !covered ? 1 : t.q_stages > 1 ? kAhead : kHidden;
    const double clocks = each * (ends + key_blocks() * key_block());
    const double combine = t.splits > 1 ? kCombine + kPart * double(t.splits) : 0;
    const double share = t.swap ? kSwappedMemory : kMemory, beside = t.swap ? kSwappedBeside : kBeside;
    const double memory = starved(blocks, cores) * (p.bytes() + t.part_bytes(p)) /
                          (share * double(std::max<int64_t>(1, d.memory_bandwidth)));
    return kLaunch + combine + std::max(clocks / hertz, memory) + beside * std::min(clocks / hertz, memory);
  }
};

} // namespace

double HopperAttention::cost(const Attention& p, const Device& device, const Config& config) const {
  const HopperAttentionTiling t(p, config);
  return Estimate{p, device, t}.seconds();
}

} // namespace deepgen
