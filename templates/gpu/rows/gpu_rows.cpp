#include "templates/gpu/rows/gpu_rows.h"

#include "templates/core/sizes.h"
#include "templates/gpu/gpu_limits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace deepgen {
namespace {

enum Index { kVec, kLanes, kRows, kHold, kUnroll, kSets, kHint, kParameters };
constexpr std::string_view kNames[] = {"vec", "lanes", "rows", "hold", "unroll", "sets", "hint"};
constexpr int64_t kMostThreads = 1024, kFewThreads = 64;

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

std::string why_illegal_vectors(const Rows& p, const GpuRowsTiling& t) {
  const int64_t align = dense_alignment(p.n, p.x);
  if (t.vec < size_of(p.x) || t.vec > align)
    return "vec=" + text(t.vec) + " is not between an element of " + text(size_of(p.x)) + " and the " +
           text(align) + " bytes to which dense rows are aligned";
  return "";
}

std::string why_illegal_block(const Rows& p, const Device& device, const GpuRowsTiling& t) {
  const GpuLimits limits(device.arch);
  if (t.threads > kMostThreads || t.threads < std::max(kFewThreads, limits.wave))
    return "lanes*rows=" + text(t.threads) + " threads are not between " +
           text(std::max(kFewThreads, limits.wave)) + " and " + text(kMostThreads);
  if (t.rows > 1 && t.rows / 2 >= p.m && t.threads / 2 >= std::max(kFewThreads, limits.wave))
    return "half of rows=" + text(t.rows) + " covers M";
  return "";
}

std::string why_illegal_sum(const Rows& p, const GpuRowsTiling& t) {
  const double most = GpuRowsTiling::most_additions(p.n);
  if (double(t.additions()) <= most) return "";
  return text(t.additions()) + " additions one after another exceed the " + text(int64_t(most)) +
         " that sums over rows of " + text(p.n) + " are exact enough with: more lanes, or a greater unroll";
}

std::string why_illegal_hold(const Device& device, const GpuRowsTiling& t) {
  const GpuLimits limits(device.arch);
  const int64_t most = std::min(limits.most_registers, limits.registers / t.threads);
  if (t.hold != GpuRowsTiling::in_registers && t.turns == 1)
    return "hold=" + text(t.hold) + " although a thread has one vector of a row";
  if (t.registers() > most)
    return "about " + text(t.registers()) + " registers a thread exceed the " + text(most) + " of " +
           text(t.threads) + " threads";
  if (t.shared_bytes() > device.shared_block)
    return text(t.shared_bytes()) + " bytes of shared memory exceed the device's " +
           text(device.shared_block);
  return "";
}

std::string why_illegal_grid(const Device& device, const GpuRowsTiling& t) {
  if (is_amd(device.arch) && t.blocks * t.threads >= int64_t(1) << 32)
    return text(t.blocks) + " blocks of " + text(t.threads) + " threads: a grid has less than 2^32 threads";
  if (t.blocks >= int64_t(1) << 31) return text(t.blocks) + " blocks: a grid has less than 2^31";
  if (t.sets > 1 && t.blocks < 2 * device.cores && t.all_sets < int64_t(1) << 20)
    return "sets=" + text(t.sets) + " leaves " + text(t.blocks) + " blocks to " + text(device.cores) +
           " multiprocessors";
  return "";
}

/// The constraints that the first `assigned` parameters decide.
std::string broken(const Rows& p, const Device& device, const GpuRowsTiling& t, size_t assigned) {
  if (std::string why = why_illegal_vectors(p, t); !why.empty()) return why;
  if (assigned > kLanes && t.lanes > 1 && t.lanes / 2 >= t.vectors)
    return "half of lanes=" + text(t.lanes) + " covers a row of " + text(t.vectors) + " vectors";
  if (assigned <= kRows) return "";
  if (std::string why = why_illegal_block(p, device, t); !why.empty()) return why;
  if (assigned <= kUnroll) return "";
  if (t.hold == GpuRowsTiling::in_registers && t.unroll > 1)
    return "hold=1 reads a whole row at once: unroll=1";
  if (t.unroll > t.turns)
    return "unroll=" + text(t.unroll) + " of the " + text(t.turns) + " vectors that a thread has";
  if (std::string why = why_illegal_sum(p, t); !why.empty()) return why;
  if (std::string why = why_illegal_hold(device, t); !why.empty()) return why;
  if (assigned <= kSets) return "";
  if (std::string why = why_illegal_grid(device, t); !why.empty()) return why;
  if (assigned > kHint && t.hint && (is_amd(device.arch) || t.hold == GpuRowsTiling::read_again))
    return "hint=1 is for what NVIDIA GPUs read once";
  return "";
}

} // namespace

GpuRowsTiling::GpuRowsTiling(const Rows& p, const Config& c)
    : vec(at(c, kVec)), lanes(at(c, kLanes)), rows(at(c, kRows)), hold(at(c, kHold)), unroll(at(c, kUnroll)),
      sets(at(c, kSets)), hint(at(c, kHint)) {
  elements = std::max<int64_t>(1, vec / size_of(p.x));
  vectors = ceil_div(p.n, elements), turns = ceil_div(vectors, lanes);
  threads = lanes * rows;
  all_sets = ceil_div(p.m, rows), blocks = ceil_div(all_sets, sets);
  warps = std::max<int64_t>(1, lanes / 32);
  const bool rms = p.kind == RowsKind::rms_norm;
  largest_with_sum = rms && p.quantised() && !p.bias;
  const bool largest_apart = p.quantised() && !largest_with_sum && p.kind != RowsKind::softmax;
  exchanged = (p.kind == RowsKind::layer_norm ? 3 : rms ? 1 : 2) + (p.quantised() ? 1 : 0);
  barriers = largest_apart ? 2 : 1;
  passes = (p.kind == RowsKind::layer_norm ? 3 : 2) + largest_apart;
  shuffle_rounds = (rms ? 1 : 2) + largest_apart;
  held_bytes = p.residual ? 4 : size_of(p.x);
}

int64_t GpuRowsTiling::partial_bytes() const {
  return crosses_warps() ? round_up(slot_bytes() * (alternates() ? 2 : 1), 16) : 0;
}

int64_t GpuRowsTiling::additions() const {
  const int64_t together = hold == in_registers ? turns : unroll;
  const int64_t own =
      std::min(block_additions, together) + ceil_div(turns, together) * ceil_div(together, block_additions);
  return own + std::bit_width(uint64_t(elements * lanes - 1));
}

int64_t GpuRowsTiling::shared_bytes() const {
  return partial_bytes() + (hold == in_shared ? turns * threads * elements * held_bytes : 0);
}

/// Elements in f32 that stay, or that are under way, and what goes with a vector.
int64_t GpuRowsTiling::registers() const {
  const int64_t together = hold == GpuRowsTiling::in_registers ? turns : unroll;
  return 28 + together * elements + 3 * elements;
}

std::string GpuRows::why_not(const Rows&, const std::string& arch) const {
  if (is_amd(arch) || compute_capability(arch) >= 80) return "";
  return "gpu_rows is for AMD GPUs, and NVIDIA GPUs from sm_80 on";
}

std::vector<Parameter> GpuRows::parameters(const Rows& p, const Device& device) const {
  const int64_t align = dense_alignment(p.n, p.x), size = size_of(p.x);
  std::vector<int64_t> vecs = {align}, sets = {1, 2, 4, 8};
  if (align / 2 > size) vecs.push_back(align / 2);
  if (align > size) vecs.push_back(size);
  if (p.m > int64_t(1) << 20) sets.insert(sets.end(), {64, 1024});
  return {
      {"vec", vecs, "bytes of one load of X"},
      {"lanes", {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, "threads that share a row"},
      {"rows",
       {1, 2, 4, 8, 16, 32, 64, 128, 256},
       "rows that a block computes at a time",
       {1, 1024, 1, true}},
      {"hold", {1, 2, 0}, "between its passes a row is 0: read again, 1: in registers, 2: in shared memory"},
      {"unroll", {1, 2, 4, 8}, "loads of a thread that are under way together, unless hold=1", {1, 16}},
      {"sets", sets, "times that a block computes so many rows, one after another", {1, 4096}},
      {"hint", is_amd(device.arch) ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 1},
       "1: what is read once bypasses L1, and L2 fetches 256 bytes at a time"}};
}

std::string GpuRows::why_illegal(const Rows& p, const Device& device, const Config& config) const {
  return broken(p, device, GpuRowsTiling(p, config), kParameters);
}

bool GpuRows::dead_end(const Rows& p, const Device& device, const Config& config, size_t assigned) const {
  static constexpr int64_t kFirst[] = {16, 1, 1, 1, 1, 1, 0};
  Config filled;
  for (size_t i = 0; i < kParameters; ++i)
    filled.values.emplace_back(kNames[i], i < assigned ? at(config, Index(i)) : kFirst[i]);
  return assigned > kVec && !broken(p, device, GpuRowsTiling(p, filled), assigned).empty();
}

/// Any alignment: accesses of one element, as many turns longer, and more threads for a row where its sums
/// would take too many additions one after another.
std::vector<Choice> GpuRows::fallbacks(const Rows& p, const std::string&, const Config& config) const {
  if (at(config, kVec) == size_of(p.x)) return {};
  Config narrow = config;
  narrow.set("vec", size_of(p.x));
  const auto too_long = [&] {
    return double(GpuRowsTiling(p, narrow).additions()) > GpuRowsTiling::most_additions(p.n);
  };
  if (too_long()) narrow.set("unroll", 16);
  while (too_long() && narrow["lanes"] < kMostThreads) {
    narrow.set("lanes", 2 * narrow["lanes"]);
    if (narrow["lanes"] * narrow["rows"] > kMostThreads) narrow.set("rows", narrow["rows"] / 2);
  }
  return {{name(), narrow}};
}

/// Rows that end in the middle of a thread's turn, and a set that is not full.
Rows GpuRows::awkward(const Rows& p, const Config& config) const {
  const GpuRowsTiling t(p, config);
  const int64_t turns =
      std::min(t.turns, t.hold == GpuRowsTiling::in_registers ? int64_t(3) : 2 * t.unroll + 1);
  Rows small = p;
  small.n = t.elements * (t.lanes * (turns - 1) + t.lanes / 2 + 1);
  small.n = std::min(small.n, p.n);
  small.m = t.rows * t.sets + t.rows / 2 + 1;
  return small;
}

} // namespace deepgen
