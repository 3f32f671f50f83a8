#include "templates/hopper_ws.h"

#include "base/error.h"
#include "templates/gpu_epilogue.h"
#include "templates/gpu_split_k.h"
#include "templates/hopper_ws_groups.h"
#include "templates/hopper_ws_stream.h"
#include "templates/sizes.h"

#include <algorithm>

namespace deepgen {
namespace {

enum Index {
  kBm,
  kBn,
  kSlices,
  kStages,
  kConsumers,
  kPingpong,
  kSwap,
  kPromote,
  kClusterM,
  kClusterN,
  kClusterK,
  kSplits,
  kStreamK,
  kGroup,
  kPdl,
  kAlignA,
  kAlignB,
  kAlignD
};
constexpr std::string_view kNames[] = {"bm",        "bn",      "slices",   "stages",    "consumers",
                                       "pingpong",  "swap",    "promote",  "cluster_m", "cluster_n",
                                       "cluster_k", "splits",  "stream_k", "group",     "pdl",
                                       "align_a",   "align_b", "align_d"};

constexpr int64_t kSliceBytes = 128; ///< of K in one slice of a stage
/// Registers of a thread for sums: measured to fit without spills, by two warpgroups.
constexpr int64_t kMostSums = 192;
/// Of the awkward shape with stream_k, on a device of about 132 multiprocessors.
constexpr int64_t kStreamedTiles = 198, kStreamedTilesK = 12;
constexpr int64_t kMostGatedSums = 176; ///< two for each value that is stored: 192 spill
/// Sums times steps of the epilogue, beyond which ptxas takes over ten seconds.
constexpr int64_t kMostSteps = 3000;
constexpr int64_t kSharedBlock = 232448;          ///< bytes that a block of sm_90 may have
constexpr int64_t kMostCluster = 8;               ///< blocks of a cluster that every sm_90 runs
constexpr int64_t kMostCopied = int64_t(1) << 34; ///< bytes, in units of 16 that 32 bits count
constexpr int64_t kLeastIdle =
    200; ///< stream_k pays where the last wave leaves idle more than one in so many of all places
constexpr int64_t kAlignAB = 16; ///< that TMA wants of bases, leading dimensions and strides

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// Tensor cores transpose 16-bit operands only: others are packed along K first.
bool a_k_major(const Problem& p) { return !p.a_transposed() || size_of(p.a) != 2; }
bool b_k_major(const Problem& p) { return p.b_transposed() || size_of(p.b) != 2; }
/// TMA wants rows that are multiples of 16 bytes apart.
GpuPack::Side side(int64_t align, bool k_major, bool stored_k_major) {
  return {align < kAlignAB || k_major != stored_k_major, k_major, align};
}
int64_t dense_a(const Problem& p) { return dense_alignment(p.a_columns(), p.a); }
int64_t dense_b(const Problem& p) { return dense_alignment(p.b_columns(), p.b); }
int64_t dense_d(const Problem& p) { return dense_alignment(p.n, p.d); }

/// The values that constraints look at; everything is known from the parameters up to the constraint's own.
struct Point {
  const Problem& whole;
  const Problem& p; ///< for_rules()
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

/// One rule of the space: `broken` is checked as soon as the parameter `after` is known.
struct Rule {
  Index after;
  bool (*broken)(const Point&);
  std::string (*why)(const Point&);
};

const Rule kRules[] = {
    {kBm, [](const Point& x) { return x[kBm] < 64 || x[kBm] % 64 != 0 || x[kBm] > 256; },
     [](const Point& x) { return "bm=" + text(x[kBm]) + " is not 64, 128, 192 or 256"; }},
    {kBm,
     [](const Point& x) { return x.p.gate && !b_k_major(x.p) && x.p.n * size_of(x.p.b) % kAlignAB != 0; },
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
    {kPromote, [](const Point& x) { return x.sums() * (1 + epilogue_steps(x.p)) > kMostSteps; },
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
    {kSwap, [](const Point& x) { return x[kSwap] && x.p.m > 128; },
     [](const Point&) { return std::string("swap pays for M of at most 128"); }},
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

int64_t epilogue_steps(const Problem& p) {
  auto of = [](EpilogueOp op) {
    return op == EpilogueOp::gelu || op == EpilogueOp::gelu_tanh || op == EpilogueOp::silu ||
                   op == EpilogueOp::sigmoid
               ? 8
               : 1;
  };
  int64_t steps = 0;
  for (EpilogueOp op : p.epilogue) steps += of(op);
  return p.gate ? (steps + 1 + of(*p.gate)) / 2 : steps; // two sums for one element
}

HopperTile::HopperTile(std::string name, Type type, bool k_major, int64_t rows, int64_t bk, int64_t share,
                       int64_t pieces)
    : name(std::move(name)), type(type), k_major(k_major), rows(rows), pieces(pieces), share(share),
      bytes(rows * kSliceBytes) {
  if (k_major) {
    box_columns = bk, box_rows = rows / pieces / share;
  } else {
    box_columns = kSliceBytes / size_of(type), box_rows = bk;
    copies = rows / pieces / box_columns / share, slice_bytes = bk * kSliceBytes;
  }
}

HopperTiling HopperTiling::of_products() const {
  HopperTiling out = *this;
  if (swap)
    out.bm /= weights, out.warpgroup_rows /= weights, out.m /= weights;
  else
    out.bn /= weights, out.n /= weights;
  out.weights = 1;
  return out;
}

std::vector<Values> HopperTiling::by_weight(const Values& sums) const {
  std::vector<Values> out{size_t(weights)};
  const size_t run =
      swap ? sums.size() / size_t(weights) : size_t(bn / weights / 2); // of one weight, one after the other
  for (size_t i = 0; i < sums.size(); ++i) out[i / run % size_t(weights)].push_back(sums[i]);
  return out;
}

HopperTiling::HopperTiling(const Problem& p, const Config& c)
    : bm(at(c, kBm)), bn(at(c, kBn)), slices(at(c, kSlices)), stages(at(c, kStages)),
      consumers(at(c, kConsumers)), pingpong(at(c, kPingpong) != 0), swap(at(c, kSwap) != 0),
      promote(at(c, kPromote) != 0), cluster_m(at(c, kClusterM)), cluster_n(at(c, kClusterN)),
      cluster_k(at(c, kClusterK)), splits(at(c, kSplits)), stream_k(at(c, kStreamK) != 0),
      group(at(c, kGroup)), dependent(at(c, kPdl) != 0), prefetch(at(c, kPdl) == 2), align_a(at(c, kAlignA)),
      align_b(at(c, kAlignB)), align_d(at(c, kAlignD)), bk_slice(kSliceBytes / size_of(p.a)),
      bk(slices * bk_slice), m(swap ? p.sum_columns() : p.group_rows()),
      n(swap ? p.group_rows() : p.sum_columns()), warpgroup_rows(pingpong ? bm : bm / consumers),
      weights(p.gate ? 2 : 1), tiles_m(ceil_div(m, bm)), tiles_n(ceil_div(n, bn)),
      clusters_m(ceil_div(tiles_m, cluster_m)), clusters_n(ceil_div(tiles_n, cluster_n)),
      tiles_k(ceil_div(p.k, bk)), split_tiles(ceil_div(tiles_k, parts())), threads(128 * (1 + consumers)) {
  const HopperTile a("a", p.a, a_k_major(p), swap ? bn : bm, bk_slice, swap ? cluster_m : cluster_n, 1);
  const int64_t pieces = p.gate ? swap && !pingpong ? 2 * consumers : 2 : 1;
  const HopperTile b("b", p.b, b_k_major(p), swap ? bm : bn, bk_slice, swap ? cluster_n : cluster_m, pieces);
  left = swap ? b : a, right = swap ? a : b;
  stage_bytes = slices * (left.bytes + right.bytes);
  staging = staging_of(p);
  staging_offset = stages * stage_bytes;
  if (cluster_k > 1) {
    partials = {swap ? bn : bm, (swap ? bm : bn) / weights, 0, 0};
    // What a warp writes at a time, and what it reads, falls into different banks.
    partials.pitch = swap ? partials.columns + 4 : round_up(partials.columns, 32) + 8;
    partials.bytes = weights * partials.plane();
  }
  set_buffers(p);
  if (consumers == 2)
    producer_registers = sums() > 128 ? 24 : 40, consumer_registers = sums() > 128 ? 240 : 232;
  if (consumers == 3) producer_registers = 32, consumer_registers = 160;
  pack = GpuPack(p, side(align_a, a_k_major(p), !p.a_transposed()),
                 side(align_b, b_k_major(p), p.b_transposed()),
                 split() ? GpuSplitK(p, splits).workspace() : HopperStreamK::workspace(*this, work(p)));
  mma = {left.type, right.type, p.accumulate, bn, m_tiles(), kSliceBytes};
}

void HopperTiling::check() const {
  for (const HopperTile* tile : {&left, &right})
    if (tile->copied_bytes() != tile->bytes)
      throw Error("no kernel of hopper_ws", "operand " + tile->name,
                  text(tile->share) + " blocks of a cluster cannot share " + text(tile->rows) + " rows of it",
                  "take a legal config: `deepgen space explain --config ...` says what is wrong");
}

std::string HopperWs::why_not(const Problem& p, const std::string& arch) const {
  if (arch != "sm_90a") return "wgmma and TMA stores in this form are Hopper's: arch sm_90a";
  if (p.a == Type::f32 || p.a == Type::f64) return "wgmma does not multiply " + to_string(p.a);
  constexpr int64_t kMost = int64_t(1) << 30;
  if (p.m > kMost || p.n > kMost || p.k > kMost) return "M, N or K exceeds 2^30";
  if ((ceil_div(p.m, 8) + p.groups) * ceil_div(p.n, 8) > kMost / p.batch) return "more than 2^30 tiles";
  return "";
}

std::vector<Parameter> HopperWs::parameters(const Problem& p, const Device&) const {
  std::vector<int64_t> widths;
  for (int64_t n = 8; n <= 256; n += n < 64 ? 8 : 16)
    if (!(p.a == Type::i8 && n > 32 && n % 16)) widths.push_back(n);
  const std::vector<int64_t> promotions = is_fp8(p.a) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
  const std::vector<int64_t> streamed = p.groups ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 1};
  std::vector<int64_t> overlaps = {0, 1};
  if (!p.groups) overlaps.push_back(2); // tiles of groups are not known before the predecessor has ended
  return {
      {"bm", {64, 128, 192, 256}, "rows of a block's tile, of wgmma's M"},
      {"bn", widths, "columns of a block's tile, of wgmma's N", {8, 256, 8}},
      {"slices", {1, 2}, "slices of 128 bytes of K in a stage"},
      {"stages", {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}, "of shared memory", {2, 64}},
      {"consumers", {1, 2, 3}, "warpgroups that multiply"},
      {"pingpong", {0, 1}, "0: consumers share a tile; 1: two consumers take turns with a tile each"},
      {"swap", {0, 1}, "1: the transpose of D is computed, so that N lies along wgmma's M"},
      {"promote", promotions,
       "1: 8-bit floats: the sums of each stage are added in f32, as tensor cores keep fewer bits"},
      {"cluster_m", {1, 2}, "blocks of a cluster along M, which share the tiles of the operand along N"},
      {"cluster_n", {1, 2}, "blocks of a cluster along N, which share the tiles of the operand along M"},
      {"cluster_k", {1, 2, 3, 4, 5, 6, 8}, "blocks of a cluster that share the sum over K of a tile of D"},
      {"splits",
       {1, 2, 3, 4, 5, 6, 8, 12, 16},
       "the same by way of the workspace and another launch",
       {1, 256}},
      {"stream_k", streamed,
       "1: the last wave of tiles and the one before are shared out evenly, parts of tiles of K by way of "
       "the workspace"},
      {"group", {1, 4, 8, 16}, "rows of tiles that are visited together, column by column", {1, 256}},
      {"pdl", overlaps,
       "1: programmatic dependent launch; 2: and the first stages are asked for before it may read them"},
      {"align_a", {dense_a(p)}, "bytes to which rows of A are aligned"},
      {"align_b", {dense_b(p)}, "bytes to which rows of B are aligned"},
      {"align_d", {dense_d(p)}, "bytes to which rows of D (and C, residual, multiplier) are aligned"}};
}

std::string HopperWs::why_illegal(const Problem& problem, const Device& device, const Config& config) const {
  const Problem p = for_rules(problem);
  const Point point{problem, p, device, config};
  for (const Rule& rule : kRules)
    if (rule.broken(point)) return rule.why(point);
  return "";
}

bool HopperWs::dead_end(const Problem& problem, const Device& device, const Config& config,
                        size_t assigned) const {
  const Problem p = for_rules(problem);
  const Point point{problem, p, device, config};
  for (const Rule& rule : kRules)
    if (size_t(rule.after) + 1 == assigned && rule.broken(point)) return true;
  return false;
}

/// What TMA cannot address, mma.sync multiplies.
std::vector<Choice> HopperWs::fallbacks(const Problem& p, const std::string& arch, const Config&) const {
  Config aligned;
  for (const char* name : {"align_a", "align_b", "align_d"}) aligned.set(name, kAlignAB);
  return find_template("mma_sync").fallbacks(p, arch, aligned);
}

int64_t HopperWs::workspace(const Problem& p, const Config& config) const {
  const HopperTiling t(p, config);
  return std::max({t.pack.end(), split_workspace(p, config), HopperStreamK::workspace(t, t.work(p))});
}

Problem HopperWs::awkward(const Problem& p, const Config& config) const {
  const HopperTiling t(p, config);
  const int64_t a = std::max<int64_t>(1, t.align_a / size_of(p.a)),
                b = std::max<int64_t>(1, t.align_b / size_of(p.b)),
                d = std::max<int64_t>(1, t.align_d / size_of(p.d));
  const int64_t m_unit = p.a_transposed() ? a : 1,
                halves = p.gate && !b_k_major(p) ? kAlignAB / size_of(p.b) : 1;
  const int64_t n_unit = std::max({d, halves, p.b_transposed() ? 1 : b});
  Problem small = p;
  shrink_groups(small, (t.swap ? t.bn * t.cluster_n : t.bm * t.cluster_m) + 3 * m_unit);
  small.n = (t.swap ? t.bm * t.cluster_m : t.bn * t.cluster_n) / t.weights + 3 * n_unit;
  const int64_t k_unit = std::max<int64_t>(p.a_transposed() ? 1 : a, p.b_transposed() ? b : 1);
  // Once around the ring of stages and a ragged tile at the end; many splits have less each.
  int64_t each = t.parts() > 4 ? 2 : t.stages + 1;
  if (t.stream_k) { // tiles for one and a half waves, two in a column, or few would be shared; long enough to
                    // be cut
    each = kStreamedTilesK;
    small.n +=
        (ceil_div(kStreamedTiles, 2 * t.cluster() * (p.batch > 1 ? 2 : 1)) - 2) * (small.n - 3 * n_unit);
  }
  const int64_t tiles = t.parts() * each - (t.parts() > 1);
  small.k = (tiles - 1) * t.bk + (t.bk > 3 * k_unit ? 3 * k_unit : k_unit);
  small.batch = p.batch > 1 ? 2 : 1;
  return small;
}

} // namespace deepgen
