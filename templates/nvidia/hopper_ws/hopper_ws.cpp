#include "templates/nvidia/hopper_ws/hopper_ws.h"

#include "base/text/error.h"
#include "templates/core/sum_order.h"
#include "templates/gpu/gpu_epilogue.h"
#include "templates/nvidia/hopper_ws/hopper_ws_config.h"
#include "templates/nvidia/hopper_ws/hopper_ws_edge.h"
#include "templates/nvidia/hopper_ws/hopper_ws_groups.h"
#include "templates/nvidia/hopper_ws/hopper_ws_store.h"
#include "templates/nvidia/hopper_ws/hopper_ws_stream.h"

#include <algorithm>

namespace deepgen {

using namespace hopper;

/// Of the awkward shape with stream_k, on a device of about 132 multiprocessors: one and a half waves, or two
/// and a half, so that a whole tile is in front of parts.
constexpr int64_t kStreamedTiles = 198, kStreamedBehindWhole = 330, kStreamedTilesK = 12;

int64_t epilogue_length(const Gemm& p) {
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

HopperTile::HopperTile(char letter, Type type, bool k_major, int64_t rows, int64_t bk, int64_t share,
                       int64_t pieces)
    : letter(letter), type(type), k_major(k_major), rows(rows), pieces(pieces), share(share),
      bytes(rows * kSliceBytes) {
  if (k_major) {
    box_columns = bk, box_rows = part_rows();
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

HopperTiling::HopperTiling(const Gemm& p, const Config& c)
    : bm(at(c, kBm)), bn(at(c, kBn)), slices(at(c, kSlices)), stages(at(c, kStages)),
      consumers(at(c, kConsumers)), pingpong(at(c, kPingpong) != 0), swap(at(c, kSwap) != 0),
      promote(at(c, kPromote) != 0), cluster_m(at(c, kClusterM)), cluster_n(at(c, kClusterN)),
      cluster_k(at(c, kClusterK)), splits(at(c, kSplits)), stream_k(at(c, kStreamK) != 0),
      whole_first(at(c, kStreamK) == 2), group(at(c, kGroup)), dependent(at(c, kPdl) != 0),
      prefetch(at(c, kPdl) == 2), align_a(at(c, kAlignA)), align_b(at(c, kAlignB)), align_d(at(c, kAlignD)),
      bk_slice(kSliceBytes / size_of(p.a)), bk(slices * bk_slice), m(swap ? p.sum_columns() : p.group_rows()),
      n(swap ? p.group_rows() : p.sum_columns()), warpgroup_rows(pingpong ? bm : bm / consumers),
      weights(p.gate ? 2 : 1), tiles_m(ceil_div(m, bm)), tiles_n(ceil_div(n, bn)),
      clusters_m(ceil_div(tiles_m, cluster_m)), clusters_n(ceil_div(tiles_n, cluster_n)),
      tiles_k(ceil_div(p.k, bk)), split_tiles(ceil_div(tiles_k, parts())), threads(128 * (1 + consumers)) {
  const HopperTile a('a', p.a, a_k_major(p), swap ? bn : bm, bk_slice, swap ? cluster_m : cluster_n, 1);
  const int64_t pieces = p.gate ? swap && !pingpong ? 2 * consumers : 2 : 1;
  const HopperTile b('b', p.b, b_k_major(p), swap ? bm : bn, bk_slice, swap ? cluster_n : cluster_m, pieces);
  left = swap ? b : a, right = swap ? a : b;
  set_edges(p);
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

void HopperTiling::set_edges(const Gemm& p) {
  const auto set = [&](HopperTile& tile, int64_t along) {
    const HopperEdge::Tiles tiles{tile.rows, tile.share, along};
    tile.edge_rows = HopperEdge::box_rows(p, tile.is_a(), tiles);
    tile.edge_skips = tile.edge_rows && HopperEdge::skips_parts(p, tile.is_a(), tiles);
  };
  set(left, cluster_m);
  set(right, cluster_n);
}

void HopperTiling::check() const {
  for (const HopperTile* tile : {&left, &right})
    if (tile->copied_bytes() != tile->bytes)
      throw Error("no kernel of hopper_ws", "operand " + tile->name(),
                  text(tile->share) + " blocks of a cluster cannot share " + text(tile->rows) + " rows of it",
                  "take a legal config: `deepgen space explain --config ...` says what is wrong");
  if (pack.end() > kMostCopied)
    throw Error("no kernel of hopper_ws", "a workspace of " + text(pack.end()) + " bytes",
                "copies of operands of the largest call exceed 16 GiB", "take a smaller range");
}

std::string HopperWs::why_not(const Gemm& p, const std::string& arch) const {
  if (arch != "sm_90a") return "wgmma and TMA stores in this form are Hopper's: arch sm_90a";
  if (p.a == Type::f32 || p.a == Type::f64 || p.a == Type::u8)
    return "wgmma does not multiply " + to_string(p.a);
  constexpr int64_t kMost = int64_t(1) << 30;
  if (p.m > kMost || p.n > kMost || p.k > kMost) return "M, N or K exceeds 2^30";
  if ((ceil_div(p.m, 8) + p.groups) * ceil_div(p.n, 8) > kMost / p.batch) return "more than 2^30 tiles";
  return "";
}

std::vector<Parameter> HopperWs::parameters(const Gemm& p, const Device&) const {
  std::vector<int64_t> widths;
  for (int64_t n = 8; n <= 256; n += n < 64 ? 8 : 16)
    if (!(p.a == Type::i8 && n > 32 && n % 16)) widths.push_back(n);
  if (p.m > kAnyWidth && p.m <= kMostSwapped) // with swap, tiles of these end with M
    for (int64_t tiles = ceil_div(p.m, 256); p.m > 64 * tiles; ++tiles)
      if (const int64_t n = tight_width(p, ceil_div(p.m, tiles)); n % 16) widths.push_back(n);
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  const std::vector<int64_t> promotions = is_fp8(p.a) ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
  const std::vector<int64_t> streamed = p.groups ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 2};
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
      {"stream_k",
       streamed,
       "2: the last wave of tiles and the one before are shared out evenly, parts of tiles of K by way of "
       "the workspace; 1: the same, and blocks begin with parts, as all did before version 0.2",
       {0, 2}},
      {"group", {1, 4, 8, 16}, "rows of tiles that are visited together, column by column", {1, 256}},
      {"pdl", overlaps,
       "1: programmatic dependent launch; 2: and the first stages are asked for before it may read them"},
      {"align_a", {dense_a(p)}, "bytes to which rows of A are aligned"},
      {"align_b", {dense_b(p)}, "bytes to which rows of B are aligned"},
      {"align_d", {dense_d(p)}, "bytes to which rows of D (and C, residual, multiplier) are aligned"}};
}

/// What TMA cannot address, mma.sync multiplies.
/// wgmma makes the same sums of both operands, whichever comes first (swap), and for any number of columns.
std::string HopperWs::sum_order(const Gemm& p, const std::string&, const Config& config) const {
  if (sums_are_exact(p)) return kExactSums;
  const HopperTiling t(p, config);
  return "wgmma in the order of K" + (t.promote ? ", added up by tiles of " + text(t.bk) : "") +
         parts_in_turn("splits", t.splits, t.bk) + parts_in_turn("cluster_k", t.cluster_k, t.bk);
}

std::vector<Choice> HopperWs::fallbacks(const Gemm& p, const std::string& arch, const Config&) const {
  if (p.batch_invariant && !sums_are_exact(p)) return {}; // mma.sync adds up in another order
  Config aligned;
  for (const char* name : {"align_a", "align_b", "align_d"}) aligned.set(name, kAlignAB);
  return find_template("mma_sync").fallbacks(p, arch, aligned);
}

int64_t HopperWs::workspace(const Gemm& p, const Config& config) const {
  const HopperTiling t(p, config);
  return std::max({t.pack.end(), split_workspace(p, config), HopperStreamK::workspace(t, t.work(p))});
}

namespace {

/// HopperTiling::one_tile of a config that need not be a legal one.
bool may_have_one_tile(const Gemm& p, llvm::function_ref<int64_t(std::string_view)> value) {
  const int64_t cluster_m = value("cluster_m"), cluster_n = value("cluster_n"), m = p.group_rows(),
                n = p.sum_columns();
  const bool swap = value("swap") != 0;
  if (cluster_m < 1 || cluster_n < 1 || cluster_m * cluster_n > most_blocks_of_one_tile) return false;
  if (p.groups || p.ranged() || value("stream_k") || value("splits") != 1 || value("cluster_k") != 1)
    return false;
  return ceil_div(swap ? n : m, value("bm") * cluster_m) * ceil_div(swap ? m : n, value("bn") * cluster_n) *
             p.batch * cluster_m * cluster_n <=
         most_blocks_of_one_tile;
}

} // namespace

int64_t HopperWs::revision_for(const Gemm& p, const Config& config) const {
  const auto value = [&](std::string_view name) { return value_or(config, 0, name, 0); };
  const int64_t bm = value("bm"), bn = value("bn"), consumers = value("pingpong") ? 1 : value("consumers");
  const bool exists = bm > 0 && bm <= 256 && bn > 0 && bn <= 256 && consumers > 0;
  if (exists && may_have_one_tile(p, value)) return 9;
  if (exists && HopperStore::forgets_addresses(p, bm / 64 / consumers * bn / 2, value("swap") != 0)) return 8;
  for (const auto& [name, value] : config.values)
    if (name.starts_with("cluster_") && value > 1) return 7;
  return revision();
}

Gemm HopperWs::awkward(const Gemm& p, const Config& config) const {
  const HopperTiling t(p, config);
  const int64_t a = std::max<int64_t>(1, t.align_a / size_of(p.a)),
                b = std::max<int64_t>(1, t.align_b / size_of(p.b)),
                d = std::max<int64_t>(1, t.align_d / size_of(p.d));
  const int64_t m_unit = p.a_transposed() ? a : 1,
                halves = p.gate && !b_k_major(p) ? kAlignAB / size_of(p.b) : 1;
  const int64_t n_unit = std::max({d, halves, p.b_transposed() ? 1 : b});
  Gemm small = p;
  shrink_groups(small, (t.swap ? t.bn * t.cluster_n : t.bm * t.cluster_m) + 3 * m_unit);
  small.n = (t.swap ? t.bm * t.cluster_m : t.bn * t.cluster_n) / t.weights + 3 * n_unit;
  const int64_t k_unit = std::max<int64_t>(p.a_transposed() ? 1 : a, p.b_transposed() ? b : 1);
  // Once around the ring of stages and a ragged tile at the end; many splits have less each.
  int64_t each = t.parts() > 4 ? 2 : t.stages + 1;
  if (t.stream_k) { // two tiles in a column, or few would be shared; long enough to be cut
    const int64_t streamed = t.whole_first ? kStreamedBehindWhole : kStreamedTiles;
    each = kStreamedTilesK;
    small.n += (ceil_div(streamed, 2 * t.cluster() * (p.batch > 1 ? 2 : 1)) - 2) * (small.n - 3 * n_unit);
  }
  const int64_t tiles = t.parts() * each - (t.parts() > 1);
  small.k = (tiles - 1) * t.bk + (t.bk > 3 * k_unit ? 3 * k_unit : k_unit);
  small.batch = p.batch > 1 ? 2 : 1;
  shrink_ranges(small);
  return small;
}

} // namespace deepgen
