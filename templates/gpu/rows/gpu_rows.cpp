#include "templates/gpu/rows/gpu_rows.h"

#include "templates/core/rules.h"
#include "templates/core/sizes.h"
#include "templates/gpu/gpu_limits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace deepgen {
namespace {

enum Index { kVec, kLanes, kRows, kHold, kUnroll, kSets, kHint, kResident, kParameters };
constexpr std::string_view kNames[] = {"vec", "lanes", "rows", "hold", "unroll", "sets", "hint", "resident"};
constexpr int64_t kMostThreads = 1024, kFewThreads = 64;

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// The values that rules look at; of parameters that are not known yet, the first.
struct GpuRowsPoint {
  const Rows& p;
  const Device& device;
  const GpuRowsTiling& t;
  const GpuLimits limits{device.arch};
  int64_t align() const { return dense_alignment(p.n, p.x); }
  int64_t least_threads() const { return std::max(kFewThreads, limits.wave); }
  int64_t most_registers() const { return std::min(limits.most_registers, limits.registers / t.threads); }
  double most_additions() const { return GpuRowsTiling::most_additions(p.n); }
};

const Rule<Index, GpuRowsPoint> kRules[] = {
    {kVec, [](const GpuRowsPoint& x) { return x.t.vec < size_of(x.p.x) || x.t.vec > x.align(); },
     [](const GpuRowsPoint& x) {
       return "vec=" + text(x.t.vec) + " is not between an element of " + text(size_of(x.p.x)) + " and the " +
              text(x.align()) + " bytes to which dense rows are aligned";
     }},
    {kLanes, [](const GpuRowsPoint& x) { return x.t.lanes > 1 && x.t.lanes / 2 >= x.t.vectors; },
     [](const GpuRowsPoint& x) {
       return "half of lanes=" + text(x.t.lanes) + " covers a row of " + text(x.t.vectors) + " vectors";
     }},
    {kRows,
     [](const GpuRowsPoint& x) { return x.t.threads > kMostThreads || x.t.threads < x.least_threads(); },
     [](const GpuRowsPoint& x) {
       return "lanes*rows=" + text(x.t.threads) + " threads are not between " + text(x.least_threads()) +
              " and " + text(kMostThreads);
     }},
    {kRows,
     [](const GpuRowsPoint& x) {
       return x.t.rows > 1 && x.t.rows / 2 >= x.p.m && x.t.threads / 2 >= x.least_threads();
     },
     [](const GpuRowsPoint& x) { return "half of rows=" + text(x.t.rows) + " covers M"; }},
    {kUnroll, [](const GpuRowsPoint& x) { return x.t.hold == GpuRowsTiling::in_registers && x.t.unroll > 2; },
     [](const GpuRowsPoint&) {
       return std::string("hold=1 reads a whole row at once, and one row ahead: unroll=1 or 2");
     }},
    {kUnroll,
     [](const GpuRowsPoint& x) { return x.t.hold != GpuRowsTiling::in_registers && x.t.unroll > x.t.turns; },
     [](const GpuRowsPoint& x) {
       return "unroll=" + text(x.t.unroll) + " of the " + text(x.t.turns) + " vectors that a thread has";
     }},
    {kUnroll, [](const GpuRowsPoint& x) { return double(x.t.additions()) > x.most_additions(); },
     [](const GpuRowsPoint& x) {
       return text(x.t.additions()) + " additions one after another exceed the " +
              text(int64_t(x.most_additions())) + " that sums over rows of " + text(x.p.n) +
              " are exact enough with: more lanes, or a greater unroll";
     }},
    {kUnroll, [](const GpuRowsPoint& x) { return x.t.hold != GpuRowsTiling::in_registers && x.t.turns == 1; },
     [](const GpuRowsPoint& x) {
       return "hold=" + text(x.t.hold) + " although a thread has one vector of a row";
     }},
    {kUnroll, [](const GpuRowsPoint& x) { return x.t.registers(x.p) > x.most_registers(); },
     [](const GpuRowsPoint& x) {
       return "about " + text(x.t.registers(x.p)) + " registers a thread exceed the " +
              text(x.most_registers()) + " of " + text(x.t.threads) + " threads";
     }},
    {kUnroll, [](const GpuRowsPoint& x) { return x.t.shared_bytes() > x.device.shared_block; },
     [](const GpuRowsPoint& x) {
       return text(x.t.shared_bytes()) + " bytes of shared memory exceed the device's " +
              text(x.device.shared_block);
     }},
    {kSets,
     [](const GpuRowsPoint& x) {
       return is_amd(x.device.arch) && x.t.blocks * x.t.threads >= int64_t(1) << 32;
     },
     [](const GpuRowsPoint& x) {
       return text(x.t.blocks) + " blocks of " + text(x.t.threads) +
              " threads: a grid has less than 2^32 threads";
     }},
    {kSets, [](const GpuRowsPoint& x) { return x.t.blocks >= int64_t(1) << 31; },
     [](const GpuRowsPoint& x) { return text(x.t.blocks) + " blocks: a grid has less than 2^31"; }},
    {kSets,
     [](const GpuRowsPoint& x) {
       return x.t.sets > 1 && x.t.blocks < 2 * x.device.cores && x.t.all_sets < int64_t(1) << 20;
     },
     [](const GpuRowsPoint& x) {
       return "sets=" + text(x.t.sets) + " leaves " + text(x.t.blocks) + " blocks to " +
              text(x.device.cores) + " multiprocessors";
     }},
    {kSets, [](const GpuRowsPoint& x) { return x.t.ahead() && x.t.blocks == x.t.all_sets; },
     [](const GpuRowsPoint&) {
       return std::string("hold=1 with unroll=2 reads a set ahead, and a block has one alone");
     }},
    {kHint,
     [](const GpuRowsPoint& x) {
       return x.t.hint && (is_amd(x.device.arch) || x.t.hold == GpuRowsTiling::read_again);
     },
     [](const GpuRowsPoint&) { return std::string("hint=1 is for what NVIDIA GPUs read once"); }},
    {kResident, [](const GpuRowsPoint& x) { return x.t.resident && is_amd(x.device.arch); },
     [](const GpuRowsPoint&) {
       return std::string("resident is for NVIDIA GPUs, whose assembler takes a limit");
     }},
    {kResident,
     [](const GpuRowsPoint& x) {
       return x.t.resident * x.t.threads > x.limits.resident ||
              x.t.resident * x.t.threads * x.t.least_registers(x.p) > x.limits.registers ||
              x.t.resident * (x.t.shared_bytes() + x.limits.kept) > x.device.shared_multiprocessor;
     },
     [](const GpuRowsPoint& x) {
       return "a multiprocessor has no room for " + text(x.t.resident) + " blocks of " + text(x.t.threads) +
              " threads with " + text(x.t.least_registers(x.p)) + " registers each";
     }},
};

} // namespace

GpuRowsTiling::GpuRowsTiling(const Rows& p, const Config& c)
    : vec(at(c, kVec)), lanes(at(c, kLanes)), rows(at(c, kRows)), hold(at(c, kHold)), unroll(at(c, kUnroll)),
      sets(at(c, kSets)), hint(at(c, kHint)), resident(at(c, kResident)) {
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
int64_t GpuRowsTiling::registers(const Rows& p) const {
  const int64_t together = hold == GpuRowsTiling::in_registers ? turns : unroll;
  return 28 + together * elements + 3 * elements + words_ahead(p);
}

int64_t GpuRowsTiling::words_ahead(const Rows& p) const {
  return ahead() ? turns * ceil_div(vec, 4) * (1 + p.residual) : 0;
}

/// By trials: ptxas 13.0 takes 80 registers without a spill where 64 elements are held, 48 where 32 are.
int64_t GpuRowsTiling::least_registers(const Rows& p) const {
  const int64_t held = (hold == in_registers ? turns : unroll) * elements + words_ahead(p);
  return std::min(registers(p), held + 16);
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
      {"unroll",
       {1, 2, 4, 8},
       "loads of a thread that are under way together; with hold=1, where these are a row's: 2 reads the "
       "next set of rows while one is computed",
       {1, 16}},
      {"sets", sets, "times that a block computes so many rows, one after another", {1, 4096}},
      {"hint", is_amd(device.arch) ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 1},
       "1: what is read once bypasses L1, and L2 fetches 256 bytes at a time"},
      {"resident",
       is_amd(device.arch) ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 2, 3, 4, 5, 6, 8},
       "blocks that a multiprocessor must have room for, whatever that costs in registers; 0: ptxas decides",
       {0, 32}}};
}

std::string GpuRows::why_illegal(const Rows& p, const Device& device, const Config& config) const {
  const GpuRowsTiling t(p, config);
  return first_broken(kRules, GpuRowsPoint{p, device, t});
}

bool GpuRows::dead_end(const Rows& p, const Device& device, const Config& config, size_t assigned) const {
  static constexpr int64_t kFirst[] = {16, 1, 1, 1, 1, 1, 0, 0};
  const GpuRowsTiling t(p, filled<kNames, kFirst>(config, assigned));
  return breaks_any(kRules, GpuRowsPoint{p, device, t}, assigned);
}

/// Any alignment: accesses of one element, as many turns longer, and more threads for a row where its sums
/// would take too many additions one after another.
std::vector<Choice> GpuRows::fallbacks(const Rows& p, const std::string&, const Config& config) const {
  if (at(config, kVec) == size_of(p.x)) return {};
  Config narrow = config;
  narrow.set("vec", size_of(p.x)), narrow.set("resident", 0);
  const bool held = narrow["hold"] == GpuRowsTiling::in_registers;
  if (held) narrow.set("unroll", 1);
  const auto too_long = [&] {
    return double(GpuRowsTiling(p, narrow).additions()) > GpuRowsTiling::most_additions(p.n);
  };
  if (too_long() && !held) narrow.set("unroll", 16);
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
