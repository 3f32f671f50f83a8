#include "templates/nvidia/mma_sync/mma_sync.h"

#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/core/sum_order.h"
#include "templates/gpu/gpu_epilogue.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/nvidia/mma_sync/mma_sync_fill.h"

#include <algorithm>

namespace deepgen {
namespace {

enum Index {
  kBm,
  kBn,
  kBk,
  kWarpsM,
  kWarpsN,
  kWarpsK,
  kStages,
  kBlocks,
  kSplits,
  kGroup,
  kPdl,
  kAlignA,
  kAlignB,
  kAlignD,
  kParameters
};
constexpr std::string_view kNames[] = {"bm",      "bn",      "bk",      "warps_m", "warps_n",
                                       "warps_k", "stages",  "blocks",  "splits",  "group",
                                       "pdl",     "align_a", "align_b", "align_d"};

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

int64_t dense_a(const Gemm& p) {
  return dense_alignment(unit_of(p, p.a_transposed() ? Size::m : Size::k), p.a);
}
int64_t dense_b(const Gemm& p) { // each weight's
  return dense_alignment(unit_of(p, p.b_transposed() ? Size::k : Size::n), p.b);
}
int64_t dense_d(const Gemm& p) { return dense_alignment(unit_of(p, Size::n), p.d); }

/// Registers beside sums and fragments that a limit must leave. Of doubles: among 120 random configs near
/// their limit on sm_90a (CUDA 13), ptxas spilled in 33 of 34 that left less than 30, in 15 of 33 that left
/// less than 44, and in 13 of the 53 others.
constexpr int64_t kLeastOthers = 12, kLeastOthersOfDoubles = 44;

/// Rows of 16 of each warp's tile that fit in `bytes` of shared memory at once; at least one.
int64_t staged_tiles(int64_t all, int64_t bytes_each, int64_t bytes) {
  int64_t tiles = all;
  while (tiles > 1 && (all % tiles || tiles * bytes_each > bytes)) --tiles;
  return tiles;
}

/// The values that constraints look at; everything is known from the parameters up to the constraint's own.
struct Point {
  const Gemm& p;
  const Device& device;
  const Config& config;
  int64_t groups = 0; ///< of the problem, which is here the batch that for_rules() makes of it
  [[gnu::always_inline]] int64_t operator[](Index i) const { return at(config, i); }
  int64_t n() const { return p.sum_columns(); }
  int64_t warps() const { return (*this)[kWarpsM] * (*this)[kWarpsN] * (*this)[kWarpsK]; }
  int64_t wm() const { return (*this)[kBm] / (*this)[kWarpsM]; }
  int64_t wn() const { return (*this)[kBn] / (*this)[kWarpsN]; }
  int64_t bk() const { return (*this)[kBk] / size_of(p.a); }
  int64_t tiles_k() const { return ceil_div(p.k, bk()); }
  int64_t split_tiles() const { return ceil_div(tiles_k(), (*this)[kSplits]); }
  int64_t blocks() const { return ceil_div(p.m, (*this)[kBm]) * ceil_div(n(), (*this)[kBn]) * p.batch; }
  int64_t step_bytes() const { return MmaShape(p.a, p.b, device.compute_capability()).bytes; }
  int64_t accumulators() const { return wm() * wn() / 32 * (p.a == Type::f64 ? 2 : 1); }
  int64_t stage_bytes() const { return ((*this)[kBm] + (*this)[kBn]) * (*this)[kBk]; }
  MmaTiling tiling() const { return MmaTiling(p, device.compute_capability(), config); }
  int64_t weights() const { return p.gate ? 2 : 1; }
  bool one_tile() const { return tiles_k() == 1 && !p.ranged(Size::k); } ///< at every call
};

const Rule<Index, Point> kRules[] = {
    {kBm, [](const Point& x) { return x[kBm] > 16 && x[kBm] / 2 >= x.p.m; },
     [](const Point& x) { return "half of bm=" + text(x[kBm]) + " already covers M"; }},
    {kBn, [](const Point& x) { return x[kBn] > 16 && x[kBn] / 2 >= x.n(); },
     [](const Point& x) { return "half of bn=" + text(x[kBn]) + " already covers N"; }},
    {kBn, [](const Point& x) { return x[kBm] * x[kBn] > 256 * 128; },
     [](const Point& x) { return "bm*bn=" + text(x[kBm] * x[kBn]) + " accumulators exceed 32768"; }},
    {kBk, [](const Point& x) { return x[kBk] > 64 && x[kBk] / 2 >= x.p.k * size_of(x.p.a); },
     [](const Point& x) { return "half of bk=" + text(x[kBk]) + " bytes already covers K"; }},
    {kBk, [](const Point& x) { return 2 * x.stage_bytes() > x.device.shared_block && !x.one_tile(); },
     [](const Point& x) {
       return "two stages of (bm+bn)*bk=" + text(x.stage_bytes()) + " bytes exceed the " +
              text(x.device.shared_block) + " bytes of shared memory of a block";
     }},
    {kWarpsM, [](const Point& x) { return x[kBm] % (16 * x[kWarpsM]) != 0; },
     [](const Point& x) {
       return "bm=" + text(x[kBm]) + " is not a multiple of 16 rows for each of warps_m";
     }},
    {kWarpsN,
     [](const Point& x) {
       const int64_t unit = size_of(x.p.b) == 1 && !x.p.b_transposed() ? 16 : 8;
       return x[kBn] % (unit * x[kWarpsN] * x.weights()) != 0;
     },
     [](const Point& x) {
       return "bn=" + text(x[kBn]) +
              " is not a multiple of 8 columns (8-bit elements along N: 16) for each of warps_n" +
              (x.p.gate ? " and each weight" : "");
     }},
    {kWarpsN, [](const Point& x) { return x.wm() > 128 || x.wn() > 128 || x.accumulators() > 128; },
     [](const Point& x) {
       return "a warp's tile of " + text(x.wm()) + " x " + text(x.wn()) +
              " has more than 128 accumulator registers a lane";
     }},
    // Each fragment that a warp loads should serve several multiplications.
    {kWarpsN, [](const Point& x) { return x.wm() > 4 * x.wn() || (x.wn() > 4 * x.wm() && x.wm() > 16); },
     [](const Point& x) {
       return "a warp's tile of " + text(x.wm()) + " x " + text(x.wn()) + " is too oblong";
     }},
    {kWarpsK, [](const Point& x) { return x[kBk] / x.step_bytes() % x[kWarpsK] != 0; },
     [](const Point& x) {
       return "bk=" + text(x[kBk]) + " bytes are not whole steps of " + text(x.step_bytes()) +
              " for each of warps_k";
     }},
    {kWarpsK, [](const Point& x) { return x[kWarpsK] > 1 && x.tiles_k() < 4; },
     [](const Point&) { return std::string("warps_k pays for 4 tiles of K and more"); }},
    {kWarpsK, [](const Point& x) { return x.warps() > 16 || (x.warps() < 4 && x[kBm] * x[kBn] >= 64 * 32); },
     [](const Point& x) { return text(x.warps()) + " warps: a tile of this size wants 4 to 16"; }},
    {kWarpsK, [](const Point& x) { return x.warps() * 32 * (x.accumulators() + 40) > 65536; },
     [](const Point& x) {
       return text(x.warps()) + " warps with these accumulators exceed the register file";
     }},
    {kStages,
     [](const Point& x) { return x[kStages] * x.stage_bytes() > x.device.shared_block && !x.one_tile(); },
     [](const Point& x) {
       return "stages*(bm+bn)*bk=" + text(x[kStages] * x.stage_bytes()) + " bytes exceed the " +
              text(x.device.shared_block) + " bytes of shared memory of a block";
     }},
    {kStages, [](const Point& x) { return x[kStages] > 2 && x[kStages] > x.tiles_k() + 1; },
     [](const Point& x) { return "stages=" + text(x[kStages]) + " exceeds the tiles of K"; }},
    {kStages,
     [](const Point& x) {
       return x[kStages] > 2 && TileFill::through_registers(dense_a(x.p)) &&
              TileFill::through_registers(dense_b(x.p));
     },
     [](const Point&) {
       return std::string("both operands pass through registers, one tile ahead: two stages are enough");
     }},
    {kSplits,
     [](const Point& x) {
       return x[kSplits] > 1 && (x.split_tiles() < 4 || x.blocks() * x[kSplits] > 4 * x.device.cores);
     },
     [](const Point&) {
       return std::string("splits pay for fewer blocks than multiprocessors, and for 4 tiles of K each");
     }},
    {kSplits, [](const Point& x) { return x.groups && x[kSplits] > 1; },
     [](const Point&) { return std::string("the sums of groups are not split"); }},
    {kSplits, [](const Point& x) { return x.p.gate && x[kWarpsK] > 1 && x[kSplits] == 1; },
     [](const Point&) { return std::string("a gate needs whole sums in registers: warps_k=1, or splits"); }},
    {kBlocks,
     [](const Point& x) { return x[kBlocks] > 1 && x.blocks() <= (x[kBlocks] - 1) * x.device.cores; },
     [](const Point& x) { return "there are no blocks=" + text(x[kBlocks]) + " for each multiprocessor"; }},
    {kBlocks,
     [](const Point& x) {
       return x[kBlocks] > 1 && (x[kBlocks] * x.warps() > 48 || x[kBlocks] * x.warps() < 8);
     },
     [](const Point& x) { return text(x[kBlocks] * x.warps()) + " warps: 8 to 48 are worth a limit"; }},
    {kSplits, [](const Point& x) { return x[kStages] > 2 && x[kStages] > x.split_tiles() + 1; },
     [](const Point& x) { return "stages=" + text(x[kStages]) + " exceeds the tiles of K of a split"; }},
    {kGroup, [](const Point& x) { return x.groups && x[kGroup] > 1; },
     [](const Point&) { return std::string("tiles are visited group of rows by group of rows: group=1"); }},
    {kPdl, [](const Point& x) { return x[kPdl] == 2 && std::min(dense_a(x.p), dense_b(x.p)) < 16; },
     [](const Point&) {
       return std::string("pdl=2 asks for as many lines as there are copies: it pays for those of 16 bytes");
     }},
    {kGroup, [](const Point& x) { return has_smaller_group(x[kGroup], ceil_div(x.p.m, x[kBm])); },
     [](const Point& x) {
       return "a smaller group than " + text(x[kGroup]) + " already covers the rows of tiles";
     }},
    {kAlignA, [](const Point& x) { return x[kAlignA] > dense_a(x.p); },
     [](const Point& x) {
       return "align_a=" + text(x[kAlignA]) + ", but rows of A are aligned to " + text(dense_a(x.p));
     }},
    {kAlignB, [](const Point& x) { return x[kAlignB] > dense_b(x.p); },
     [](const Point& x) {
       return "align_b=" + text(x[kAlignB]) + ", but rows of B are aligned to " + text(dense_b(x.p));
     }},
    {kAlignD, [](const Point& x) { return x[kAlignD] > dense_d(x.p); },
     [](const Point& x) {
       return "align_d=" + text(x[kAlignD]) + ", but rows of D are aligned to " + text(dense_d(x.p));
     }},
    {kAlignD,
     [](const Point& x) {
       const MmaTiling t = x.tiling();
       return t.registers > 255 || t.least_registers * t.threads > 65536;
     },
     [](const Point& x) {
       const MmaTiling t = x.tiling();
       return "about " + text(t.registers) + " registers are needed, at least " + text(t.least_registers) +
              ", but " + text(t.threads) + " threads have " +
              text(std::min<int64_t>(255, 65536 / t.threads)) + " each";
     }},
    {kAlignD,
     [](const Point& x) {
       const MmaTiling t = x.tiling();
       return t.resident > 1 && (t.resident * (t.shared + 1024) > x.device.shared_multiprocessor ||
                                 t.resident * t.threads * t.least_registers > 65536);
     },
     [](const Point& x) {
       return "registers or shared memory of a multiprocessor do not hold blocks=" + text(x[kBlocks]);
     }},
    {kAlignD, [](const Point& x) { return x.tiling().shared > x.device.shared_block; },
     [](const Point& x) {
       return text(x.tiling().shared) + " bytes of shared memory, but a block has " +
              text(x.device.shared_block);
     }},
};

} // namespace

MmaTiling::MmaTiling(const Gemm& p, int64_t capability, const Config& c)
    : bm(at(c, kBm)), bn(at(c, kBn)), bk_bytes(at(c, kBk)), warps_m(at(c, kWarpsM)), warps_n(at(c, kWarpsN)),
      k_warps(at(c, kWarpsK)), stages(at(c, kStages)), resident(at(c, kBlocks)), splits(at(c, kSplits)),
      group(at(c, kGroup)), dependent(at(c, kPdl) != 0), prefetch(at(c, kPdl) == 2), align_a(at(c, kAlignA)),
      align_b(at(c, kAlignB)), align_d(at(c, kAlignD)), shape(p.a, p.b, capability),
      bk(bk_bytes / size_of(p.a)), wm(bm / warps_m), wn(bn / warps_n),
      threads(32 * warps_m * warps_n * k_warps), steps(bk_bytes / shape.bytes / k_warps),
      tiles_m(ceil_div(p.m, bm)), tiles_n(ceil_div(p.sum_columns(), bn)), tiles_k(ceil_div(p.k, bk)),
      split_tiles(ceil_div(tiles_k, splits)), weights(p.gate ? 2 : 1), columns(bn / weights),
      warp_columns(wn / weights), a(p.a, !p.a_transposed(), bm, bk_bytes),
      b(p.b, p.b_transposed(), columns, bk_bytes), stage_bytes(a.bytes() + weights * b.bytes()),
      ring(split_tiles == 1 && !p.ranged(Size::k) ? 1 : stages) {
  accumulator_bytes = shape.doubles ? 8 : 4;
  by_warps = k_warps == 1 && !GpuEpilogue::reads_matrices(p) && a.load != FragmentLoad::matrix_bytes &&
             b.load != FragmentLoad::matrix_bytes;
  // Rows that a warp writes at once fall into different banks.
  warp_pitch =
      by_warps && !split() && size_of(p.d) < 4 ? ceil_div(warp_columns * size_of(p.d), 16) * 16 + 16 : 0;
  staging_pitch = columns + 8; // as above: a multiple of 32 words (doubles: 16) and 8
  const int64_t row_tiles =
      by_warps ? threads / 32 * 16 * warp_pitch : k_warps * warps_m * 16 * staging_pitch * accumulator_bytes;
  constexpr int64_t kSmall = 20 << 10; // shared memory that does not limit how many blocks run at once
  pass_tiles = staged_tiles(wm / 16, row_tiles, std::max(ring * stage_bytes, kSmall));
  staging_rows = warps_m * 16 * pass_tiles;
  shared = std::max(ring * stage_bytes, pass_tiles * row_tiles);
  vector = std::clamp<int64_t>(align_d / size_of(p.d), 1, 8);
  const int64_t words = shape.doubles ? 2 : 1;
  const int64_t fragments = words * (wm / 16 * shape.a_values + wn / 8 * shape.b_values);
  const int64_t products = p.gate ? 24 : 0; // of a gate, beside the sums
  registers = words * wm * wn / 32 + (shape.doubles ? 1 : 2) * fragments + 44 + products;
  least_registers =
      words * wm * wn / 32 + fragments + products + (shape.doubles ? kLeastOthersOfDoubles : kLeastOthers);
  for (auto [tile, align] : {std::pair{&a, align_a}, {&b, align_b}}) {
    int64_t fill = TileFill::in_flight(*tile, threads, align);
    fill += TileFill::for_addresses(*tile, threads, align, tile == &a ? align_b : align_a);
    if (tile->load == FragmentLoad::matrix_bytes) fill += 24; // pairs of bytes before they are permuted
    if (tile == &b) fill *= weights;
    registers += fill + (tile->k_contiguous ? steps : wn / 16);
    least_registers += fill;
  }
  // ptxas loads them for more than one step ahead, where there are several.
  if (a.load == FragmentLoad::matrix_bytes && b.load == FragmentLoad::matrix_bytes)
    registers += std::clamp<int64_t>(steps - 2, 0, 2) * fragments;
}

std::string MmaSync::why_not(const Gemm& p, const std::string& arch) const {
  const int64_t capability = compute_capability(arch);
  if (capability < 80) return "mma.sync with cp.async needs sm_80 or later";
  if (p.a == Type::f32) return "tensor cores do not multiply f32 (tf32 does, with 11 significant bits)";
  if (p.a == Type::u8) return "mma_sync does not multiply u8";
  if (is_fp8(p.a) && capability < 89) return "tensor cores multiply 8-bit floats from sm_89 on";
  constexpr int64_t kMost = int64_t(1) << 30;
  if (p.m > kMost || p.n > kMost || p.k > kMost) return "M, N or K exceeds 2^30";
  if ((ceil_div(p.m, 16) + p.groups) * ceil_div(p.n, 16) > kMost / p.batch) return "more than 2^30 tiles";
  return "";
}

std::vector<Parameter> MmaSync::parameters(const Gemm& p, const Device& device) const {
  std::vector<int64_t> pdl = {0};
  if (device.compute_capability() >= 90) pdl.push_back(1);
  if (device.compute_capability() >= 90 && !p.groups) pdl.push_back(2); // tiles of groups are known too late
  return {
      {"bm", {16, 32, 64, 96, 128, 256}, "rows of a block's tile of D", {16, 256, 16}},
      {"bn", {16, 32, 48, 64, 96, 128, 192, 256}, "columns of a block's tile of D", {16, 256, 16}},
      {"bk", {64, 128, 256}, "depth of a tile, in bytes of K"},
      {"warps_m", {1, 2, 4}, "warps along M", {1, 16, 1, true}},
      {"warps_n", {1, 2, 4, 8}, "warps along N", {1, 16, 1, true}},
      {"warps_k",
       {1, 2, 4},
       "warps that share the depth of a tile; their sums are added at the end",
       {1, 16, 1, true}},
      {"stages", {2, 3, 4, 5, 6, 8}, "tiles of A and B in shared memory", {2, 16}},
      {"blocks", {1, 2, 3, 4, 5, 6, 8}, "blocks of a multiprocessor that registers are limited for", {1, 16}},
      {"splits",
       {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64},
       "blocks that share the sum over K of a tile of D",
       {1, 256}},
      {"group", {1, 4, 8, 16}, "rows of tiles that are visited together, column by column", {1, 256}},
      {"pdl", pdl,
       "1: programmatic dependent launch; 2: and the first tiles are asked for before they may be read"},
      {"align_a", {dense_a(p)}, "bytes to which rows of A are aligned"},
      {"align_b", {dense_b(p)}, "bytes to which rows of B are aligned"},
      {"align_d", {dense_d(p)}, "bytes to which rows of D (and C, residual, multiplier) are aligned"}};
}

std::string MmaSync::why_illegal(const Gemm& problem, const Device& device, const Config& config) const {
  const Ungrouped ungrouped(problem, for_rules);
  const Gemm& p = ungrouped.problem();
  const Point point{p, device, config, problem.groups};
  return first_broken(kRules, point);
}

bool MmaSync::dead_end(const Gemm& problem, const Device& device, const Config& config,
                       size_t assigned) const {
  const Ungrouped ungrouped(problem, for_rules);
  const Gemm& p = ungrouped.problem();
  const Point point{p, device, config, problem.groups};
  return breaks_newly(kRules, point, assigned);
}

std::string MmaSync::sum_order(const Gemm& p, const std::string& arch, const Config& config) const {
  if (sums_are_exact(p)) return kExactSums;
  const MmaTiling t(p, compute_capability(arch), config);
  return "mma.sync in the order of K" +
         (t.k_warps > 1 ? ", warps_k=" + text(t.k_warps) + " of each tile of " + text(t.bk) : "") +
         parts_in_turn("splits", t.splits, t.bk);
}

std::vector<Choice> MmaSync::fallbacks(const Gemm& p, const std::string&, const Config& config) const {
  if (at(config, kAlignA) == size_of(p.a) && at(config, kAlignB) == size_of(p.b) &&
      at(config, kAlignD) == size_of(p.d))
    return {};
  const bool flat = p.group_rows() <= 16;
  const int64_t values[] = {
      flat ? 16 : 64, 64,           64,          flat ? 1 : 2, flat && !p.gate ? 4 : 2, 1, 2, 1, 1, 1, 0,
      size_of(p.a),   size_of(p.b), size_of(p.d)};
  Config generic;
  for (int i = 0; i < kParameters; ++i) generic.set(std::string(kNames[i]), values[i]);
  if (p.batch_invariant && !sums_are_exact(p)) // in the same order
    for (Index i : {kBk, kWarpsK, kSplits}) generic.set(std::string(kNames[i]), at(config, i));
  return {{name(), generic}};
}

int64_t MmaSync::revision_for(const Gemm& p, const Config& config) const {
  if (p.a == Type::f64) return 2;
  const bool by_warps = value_or(config, 0, "warps_k", 1) == 1 && value_or(config, 0, "splits", 1) == 1;
  return by_warps && !p.gate && p.accumulate == Type::f32 ? 2 : revision();
}

int64_t MmaSync::workspace(const Gemm& p, const Config& config) const { return split_workspace(p, config); }

Gemm MmaSync::awkward(const Gemm& p, const Config& config) const {
  const MmaTiling t(p, 90, config);
  const int64_t a = t.align_a / size_of(p.a), b = t.align_b / size_of(p.b), d = t.align_d / size_of(p.d);
  Gemm small = p;
  shrink_groups(small, t.bm + 3 * std::max<int64_t>(1, p.a_transposed() ? a : 1));
  small.n = t.columns + 3 * std::max<int64_t>({1, d, p.b_transposed() ? 1 : b});
  const int64_t unit = std::max<int64_t>({1, p.a_transposed() ? 1 : a, p.b_transposed() ? b : 1});
  // Once around the ring of stages and a ragged tile at the end; many splits have less each.
  const int64_t each = t.split_tiles == 1 ? 1 : t.splits > 4 ? 2 : t.stages + 1;
  const int64_t tiles = t.splits * each - (each > 1); // the last split has one less
  small.k = (tiles - 1) * t.bk + (t.bk > 3 * unit ? 3 * unit : unit);
  small.batch = p.batch > 1 ? 2 : 1;
  shrink_ranges(small);
  return small;
}

} // namespace deepgen
