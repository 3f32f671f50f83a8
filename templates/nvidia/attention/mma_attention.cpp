#include "templates/nvidia/attention/mma_attention.h"

#include "templates/gpu/attention/attention_rules.h"
#include "templates/gpu/gpu_limits.h"

#include <algorithm>

namespace deepgen {
namespace {

enum Index { kRows, kWarps, kKeys, kStages, kHold, kPack, kAlign, kResident, kSplits, kParameters };
constexpr std::string_view kNames[] = {"rows", "warps", "keys",     "stages", "hold",
                                       "pack", "align", "resident", "splits"};
constexpr int64_t kMostValueDim = 256;  ///< whose sums fit into the registers of a warp with 16 rows
constexpr int64_t kMostEntries = 65535; ///< of a grid along z
/// Registers that the count leaves to ptxas. Of 360 configs in 18 problems for sm_90, ptxas 13.0 spilled
/// almost all that count 240 or more, with 16-byte copies.
constexpr int64_t kSpareRegisters = 20;

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

int64_t splits_of(const Config& config) { return value_or(config, kSplits, kNames[kSplits], 1); }

/// The values that rules look at; of parameters that are not known yet, the first.
struct Point {
  static constexpr const char* processors = "multiprocessors";
  const Attention& p;
  const Device& device;
  const MmaAttentionTiling& t;
  const GpuLimits limits{device.arch};
  int64_t tuned_rows() const { return p.at_queries * t.group; }
  int64_t most_registers() const {
    return std::min(limits.most_registers,
                    limits.registers / (t.threads * t.resident) / limits.granule * limits.granule);
  }
};

const Rule<Index, Point> kRules[] = {
    {kWarps, [](const Point& x) { return x.t.rows % (16 * x.t.warps) != 0; },
     [](const Point& x) {
       return "rows=" + text(x.t.rows) + " are no whole tiles of 16 for each of " + text(x.t.warps) +
              " warps";
     }},
    {kWarps, [](const Point& x) { return x.t.warp_rows > 32; },
     [](const Point& x) {
       return text(x.t.warp_rows) + " rows of a warp: their sums leave no registers for scores";
     }},
    {kWarps, [](const Point& x) { return x.t.rows > 64 && x.t.warps < 4; },
     [](const Point& x) { return text(x.t.warps) + " warps leave schedulers idle"; }},
    {kKeys, [](const Point& x) { return x.t.keys > 32 && x.t.keys / 2 >= x.t.tuned_keys(x.p); },
     [](const Point& x) { return "keys=" + text(x.t.keys) + " where half of it holds all keys already"; }},
    {kStages,
     [](const Point& x) { return x.t.stages > 2 && x.t.keys * (x.t.stages - 1) >= x.t.tuned_span(x.p); },
     [](const Point& x) {
       return "stages=" + text(x.t.stages) + " hold more than the " + text(x.t.tuned_span(x.p)) + " keys";
     }},
    {kStages, [](const Point& x) { return x.t.shared > x.device.shared_block; },
     [](const Point& x) {
       return text(x.t.shared) + " bytes of shared memory exceed the device's " + text(x.device.shared_block);
     }},
    {kHold, [](const Point& x) { return x.t.registers + kSpareRegisters > x.limits.most_registers; },
     [](const Point& x) {
       return "about " + text(x.t.registers) + " registers a thread, and " + text(kSpareRegisters) +
              " to spare, exceed " + text(x.limits.most_registers);
     }},
    packs_single_heads<Point>(kPack),
    packs_too_many_rows<Point>(kPack),
    {kPack, [](const Point& x) { return x.t.rows > 16 && x.t.rows / 2 >= x.tuned_rows(); },
     [](const Point& x) {
       return "rows=" + text(x.t.rows) + " where half of it holds all " + text(x.tuned_rows()) + " rows";
     }},
    {kAlign,
     [](const Point& x) {
       return x.t.align > 2 &&
              ((x.p.head_dim * size_of(x.p.q)) % 16 || (x.p.value_dim * size_of(x.p.kv)) % 16);
     },
     [](const Point& x) {
       return "align=" + text(x.t.align) + " where rows of " + text(x.p.head_dim) + " or " +
              text(x.p.value_dim) + " elements are no whole pieces of 16 bytes";
     }},
    {kAlign, [](const Point& x) { return x.t.align != 16 && x.t.align != size_of(x.p.kv); },
     [](const Point& x) { return "align=" + text(x.t.align) + " is neither 16 bytes nor an element"; }},
    {kAlign, [](const Point& x) { return x.t.align == 16 && x.p.kv == Type::e4m3; },
     [](const Point&) { return std::string("align=16: elements of e4m3 become f16 one by one"); }},
    {kResident,
     [](const Point& x) {
       return x.t.resident > 1 &&
              x.limits.registers / (x.t.threads * x.t.resident) >= x.limits.most_registers;
     },
     [](const Point& x) {
       return "resident=" + text(x.t.resident) + " leaves a thread all " + text(x.limits.most_registers) +
              " registers, as resident=1 does";
     }},
    {kResident,
     [](const Point& x) {
       return x.t.resident > 1 &&
              (x.t.resident * x.t.threads > x.limits.resident || x.t.registers > x.most_registers() ||
               x.t.resident * (x.t.shared + x.limits.kept) > x.device.shared_multiprocessor);
     },
     [](const Point& x) {
       return "a multiprocessor has no room for " + text(x.t.resident) + " blocks of " + text(x.t.threads) +
              " threads with about " + text(x.t.registers) + " registers each and " + text(x.t.shared) +
              " bytes of shared memory";
     }},
    {kSplits,
     [](const Point& x) {
       const auto [first, tokens] = x.t.blocks();
       return x.t.splits * first * ceil_div(x.p.queries, tokens) > INT32_MAX;
     },
     [](const Point& x) { return "splits=" + text(x.t.splits) + " make a grid of more than 2^31 blocks"; }},
    splits_without_keys<Point>(kSplits),
    splits_beyond_use<Point>(kSplits),
};

} // namespace

MmaAttentionTiling::MmaAttentionTiling(const Attention& p, const Config& c)
    : AttentionTile{at(c, kRows),
                    at(c, kKeys),
                    at(c, kPack) ? p.group() : 1,
                    at(c, kRows) / at(c, kWarps),
                    at(c, kPack) != 0,
                    1,
                    splits_of(c),
                    most_tokens_split(p),
                    attention_record_head + 4 * round_up(p.value_dim, 8)},
      warps(at(c, kWarps)), stages(at(c, kStages)), hold(at(c, kHold) != 0), align(at(c, kAlign)),
      resident(at(c, kResident)), threads(32 * warps), depth(round_up(p.head_dim, 16)),
      columns(round_up(p.value_dim, 16)), q(multiplied_as(p.q), true, rows, 2 * depth),
      key(multiplied_as(p.kv), true, keys, 2 * depth), value(multiplied_as(p.kv), false, columns, 2 * keys) {
  stage_bytes = key.bytes() + value.bytes();
  shared = q.bytes() + stages * stage_bytes;
  // Sums and scores; fragments of Q, of keys and values; addresses, bounds, maxima and sums of rows.
  const int64_t fragments = hold ? row_tiles() * depth / 16 * 4 : row_tiles() * 4;
  registers = row_tiles() * (columns + keys) / 2 + fragments + 40 + 8 * row_tiles();
  if (p.bias) registers += keys / 4 + 4 * row_tiles(); // of a row, and where rows begin
}

std::string MmaAttention::why_not(const Attention& p, const std::string& arch) const {
  if (compute_capability(arch) < 80)
    return "mma_attention generates code for NVIDIA GPUs from sm_80 on, not for " + arch;
  if (p.q != p.kv || (p.q != Type::f16 && p.q != Type::bf16 && p.q != Type::e4m3))
    return "mma_attention multiplies f16 by f16 or bf16 by bf16, not " + to_string(p.q) + " by " +
           to_string(p.kv) + ": use TYPES f16 f16, bf16 bf16 or e4m3 e4m3 for GPUs, or ARCHS cpu";
  if (p.value_dim > kMostValueDim)
    return "mma_attention has values of at most " + text(kMostValueDim) + " elements, not " +
           text(p.value_dim) + (p.kv == Type::e4m3 ? ": lower HEAD_DIM" : ": use ARCHS cpu");
  if (const int64_t batch = most_tuned_batch(p); batch > kMostEntries)
    return "a call on a GPU has at most " + text(kMostEntries) + " entries, not " + text(batch) +
           ": lower the batch of TUNE_AT";
  return "";
}

int64_t MmaAttention::workspace(const Attention& p, const Config& config) const {
  return MmaAttentionTiling(p, config).workspace(p);
}

std::vector<Parameter> MmaAttention::parameters(const Attention& p, const Device&) const {
  const int64_t element = size_of(p.kv);
  const bool aligned = p.head_dim % 8 == 0 && p.value_dim % 8 == 0 && p.kv != Type::e4m3;
  const bool grouped = p.group() > 1;
  std::vector<Parameter> list = {
      {"rows", {16, 32, 64, 128}, "rows of Q of a block", {16, 256, 16}},
      {"warps", {1, 2, 4, 8}, "warps that share them", {1, 16, 1, true}},
      {"keys", {32, 48, 64, 96, 128}, "keys of a block of keys", {16, 256, 16}},
      {"stages", {1, 2, 3}, "blocks of keys and values in shared memory", {1, 4}},
      {"hold", {0, 1}, "1: what a warp multiplies of Q stays in registers"},
      {"pack", grouped ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
       "1: a block has the rows of all heads of Q that share a head of K"},
      {"align", aligned ? std::vector<int64_t>{16, element} : std::vector<int64_t>{element},
       "bytes that are copied at once: 16, or " + text(element) + ", an element"},
      {"resident", {1, 2, 3}, "blocks that a multiprocessor must have room for", {1, 8}}};
  if (has_attention_splits(p)) list.push_back(attention_splits(p));
  return list;
}

std::string MmaAttention::why_illegal(const Attention& p, const Device& device, const Config& config) const {
  const MmaAttentionTiling t(p, config);
  return first_broken(kRules, Point{p, device, t});
}

bool MmaAttention::dead_end(const Attention& p, const Device& device, const Config& config,
                            size_t assigned) const {
  static constexpr int64_t kFirst[] = {16, 1, 32, 1, 0, 0, 16, 1, 1};
  const MmaAttentionTiling t(p, filled<kNames, kFirst>(config, assigned));
  return breaks_any(kRules, Point{p, device, t}, assigned);
}

/// Any alignment: elements one by one.
std::vector<Choice> MmaAttention::fallbacks(const Attention& p, const std::string&,
                                            const Config& config) const {
  if (at(config, kAlign) < 16) return {};
  Config narrow = config;
  narrow.set("align", size_of(p.kv)), narrow.set("resident", 1);
  return {{name(), narrow}};
}

/// The same code.
Attention MmaAttention::awkward(const Attention& p, const Config& config) const {
  const MmaAttentionTiling t(p, config);
  return t.awkward(p, t.stages);
}

} // namespace deepgen
