#include "templates/nvidia/hopper_attention/hopper_attention.h"

#include "base/text/error.h"
#include "templates/core/cheapest.h"
#include "templates/core/seen_keys.h"
#include "templates/gpu/attention/attention_rules.h"

#include <algorithm>
#include <numeric>

namespace deepgen {
namespace {

enum Index {
  kConsumers,
  kResident,
  kKeys,
  kAhead,
  kStages,
  kPingpong,
  kRescale,
  kSoft,
  kHalfway,
  kPersistent,
  kParameters, ///< that all configs have; others follow where the problem has few rows
  kPromote = kParameters,
  kPack = kParameters,
  kSplits,
  kSwap
};
constexpr std::string_view kNames[] = {"consumers", "resident", "keys", "ahead",   "stages",
                                       "pingpong",  "rescale",  "soft", "halfway", "persistent"};
enum Rescale { kLate, kEarly, kLazy };

constexpr int64_t kFewestKeys = 64;
constexpr int64_t kWarpgroupRows = 64;
constexpr int64_t kSliceBytes = 128;
constexpr int64_t kNarrowStep = 32; ///< keys of a product of 8-bit floats
constexpr int64_t kLift = 8;        ///< powers of two: e4m3 ends at 448, which is
constexpr double kNarrowRise = 0.8; ///< and more powers of two, rounded downwards
constexpr int64_t kNarrowDim = 128; ///< of values whose sums are kept twice, as those of promote=1 are
/// Keys of a sum of 8-bit floats that stays in accumulators. Tensor cores cut it at each 32 of them, by 2^-14
/// of it on average (docs/numerics.md): at most by 2^-4 all together, as weights are rounded.
constexpr int64_t kMostUnpromoted = 32768;
constexpr int64_t kMostDim = 256;      ///< whose sums fit into the registers of a warpgroup
constexpr int64_t kAlign = 16;         ///< bytes, that TMA wants of bases and strides
constexpr int64_t kChains = 4;         ///< which hide each other's latencies
constexpr int64_t kBarriers = 1024;    ///< bytes for all of them
constexpr int64_t kRegisters = 65536;  ///< of a multiprocessor
constexpr int64_t kBesideProduct = 32; ///< registers that ptxas wants beside the sums of one instruction
constexpr int64_t kKept = 1024;        ///< bytes of shared memory that a block takes beside its own
constexpr int64_t kSwappedBeside = 40; ///< registers of addresses and of what is exchanged, swapped
/// Tokens: rows of 128 bytes are swizzled in eights, and where a box begins within eight, the manuals leave
/// open what becomes of it.
constexpr int64_t kLeastPage = 8;

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// One behind those that all configs have.
int64_t later(const Config& config, std::string_view name, int64_t absent) {
  return value_or(config, kParameters, name, absent);
}

/// Whether some call leaves rows of a warpgroup without a query, which other heads could have.
bool may_pack(const Attention& p) { return p.group() > 1 && fewest_tuned_queries(p) < kWarpgroupRows; }

/// Rows of Q that a block has of the tuned call with fewest.
int64_t fewest_rows(const Attention& p, int64_t group) { return fewest_tuned_queries(p) * group; }

/// Whether swapped operands serve it.
bool may_swap(const Attention& p) {
  return size_of(p.kv) == 2 && !p.bias && fewest_rows(p, 1) <= kMostSwappedRows;
}

int64_t rows_of(const Attention& p, const Config& c, int64_t group) {
  if (!later(c, "swap", 0)) return kWarpgroupRows * at(c, kConsumers);
  return round_up(std::min(fewest_rows(p, group), kMostSwappedRows), 8);
}

int64_t group_of(const Attention& p, const Config& c) { return later(c, "pack", 0) ? p.group() : 1; }

struct Point {
  static constexpr const char* processors = "multiprocessors";
  const Attention& p;
  const Device& device;
  const HopperAttentionTiling& t;
  int64_t most_rows() const { return p.at_queries * (may_pack(p) ? p.group() : 1); }
  int64_t tuned_rows() const { return p.at_queries * t.group; }
};

const Rule<Index, Point> kRules[] = {
    {kSwap, [](const Point& x) { return x.t.swap && x.t.narrow; },
     [](const Point&) {
       return std::string("swap=1 of e4m3: wgmma takes no values of 8 bits with columns side by side");
     }},
    {kSwap, [](const Point& x) { return x.t.swap && x.p.bias; },
     [](const Point&) { return std::string("swap=1 with BIAS: its lanes have keys far from each other"); }},
    {kSwap, [](const Point& x) { return x.t.swap && fewest_rows(x.p, x.t.group) > kMostSwappedRows; },
     [](const Point& x) {
       return "swap=1 where a call has " + text(fewest_rows(x.p, x.t.group)) + " rows: it is for at most " +
              text(kMostSwappedRows) + ", as more nearly fill a tile without it";
     }},
    {kConsumers, [](const Point& x) { return x.t.swap && x.t.consumers > 1; },
     [](const Point& x) { return "swap=1 has one consumer, not consumers=" + text(x.t.consumers); }},
    {kKeys, [](const Point& x) { return x.t.swap && x.t.keys % kSwappedKeys != 0; },
     [](const Point& x) {
       return "swap=1 with keys=" + text(x.t.keys) + ": tiles have " + text(kSwappedKeys) + " keys each";
     }},
    {kRescale, [](const Point& x) { return x.t.swap && (x.t.early || x.t.lazy); },
     [](const Point&) { return std::string("swap=1 rescales sums behind their product: rescale=0"); }},
    {kHalfway, [](const Point& x) { return x.t.swap && (x.t.soft || x.t.halfway); },
     [](const Point&) { return std::string("swap=1 has few exponentials to make: soft=0 and halfway=0"); }},
    {kConsumers, [](const Point& x) { return x.t.consumers > 1 && x.t.rows / 2 >= x.most_rows(); },
     [](const Point& x) {
       return "consumers=" + text(x.t.consumers) + " where half of their " + text(x.t.rows) +
              " rows hold all " + text(x.most_rows()) +
              (x.most_rows() > x.p.at_queries ? " rows of the heads of a head of K" : " queries");
     }},
    {kKeys, [](const Point& x) { return x.t.keys > kFewestKeys && x.t.keys / 2 >= x.t.tuned_keys(x.p); },
     [](const Point& x) { return "keys=" + text(x.t.keys) + " where half of it holds all keys already"; }},
    {kResident, [](const Point& x) { return x.t.threads * x.t.resident > 2048; },
     [](const Point& x) {
       return "resident=" + text(x.t.resident) + " blocks of " + text(x.t.threads) +
              " threads are more than the 2048 of a multiprocessor";
     }},
    {kKeys, [](const Point& x) { return x.t.registers + kHopperAttentionSpare > x.t.consumer_registers; },
     [](const Point& x) {
       return "about " + text(x.t.registers) + " registers a thread, and " + text(kHopperAttentionSpare) +
              " to spare, exceed the " + text(x.t.consumer_registers) + " of " + text(x.t.consumers) +
              " consumers of " + text(x.t.resident) + " blocks";
     }},
    {kKeys, [](const Point& x) { return x.t.widest() / 2 + kBesideProduct > x.t.start_registers; },
     [](const Point& x) {
       return "a product of " + text(x.t.widest()) + " columns needs more than the " +
              text(x.t.start_registers) + " registers that " + text(x.t.resident) + " blocks of " +
              text(x.t.threads) + " threads start with";
     }},
    {kStages,
     [](const Point& x) { return x.t.stages > 2 && x.t.keys * (x.t.stages - 1) >= x.t.tuned_span(x.p); },
     [](const Point& x) {
       return "stages=" + text(x.t.stages) + " hold more than the " + text(x.t.tuned_span(x.p)) + " keys";
     }},
    {kStages, [](const Point& x) { return x.t.shared > x.device.shared_block; },
     [](const Point& x) {
       return text(x.t.shared) + " bytes of shared memory exceed the device's " + text(x.device.shared_block);
     }},
    {kStages,
     [](const Point& x) {
       return x.t.resident > 1 && x.t.resident * (x.t.shared + kKept) > x.device.shared_multiprocessor;
     },
     [](const Point& x) {
       return text(x.t.resident) + " blocks of " + text(x.t.shared) +
              " bytes of shared memory exceed a multiprocessor's " + text(x.device.shared_multiprocessor);
     }},
    {kKeys, [](const Point& x) { return x.t.narrow && x.t.keys % kNarrowStep != 0; },
     [](const Point& x) {
       return "keys=" + text(x.t.keys) + " of 8-bit floats are no multiple of " + text(kNarrowStep);
     }},
    {kPromote, [](const Point& x) { return x.t.promoted && !x.t.early; },
     [](const Point&) {
       return std::string("promote=1 rescales sums as products are added to them: rescale=1");
     }},
    {kPromote, [](const Point& x) { return x.t.narrow && !x.t.promoted && x.p.keys > kMostUnpromoted; },
     [](const Point& x) {
       return "promote=0 with " + text(x.p.keys) +
              " keys: tensor cores cut too much of sums over more than " + text(kMostUnpromoted);
     }},
    {kPingpong, [](const Point& x) { return x.t.pingpong && x.t.consumers == 1; },
     [](const Point&) { return std::string("pingpong=1 is for several consumers"); }},
    packs_single_heads<Point>(kPack),
    packs_too_many_rows<Point>(kPack),
    {kPack, [](const Point& x) { return x.t.consumers > 1 && x.t.rows / 2 >= x.tuned_rows(); },
     [](const Point& x) {
       return "consumers=" + text(x.t.consumers) + " and pack=" + text(x.t.pack) +
              " where half of the consumers' " + text(x.t.rows) + " rows hold all " + text(x.tuned_rows());
     }},
    splits_without_keys<Point>(kSplits),
    splits_beyond_use<Point>(kSplits),
};

} // namespace

HopperAttentionTiling::HopperAttentionTiling(const Attention& p, const Config& c)
    : AttentionTile{rows_of(p, c, group_of(p, c)),
                    at(c, kKeys),
                    group_of(p, c),
                    16,
                    later(c, "pack", 0) != 0,
                    kChains,
                    later(c, "splits", 1),
                    most_tokens_split(p),
                    attention_record_head + 4 * round_up(p.value_dim, 8)},
      consumers(at(c, kConsumers)), resident(at(c, kResident)), q_stages(1 + at(c, kAhead)),
      stages(at(c, kStages)), pingpong(at(c, kPingpong) != 0), early(at(c, kRescale) == kEarly),
      halfway(at(c, kHalfway) != 0), persistent(at(c, kPersistent) != 0), swap(later(c, "swap", 0) != 0),
      threads(128 * (1 + consumers)), narrow(is_fp8(p.kv)), promoted(narrow && later(c, "promote", 1)),
      slice(kSliceBytes / size_of(p.kv)), depth_steps(ceil_div(p.head_dim * size_of(p.q), 32)),
      q_slices(ceil_div(p.head_dim, slice)), value_slices(ceil_div(p.value_dim, slice)),
      columns(narrow ? round_up(p.value_dim, 16) : slice * value_slices),
      box(p.paged() ? std::gcd(p.page_size, keys) : keys), q_bytes(q_slices * rows * 128),
      key_bytes(q_slices * keys * 128), value_bytes(value_slices * keys * 128),
      turned_bytes(narrow ? ceil_div(keys, kSliceBytes) * columns * kSliceBytes : 0),
      weight_bytes(swap ? ceil_div(keys, kSwappedKeys) * rows * 128 : 0),
      shared_rows(swap ? 2 * 4 * 4 * rows : 0), keys_offset(q_stages * q_bytes),
      values_offset(keys_offset + stages * key_bytes), turned_offset(values_offset + stages * value_bytes),
      weights_offset(turned_offset + stages * turned_bytes),
      barriers_offset(weights_offset + weight_bytes + shared_rows), shared(barriers_offset + kBarriers),
      weights(keys * size_of(p.kv) / 8), scores{p.q, p.kv, Type::f32, swap ? rows : keys},
      sums{p.kv, p.kv, Type::f32, swap ? rows : columns} {
  // Sums, scores, exponentials of the block before; maxima and sums of rows, addresses.
  registers = columns / 2 * (promoted ? 2 : 1) + keys / 2 + weights + 20;
  // Swapped, no exponentials, but of tiles beside the first ptxas 13.0 holds scores twice where they are
  // capped; of rows also maxima of a block of keys, and factors.
  if (swap)
    registers =
        sum_registers() + (2 * keys / kSwappedKeys - 1) * rows / 2 + 4 * swapped_rows() + kSwappedBeside;
  if (p.bias) registers += keys / 4 + 4;                       // of a row, and where rows begin
  if (narrow && q_stages > 1 && p.mask != AttentionMask::none) // else ptxas 13.0 spills
    registers += p.paged() && p.mask == AttentionMask::window ? 14 : 10;
  lazy = at(c, kRescale) == kLazy, soft = at(c, kSoft);
  if (narrow) lift = kLift, rise = kNarrowRise;
  start_registers = std::min<int64_t>(248, kRegisters / resident / threads / 8 * 8);
  consumer_registers = start_registers;
  if (threads * resident > 256) {
    const int64_t all = start_registers * (1 + consumers);
    // With 24 the producer spills; with 32 where it is one lane, of a window.
    const bool more =
        (consumers == 2 && resident == 1) || (p.mask == AttentionMask::window && !p.varlen && !p.paged());
    producer_registers = more ? 40 : 32;
    consumer_registers = std::min<int64_t>(248, (all - producer_registers) / consumers / 8 * 8);
  }
}

int64_t HopperAttentionTiling::row_blocks(const Attention& p) const {
  return ceil_div(p.queries * group, rows);
}

/// Or Q's packed rows are waited for behind the first values.
int64_t HopperAttention::revision_for(const Attention& p, const Config& config) const {
  return p.paged() || (!p.varlen && later(config, "pack", 0) != 0) ? 4 : revision();
}

std::string HopperAttention::why_not(const Attention& p, const std::string& arch) const {
  if (arch != "sm_90a") return "wgmma and TMA in this form are Hopper's: arch sm_90a";
  if (p.q != p.kv || (p.q != Type::f16 && p.q != Type::bf16 && p.q != Type::e4m3))
    return "Q, K and V are " + to_string(p.q) + " and " + to_string(p.kv) +
           ": wgmma wants TYPES f16 f16, bf16 bf16 or e4m3 e4m3";
  if (const int64_t elements = kAlign / size_of(p.kv); p.head_dim % elements || p.value_dim % elements)
    return "rows of " + text(p.head_dim) + " or " + text(p.value_dim) +
           " elements are no multiples of 16 bytes, which TMA wants: HEAD_DIM in multiples of " +
           text(elements);
  if (p.kv == Type::e4m3 && p.value_dim > kNarrowDim && p.keys > kMostUnpromoted)
    return "values of " + text(p.value_dim) + " elements of e4m3 with " + text(p.keys) +
           " keys: sums over more than " + text(kMostUnpromoted) + " are kept twice, and registers take " +
           text(kNarrowDim) + " elements then; mma_attention serves it";
  if (p.head_dim > kMostDim || p.value_dim > kMostDim)
    return "HEAD_DIM " + text(p.head_dim) + " " + text(p.value_dim) +
           ": a warpgroup has registers and shared memory for at most " + text(kMostDim);
  if (p.paged() && p.page_size < kLeastPage)
    return "pages of " + text(p.page_size) + " tokens: TMA brings boxes of " + text(kLeastPage) +
           " and more, as rows in shared memory are swizzled in eights: PAGED " + text(kLeastPage) +
           " or more; mma_attention serves smaller pages";
  return find_template("mma_attention").why_not(p, arch); // which runs where a call does not lie as TMA wants
}

int64_t HopperAttention::workspace(const Attention& p, const Config& config) const {
  return HopperAttentionTiling(p, config).workspace(p);
}

std::vector<Parameter> HopperAttention::parameters(const Attention& p, const Device&) const {
  std::vector<int64_t> keys = {64, 80, 96, 112, 128, 144, 160, 176, 192, 224};
  if (p.kv == Type::e4m3) keys = {64, 96, 128, 160, 192, 224};
  std::vector<Parameter> list = {
      {"consumers", {1, 2, 3, 4}, "warpgroups of 64 rows of Q each", {1, 4}},
      {"resident", {1, 2}, "blocks that a multiprocessor has room for", {1, 4}},
      {"keys", keys, "keys of a block of keys", {16, 256, 16}},
      {"ahead", {0, 1}, "1: the next rows' Q is brought while consumers are at the present ones"},
      {"stages", {2, 3, 4}, "blocks of keys and values in shared memory", {1, 6}},
      {"pingpong", {0, 1}, "1: consumers start their products in turn"},
      {"rescale",
       {0, 1, 2},
       "sums are rescaled 0: behind their product; 1: while the next scores are made; "
       "2: where a maximum rises by more than 8 powers of two (of 8-bit floats by 0.8)"},
      {"soft", {0, 1}, "exponentials of 8 that are computed by multiplications", {0, 8}},
      {"halfway", {0, 1}, "1: the product before is awaited when half of the exponentials are made"},
      {"persistent", {0, 1}, "1: blocks walk over all rows; 0: a block for each tile of rows"}};
  if (is_fp8(p.kv))
    list.push_back({"promote",
                    {0, 1},
                    "1: the product of each block of keys is one of its own, added to sums in f32",
                    {},
                    1});
  if (may_pack(p))
    list.push_back(
        {"pack", {0, 1}, "1: a block has the rows of all heads of Q that share a head of K", {}, 0});
  if (has_attention_splits(p)) {
    list.push_back(attention_splits(p));
    if (p.splits <= 1) list.back().absent = 1;
  }
  if (may_swap(p)) {
    list[kResident].values = {1, 2, 3, 4};
    list.push_back(
        {"swap", {0, 1}, "1: keys lie along wgmma's 64 rows, and few rows of Q along its columns", {}, 0});
  }
  return list;
}

std::string HopperAttention::why_illegal(const Attention& p, const Device& device,
                                         const Config& config) const {
  const HopperAttentionTiling t(p, config);
  return first_broken(kRules, Point{p, device, t});
}

bool HopperAttention::dead_end(const Attention& p, const Device& device, const Config& config,
                               size_t assigned) const {
  static constexpr int64_t kFirst[] = {1, 1, 64, 0, 2, 0, kLate, 0, 0, 0};
  const bool swap_is_open = may_swap(p) && assigned < config.values.size(); // the last parameter
  Config all = filled<kNames, kFirst>(config, assigned);
  for (size_t i = kParameters; i < assigned; ++i) all.values.push_back(config.values[i]);
  if (is_fp8(p.kv) && assigned <= kPromote) all.values.emplace_back("promote", 0);
  const auto is_broken = [&] {
    const HopperAttentionTiling t(p, all);
    return breaks_any(kRules, Point{p, device, t}, assigned);
  };
  if (!is_broken()) return false;
  if (!swap_is_open) return true;
  all.values.emplace_back("swap", 1);
  return is_broken();
}

/// Calls whose bases or strides are no multiples of 16 bytes.
std::vector<Choice> HopperAttention::fallbacks(const Attention& p, const std::string& arch,
                                               const Config&) const {
  const Template& other = find_template("mma_attention");
  const std::optional<Config> best = cheapest(other, p, generic_gpu(arch));
  if (!best) return {};
  std::vector<Choice> all = other.fallbacks(p, arch, *best);
  if (all.empty()) all.push_back({other.name(), *best});
  for (Choice& choice : all) // no call needs a workspace that the main kernel does not
    for (auto& [name, value] : choice.config.values)
      if (name == "splits" && !p.splits) value = 1;
  return all;
}

/// The same code, in a call that ends within its blocks.
Attention HopperAttention::awkward(const Attention& p, const Config& config) const {
  const HopperAttentionTiling t(p, config);
  if (t.swap) return p.alone(1, fewest_tuned_queries(p), std::min(p.at_keys, (t.stages + 1) * t.keys + 3));
  return p.alone(1, std::min(p.at_queries, t.rows + 3), std::min(p.at_keys, (t.stages + 1) * t.keys + 3));
}

} // namespace deepgen
