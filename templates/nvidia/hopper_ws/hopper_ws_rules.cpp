// Which configs of hopper_ws are legal.
#include "templates/core/rules.h"
#include "templates/nvidia/hopper_ws/hopper_ws_config.h"
#include "templates/nvidia/hopper_ws/hopper_ws_stream.h"

#include <algorithm>

namespace deepgen {

using namespace hopper;

namespace {

/// Registers of a thread for sums: measured to fit without spills, by two warpgroups.
constexpr int64_t kMostSums = 192;
constexpr int64_t kMostGatedSums = 176; ///< two for each value that is stored: 192 spill
/// Sums times steps of the epilogue, beyond which ptxas takes over ten seconds.
constexpr int64_t kMostSteps = 3000;
constexpr int64_t kSharedBlock = 232448; ///< bytes that a block of sm_90 may have
constexpr int64_t kMostCluster = 8;      ///< blocks of a cluster that every sm_90 runs
constexpr int64_t kLeastIdle =
    200; ///< stream_k pays where the last wave leaves idle more than one in so many of all places

/// The values that constraints look at; everything is known from the parameters up to the constraint's own.
struct Point {
  const Gemm& whole;
  const Gemm& p; ///< for_rules()
  const Device& device;
  const Config& config;
  [[gnu::always_inline]] int64_t operator[](Index i) const { return at(config, i); }
  int64_t m() const { return (*this)[kSwap] ? p.sum_columns() : p.m; }
  int64_t n() const { return (*this)[kSwap] ? p.m : p.sum_columns(); }
  int64_t m_tiles() const { return (*this)[kBm] / 64 / ((*this)[kPingpong] ? 1 : (*this)[kConsumers]); }
  int64_t sums() const { return m_tiles() * (*this)[kBn] / 2; }
  int64_t registers() const { return sums() * ((*this)[kPromote] ? 2 : 1); }
  int64_t stage_bytes() const { return ((*this)[kBm] + (*this)[kBn]) * (*this)[kSlices] * kSliceBytes; }
  int64_t tiles_k() const { return ceil_div(p.k, (*this)[kSlices] * kSliceBytes / size_of(p.a)); }
  /// True when the sum over K cannot be shared by so many: too little is left for each, or blocks are too
  /// many.
  bool too_many(int64_t parts) const {
    const int64_t each = ceil_div(tiles_k(), parts);
    return each < 4 || tiles() * parts > 2 * device.cores || (each - 1) * parts >= tiles_k();
  }
  int64_t tiles() const { return ceil_div(m(), (*this)[kBm]) * ceil_div(n(), (*this)[kBn]) * p.batch; }
  /// Tiles of clusters, and how many of those run at a time where they fill the device.
  int64_t work() const {
    return ceil_div(m(), (*this)[kBm] * (*this)[kClusterM]) *
           ceil_div(n(), (*this)[kBn] * (*this)[kClusterN]) * p.batch;
  }
  int64_t clusters() const {
    return std::max<int64_t>(1, device.cores / ((*this)[kClusterM] * (*this)[kClusterN]));
  }
  /// For tiles of clusters in all waves.
  int64_t places() const { return round_up(work(), clusters()); }
  bool left_k_major() const { return (*this)[kSwap] ? b_k_major(p) : a_k_major(p); }
  bool right_k_major() const { return (*this)[kSwap] ? a_k_major(p) : b_k_major(p); }
  GpuPack::Side pack_a() const { return side((*this)[kAlignA], a_k_major(p), !p.a_transposed()); }
  GpuPack::Side pack_b() const { return side((*this)[kAlignB], b_k_major(p), p.b_transposed()); }
  int64_t weights() const { return p.gate ? 2 : 1; }
};

bool is_alignment(int64_t x, int64_t least, int64_t most) {
  return x >= least && x <= most && (x & (x - 1)) == 0;
}

const Rule<Index, Point> kRules[] = {
    {kBm, [](const Point& x) { return x[kBm] < 64 || x[kBm] % 64 != 0 || x[kBm] > 256; },
     [](const Point& x) { return "bm=" + text(x[kBm]) + " is not 64, 128, 192 or 256"; }},
    {kBm,
     [](const Point& x) {
       return x.p.gate && !b_k_major(x.p) && unit_of(x.p, Size::n) * size_of(x.p.b) % kAlignAB != 0;
     },
     [](const Point&) {
       return std::string("the second weight begins in the midst of 16 bytes of a row, where no copy can");
     }},
    {kBn,
     [](const Point& x) {
       const int64_t unit = x.p.a == Type::i8 && x[kBn] > 32 ? 16 : 8;
       return x[kBn] < 8 || x[kBn] > 256 || x[kBn] % unit != 0;
     },
     [](const Point& x) { return "wgmma has no n=" + text(x[kBn]) + " for these types"; }},
    {kSlices, [](const Point& x) { return x[kSlices] < 1 || x[kSlices] > 4; },
     [](const Point& x) { return "slices=" + text(x[kSlices]) + " is not 1 to 4"; }},
    {kSlices, [](const Point& x) { return x[kSlices] > 1 && x.tiles_k() < 4; },
     [](const Point&) { return std::string("slices pay for 4 tiles of K and more"); }},
    {kSlices, [](const Point& x) { return x[kSlices] > 1 && x[kBm] + x[kBn] > 256; },
     [](const Point&) { return std::string("slices pay for small tiles: bm + bn of at most 256"); }},
    {kStages,
     [](const Point& x) { return x[kStages] < 2 || x[kStages] * x.stage_bytes() > x.device.shared_block; },
     [](const Point& x) {
       return "stages=" + text(x[kStages]) + " of (bm+bn)*slices*128=" + text(x.stage_bytes()) +
              " bytes do not fit, or are less than 2: a block has " + text(x.device.shared_block) +
              " bytes of shared memory";
     }},
    {kStages, [](const Point& x) { return x[kStages] > 2 && x[kStages] > x.tiles_k() * 2; },
     [](const Point& x) {
       return "stages=" + text(x[kStages]) + " exceeds the tiles of K of two tiles of D";
     }},
    {kConsumers, [](const Point& x) { return x[kConsumers] < 1 || x[kConsumers] > 3; },
     [](const Point& x) { return "consumers=" + text(x[kConsumers]) + " is not 1, 2 or 3"; }},
    {kPingpong, [](const Point& x) { return x[kPingpong] && x[kConsumers] != 2; },
     [](const Point&) { return std::string("pingpong takes turns between two consumers"); }},
    {kPingpong, [](const Point& x) { return !x[kPingpong] && x[kBm] % (64 * x[kConsumers]) != 0; },
     [](const Point& x) { return "bm=" + text(x[kBm]) + " is not 64 rows for each of the consumers"; }},
    {kPromote, [](const Point& x) { return x[kPromote] && !is_fp8(x.p.a); },
     [](const Point&) { return std::string("promote is for sums of 8-bit floats"); }},
    {kPromote,
     [](const Point& x) {
       return x.registers() > (x[kConsumers] == 3   ? 96
                               : x.p.gate           ? kMostGatedSums
                               : x[kConsumers] == 2 ? kMostSums
                                                    : 192);
     },
     [](const Point& x) {
       return text(x.registers()) + " sums in registers of a thread are too many beside " +
              text(x[kConsumers]) + " consumers";
     }},
    {kPromote, [](const Point& x) { return x.sums() * (1 + epilogue_length(x.p)) > kMostSteps; },
     [](const Point& x) {
       return "an epilogue of this length for " + text(x.sums()) +
              " sums of a thread takes the assembler very long";
     }},
    {kSwap,
     [](const Point& x) { return !x.right_k_major() && x[kBn] % (x[kSwap] ? 64 : 64 * x.weights()) != 0; },
     [](const Point& x) {
       return "bn=" + text(x[kBn]) +
              " is not a multiple of 64 elements (of each weight) that lie side by side";
     }},
    {kSwap, [](const Point& x) { return x.p.gate && !x[kSwap] && x[kBn] % 16 != 0; },
     [](const Point& x) { return "bn=" + text(x[kBn]) + " is not a multiple of 8 columns of each weight"; }},
    {kSwap, [](const Point& x) { return x.p.gate && x[kSwap] && x.m_tiles() % 2 != 0; },
     [](const Point&) { return std::string("with swap a consumer needs 64 rows of each weight of a gate"); }},
    {kSwap, [](const Point& x) { return x[kSwap] && x.p.m > kMostSwapped; },
     [](const Point&) { return "swap pays for M of at most " + text(kMostSwapped); }},
    {kSwap,
     [](const Point& x) {
       return x[kSwap] && x.p.m > kAnyWidth && x.right_k_major() && x[kBn] != tight_width(x.p, x[kBn]);
     },
     [](const Point& x) {
       return "swap pays where tiles end with M, and bn=" + text(tight_width(x.p, x[kBn])) +
              " makes as many as bn=" + text(x[kBn]);
     }},
    {kSwap, [](const Point& x) { return x[kBm] > (x[kSwap] ? 64 * x.weights() : 64) && x[kBm] / 2 >= x.m(); },
     [](const Point& x) {
       return "half of bm=" + text(x[kBm]) + " already covers " + (x[kSwap] ? "N" : "M");
     }},
    {kSwap,
     [](const Point& x) {
       const int64_t weights = x[kSwap] ? 1 : x.weights();
       const int64_t least = weights * (x.right_k_major() ? 8 : 64), step = x[kBn] > 64 ? 16 : 8 * weights;
       return x[kBn] > least && x[kBn] - step >= x.n();
     },
     [](const Point& x) {
       return "a smaller bn than " + text(x[kBn]) + " covers " + (x[kSwap] ? "M" : "N");
     }},
    {kSwap, [](const Point& x) { return !x[kSwap] && x[kBn] / x.weights() * size_of(x.p.d) % 16 != 0; },
     [](const Point& x) {
       return "rows of " + text(x[kBn] / x.weights()) + " elements of D are not multiples of 16 bytes";
     }},
    {kClusterM,
     [](const Point& x) {
       const int64_t unit = (x.right_k_major() ? 8 : 64) * (x[kSwap] ? 1 : x.weights());
       return x[kClusterM] < 1 || x[kBn] % (unit * x[kClusterM]) != 0 ||
              ceil_div(x.m(), x[kBm]) < x[kClusterM];
     },
     [](const Point& x) {
       return "cluster_m=" + text(x[kClusterM]) +
              " blocks cannot share tiles of N, or there are fewer tiles along M";
     }},
    {kClusterN,
     [](const Point& x) {
       const int64_t consumers = x[kPingpong] ? 1 : x[kConsumers], pieces = x.p.gate ? 2 * consumers : 1;
       const int64_t unit = (x.left_k_major() ? 8 : 64) * (x[kSwap] ? pieces : 1);
       return x[kClusterN] < 1 || x[kBm] % (unit * x[kClusterN]) != 0 ||
              ceil_div(x.n(), x[kBn]) < x[kClusterN];
     },
     [](const Point& x) {
       return "cluster_n=" + text(x[kClusterN]) +
              " blocks cannot share tiles of M, or there are fewer tiles along N";
     }},
    {kClusterN, [](const Point& x) { return x[kClusterM] * x[kClusterN] > 4; },
     [](const Point&) { return std::string("clusters of more than 4 blocks do not fill the device"); }},
    {kClusterK,
     [](const Point& x) {
       return x[kClusterK] < 1 ||
              (x[kClusterK] > 1 && x[kClusterM] * x[kClusterN] * x[kClusterK] > kMostCluster);
     },
     [](const Point&) { return "a cluster has at most " + text(kMostCluster) + " blocks"; }},
    {kClusterK,
     [](const Point& x) {
       return x[kClusterK] > 1 && (x.whole.groups || x[kPingpong] || x.too_many(x[kClusterK]));
     },
     [](const Point&) {
       return std::string("cluster_k pays for fewer tiles than multiprocessors, for 4 tiles of K each, "
                          "without pingpong and groups");
     }},
    {kSplits, [](const Point& x) { return x.whole.groups && x[kSplits] > 1; },
     [](const Point&) { return std::string("the sums of groups are not split"); }},
    {kSplits,
     [](const Point& x) {
       return x[kSplits] < 1 || (x[kSplits] > 1 && (x[kClusterK] > 1 || x.too_many(x[kSplits])));
     },
     [](const Point&) {
       return std::string(
           "splits pay for fewer tiles than multiprocessors, for 4 tiles of K each, and without cluster_k");
     }},
    {kSplits, [](const Point& x) { return x[kSplits] > 1 && x[kPingpong]; },
     [](const Point&) {
       return std::string("pingpong overlaps one tile's end with the next: splits have none");
     }},
    {kSplits, [](const Point& x) { return x[kPingpong] && x.tiles() < 2 * x.device.cores / 3; },
     [](const Point&) { return std::string("pingpong pays for more tiles than multiprocessors"); }},
    {kStreamK,
     [](const Point& x) {
       return x[kStreamK] && (x.whole.groups || x[kSplits] > 1 || x[kClusterK] > 1 ||
                              2 * x[kStages] * x.stage_bytes() < kSharedBlock);
     },
     [](const Point&) {
       return std::string("stream_k shares tiles out among blocks that fill a multiprocessor each, without "
                          "splits, cluster_k and groups");
     }},
    {kStreamK,
     [](const Point& x) {
       return x[kStreamK] && (x.work() <= x.clusters() || kLeastIdle * (x.places() - x.work()) <= x.places());
     },
     [](const Point& x) {
       return "stream_k pays for two waves and more, of which the last leaves idle one place in " +
              text(kLeastIdle) + " at least, not for " + text(x.work()) + " tiles (of clusters), " +
              text(x.clusters()) + " at a time";
     }},
    {kStreamK, [](const Point& x) { return x[kStreamK] && x.p.batch_invariant; },
     [](const Point&) {
       return std::string("stream_k cuts K by a tile's place: the bits of a row would depend on it");
     }},
    {kStreamK, [](const Point& x) { return x[kStreamK] && x.tiles_k() < HopperStreamK::kFewestTilesK; },
     [](const Point& x) {
       return "stream_k shares " + text(HopperStreamK::kFewestTilesK) + " tiles of K and more, not " +
              text(x.tiles_k());
     }},
    {kGroup,
     [](const Point& x) {
       return x[kGroup] < 1 || has_smaller_group(x[kGroup], ceil_div(x.m(), x[kBm] * x[kClusterM]));
     },
     [](const Point& x) {
       return "a smaller group than " + text(x[kGroup]) + " already covers the rows of tiles";
     }},
    {kGroup,
     [](const Point& x) {
       return x[kGroup] > 1 && !x.whole.groups && ceil_div(x.n(), x[kBn] * x[kClusterN]) == 1;
     },
     [](const Point&) { return std::string("one column of tiles has one order: group is 1"); }},
    {kAlignA,
     [](const Point& x) {
       return !is_alignment(x[kAlignA], size_of(x.p.a), std::min(kAlignAB, dense_a(x.p)));
     },
     [](const Point& x) {
       return "align_a=" + text(x[kAlignA]) + ", but rows of A are aligned to " + text(dense_a(x.p));
     }},
    {kAlignB,
     [](const Point& x) {
       return !is_alignment(x[kAlignB], size_of(x.p.b), std::min(kAlignAB, dense_b(x.p)));
     },
     [](const Point& x) {
       return "align_b=" + text(x[kAlignB]) + ", but rows of B are aligned to " + text(dense_b(x.p));
     }},
    {kAlignB, [](const Point& x) { return x.whole.groups && GpuPack(x.p, x.pack_a(), x.pack_b(), 0).any(); },
     [](const Point&) {
       return std::string("operands of groups are not packed, which these would have to be");
     }},
    {kAlignB, [](const Point& x) { return GpuPack(x.p, x.pack_a(), x.pack_b(), 0).end() > kMostCopied; },
     [](const Point&) { return std::string("copies of operands exceed 16 GiB"); }},
    {kAlignD,
     [](const Point& x) {
       return !is_alignment(x[kAlignD], size_of(x.p.d), std::min<int64_t>(16, dense_d(x.p)));
     },
     [](const Point& x) {
       return "align_d=" + text(x[kAlignD]) + ", but rows of D are aligned to " + text(dense_d(x.p));
     }},
    {kAlignD, [](const Point& x) { return HopperTiling(x.whole, x.config).shared > x.device.shared_block; },
     [](const Point& x) {
       return text(HopperTiling(x.whole, x.config).shared) + " bytes of shared memory, but a block has " +
              text(x.device.shared_block);
     }},
};

} // namespace

std::string HopperWs::why_illegal(const Gemm& problem, const Device& device, const Config& config) const {
  const Ungrouped ungrouped(problem, for_rules);
  const Gemm& p = ungrouped.problem();
  const Point point{problem, p, device, config};
  return first_broken(kRules, point);
}

bool HopperWs::dead_end(const Gemm& problem, const Device& device, const Config& config,
                        size_t assigned) const {
  const Ungrouped ungrouped(problem, for_rules);
  const Gemm& p = ungrouped.problem();
  const Point point{problem, p, device, config};
  return breaks_newly(kRules, point, assigned);
}

} // namespace deepgen
