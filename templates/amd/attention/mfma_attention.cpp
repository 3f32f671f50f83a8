#include "templates/amd/attention/mfma_attention.h"

#include "templates/gpu/attention/attention_rules.h"
#include "templates/gpu/gpu_limits.h"

#include <algorithm>

namespace deepgen {
namespace {

enum Index { kRows, kWaves, kKeys, kStages, kPack, kResident, kSplits, kParameters };
constexpr std::string_view kNames[] = {"rows", "waves", "keys", "stages", "pack", "resident", "splits"};
constexpr int64_t kMostValueDim = 256;       ///< whose sums fit into the registers of a wave with 16 rows
constexpr int64_t kMostEntries = 65535;      ///< of a grid along z
constexpr int64_t kMostThreads = UINT32_MAX; ///< of a grid along x: HIP counts it in threads
/// Registers that the count leaves to LLVM.
constexpr int64_t kSpareRegisters = 12;

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

int64_t splits_of(const Config& config) {
  return config.values.size() > kSplits ? value_at(config, kSplits, kNames[kSplits]) : 1;
}

/// The values that rules look at; of parameters that are not known yet, the first.
struct Point {
  static constexpr const char* processors = "compute units";
  const Attention& p;
  const Device& device;
  const MfmaAttentionTiling& t;
  const GpuLimits limits{device.arch};
  int64_t grid_threads() const {
    const auto [first, tokens] = t.blocks();
    return t.splits * first * ceil_div(p.queries, tokens) * t.threads;
  }
  int64_t tuned_rows() const { return p.at_queries * t.group; }
  int64_t most_registers() const {
    return std::min(limits.most_registers,
                    limits.registers / (t.threads * t.resident) / limits.granule * limits.granule);
  }
};

const Rule<Index, Point> kRules[] = {
    {kWaves, [](const Point& x) { return x.t.rows % (16 * x.t.waves) != 0; },
     [](const Point& x) {
       return "rows=" + text(x.t.rows) + " are no whole tiles of 16 for each of " + text(x.t.waves) +
              " waves";
     }},
    {kWaves, [](const Point& x) { return x.t.warp_rows > 64; },
     [](const Point& x) {
       return text(x.t.warp_rows) + " rows of a wave: their sums leave no registers for scores";
     }},
    {kWaves, [](const Point& x) { return x.t.rows > 64 && x.t.waves < AmdArch::simds; },
     [](const Point& x) { return text(x.t.waves) + " waves leave SIMDs idle"; }},
    {kKeys, [](const Point& x) { return x.t.keys > 32 && x.t.keys / 2 >= x.t.tuned_keys(x.p); },
     [](const Point& x) { return "keys=" + text(x.t.keys) + " where half of it holds all keys already"; }},
    {kStages,
     [](const Point& x) { return x.t.stages > 1 && x.t.keys * (x.t.stages - 1) >= x.t.tuned_span(x.p); },
     [](const Point& x) {
       return "stages=" + text(x.t.stages) + " hold more than the " + text(x.t.tuned_span(x.p)) + " keys";
     }},
    {kStages, [](const Point& x) { return x.t.shared > x.device.shared_block; },
     [](const Point& x) {
       return text(x.t.shared) + " bytes of shared memory exceed the device's " + text(x.device.shared_block);
     }},
    {kStages, [](const Point& x) { return x.t.registers + kSpareRegisters > x.limits.most_registers; },
     [](const Point& x) {
       return "about " + text(x.t.registers) + " registers of a lane, and " + text(kSpareRegisters) +
              " to spare, exceed " + text(x.limits.most_registers);
     }},
    packs_single_heads<Point>(kPack),
    packs_too_many_rows<Point>(kPack),
    // Four waves have a use where there are few rows, too: they share copies and LDS.
    {kPack, [](const Point& x) { return x.t.rows > 64 && x.t.rows / 2 >= x.tuned_rows(); },
     [](const Point& x) {
       return "rows=" + text(x.t.rows) + " where half of it holds all " + text(x.tuned_rows()) + " rows";
     }},
    {kPack, [](const Point& x) { return x.grid_threads() > kMostThreads; },
     [](const Point& x) {
       return "a grid of " + text(x.grid_threads()) + " threads along x, which HIP counts in 32 bits";
     }},
    {kResident,
     [](const Point& x) {
       return x.t.resident > 1 &&
              x.limits.registers / (x.t.threads * x.t.resident) >= x.limits.most_registers;
     },
     [](const Point& x) {
       return "resident=" + text(x.t.resident) + " leaves a lane all " + text(x.limits.most_registers) +
              " registers, as resident=1 does";
     }},
    {kResident,
     [](const Point& x) {
       return x.t.resident > 1 &&
              (x.t.resident * x.t.threads > x.limits.resident || x.t.registers > x.most_registers() ||
               x.t.resident * x.t.shared > x.device.shared_multiprocessor);
     },
     [](const Point& x) {
       return "a compute unit has no room for " + text(x.t.resident) + " blocks of " + text(x.t.threads) +
              " threads with about " + text(x.t.registers) + " registers each and " + text(x.t.shared) +
              " bytes of shared memory";
     }},
    {kSplits, [](const Point& x) { return x.grid_threads() > kMostThreads; },
     [](const Point& x) {
       return "splits=" + text(x.t.splits) + " make a grid of " + text(x.grid_threads()) +
              " threads along x, which HIP counts in 32 bits";
     }},
    splits_without_keys<Point>(kSplits),
    splits_beyond_use<Point>(kSplits),
};

} // namespace

MfmaAttentionTiling::MfmaAttentionTiling(const Attention& p, const std::string& arch, const Config& c)
    : AttentionTile{at(c, kRows),
                    at(c, kKeys),
                    at(c, kPack) ? p.group() : 1,
                    at(c, kRows) / at(c, kWaves),
                    at(c, kPack) != 0,
                    1,
                    splits_of(c),
                    most_tokens_split(p),
                    attention_record_head + 4 * round_up(p.value_dim, 8)},
      waves(at(c, kWaves)), stages(at(c, kStages)), resident(at(c, kResident)),
      threads(find_amd(arch)->wave * waves), shape(arch, p.q, p.kv, 16), depth(round_up(p.head_dim, 32)),
      columns(round_up(p.value_dim, 16)), key(keys, 2 * depth, lds_banks(arch)),
      value(columns, 2 * keys, lds_banks(arch)) {
  stage_bytes = key.bytes() + value.bytes(), shared = stages * stage_bytes;
  // Sums, scores, some of the weights that they become, Q; the next keys and values on their way; fragments,
  // addresses, bounds, maxima and sums.
  registers = row_tiles() * ((columns + keys) / 4 + keys / 16 + depth / 8) +
              RowCopy::registers(key, threads) + ColumnCopy::registers(value, p.value_dim, threads) + 40 +
              8 * row_tiles();
  if (p.bias) registers += keys / 4 + 2 * row_tiles(); // of a row, and where rows begin
}

std::string MfmaAttention::why_not(const Attention& p, const std::string& arch) const {
  const AmdArch* amd = find_amd(arch);
  if (!amd || !amd->mfma)
    return "mfma_attention generates code for gfx90a, gfx942 and gfx950, not for " + arch +
           (amd ? "; there is no attention for other AMD GPUs: leave the arch out of ARCHS" : "");
  if (p.q != p.kv || (p.q != Type::f16 && p.q != Type::bf16))
    return "mfma_attention multiplies f16 by f16 or bf16 by bf16, not " + to_string(p.q) + " by " +
           to_string(p.kv) + ": use TYPES f16 f16 or bf16 bf16 for GPUs, or ARCHS " +
           (p.kv == Type::e4m3 ? "of NVIDIA" : "cpu");
  if (p.value_dim > kMostValueDim)
    return "mfma_attention has values of at most " + text(kMostValueDim) + " elements, not " +
           text(p.value_dim) + ": use ARCHS cpu";
  if (const int64_t batch = most_tuned_batch(p); batch > kMostEntries)
    return "a call on a GPU has at most " + text(kMostEntries) + " entries, not " + text(batch) +
           ": lower the batch of TUNE_AT";
  return "";
}

int64_t MfmaAttention::workspace(const Attention& p, const Config& config) const {
  return MfmaAttentionTiling(p, "gfx942", config).workspace(p); // the same on all
}

std::vector<Parameter> MfmaAttention::parameters(const Attention& p, const Device&) const {
  const bool grouped = p.group() > 1;
  std::vector<Parameter> list = {
      {"rows", {16, 32, 64, 128, 256}, "rows of Q of a block", {16, 512, 16}},
      {"waves", {1, 2, 4, 8}, "waves that share them", {1, 16, 1, true}},
      {"keys", {32, 64, 128}, "keys of a block of keys", {32, 256, 32, true}},
      {"stages", {1, 2}, "blocks of keys and values in LDS"},
      {"pack", grouped ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
       "1: a block has the rows of all heads of Q that share a head of K"},
      {"resident", {1, 2, 3, 4}, "blocks that a compute unit must have room for", {1, 8}}};
  if (has_attention_splits(p)) list.push_back(attention_splits(p));
  return list;
}

std::string MfmaAttention::why_illegal(const Attention& p, const Device& device, const Config& config) const {
  const MfmaAttentionTiling t(p, device.arch, config);
  return first_broken(kRules, Point{p, device, t});
}

bool MfmaAttention::dead_end(const Attention& p, const Device& device, const Config& config,
                             size_t assigned) const {
  static constexpr int64_t kFirst[] = {16, 1, 32, 1, 0, 1, 1};
  const MfmaAttentionTiling t(p, device.arch, filled<kNames, kFirst>(config, assigned));
  return breaks_any(kRules, Point{p, device, t}, assigned);
}

/// The same code.
Attention MfmaAttention::awkward(const Attention& p, const Config& config) const {
  const MfmaAttentionTiling t(p, "gfx942", config);
  return t.awkward(p, t.stages);
}

} // namespace deepgen
