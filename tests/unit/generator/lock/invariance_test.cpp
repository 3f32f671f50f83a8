// Batch invariant problems without measurements and in the lock: one order of sums for all kernels of a
// function, and what is stale.
#include "base/text/error.h"
#include "generator/lock/ranged_entry.h"
#include "generator/lock/select.h"
#include "generator/search/ranged_search.h"
#include "generator/search/search.h"
#include "generator/space/order_estimate.h"
#include "generator/space/ranged_default.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

namespace deepgen::invariance_test {
namespace {

std::string key_of(const std::string& sizes, const std::string& types, bool invariant = true) {
  return "gemm " + sizes + " " + types + " layout=nt epilogue=bias " + (invariant ? "invariant=rows " : "") +
         "align=" + (types.find("bf16") == std::string::npos ? "4" : "2");
}
const std::string kFloats = "a=f32 b=f32 d=f32 acc=f32", kHalves = "a=bf16 b=bf16 d=bf16 acc=f32";

Device cpu_of(int64_t level) {
  Device device;
  device.arch = "cpu", device.isa = level;
  return device;
}

std::string order_of(const Problem& p, const std::string& arch, const Choice& c) {
  return find_template(c.template_name).sum_order(p, arch, c.config);
}

TEST(Invariance, KeysSayItAndOthersStayAsTheyAre) {
  const std::string with = key_of("m=1..64 n=8 k=8 batch=1", kFloats),
                    without = key_of("m=1..64 n=8 k=8 batch=1", kFloats, false);
  EXPECT_TRUE(Problem::parse(with).batch_invariant());
  EXPECT_EQ(Problem::parse(with).key(), with);
  EXPECT_FALSE(Problem::parse(without).batch_invariant());
  EXPECT_EQ(Problem::parse(without).key(), without);
  EXPECT_NE(Problem::parse(with), Problem::parse(without));
  EXPECT_TRUE(Problem::parse(with).gemm().at({3, 8, 8, 1}).batch_invariant);
  std::string wrong = with;
  wrong.replace(wrong.find("invariant=rows"), 14, "invariant=none");
  EXPECT_THROW(Problem::parse(wrong), Error);
}

/// On every arch: the defaults of all sizes add up in one order, whatever the range. Spaces of GPUs are
/// large, and there is one for each point: these matrices have all templates in theirs, and few tiles.
TEST(Invariance, DefaultsAreOfOneOrder) {
  struct Row {
    const char* arch;
    std::string key;
  };
  for (const Row& row : {Row{"cpu", key_of("m=1..4096 n=512 k=1024 batch=1", kFloats)},
                         Row{"cpu", key_of("m=64 n=512 k=1..5000 batch=1..3", kFloats)},
                         Row{"sm_90a", key_of("m=1..2048 n=128 k=256 batch=1", kHalves)},
                         Row{"sm_80", key_of("m=1..2048 n=128 k=128 batch=1", kFloats)},
                         Row{"gfx942", key_of("m=1..2048 n=128 k=128 batch=1", kHalves)}}) {
    SCOPED_TRACE(row.arch + (" " + row.key));
    const Problem p = Problem::parse(row.key);
    const Device device = std::string(row.arch) == "cpu" ? cpu_of(4) : generic_gpu(row.arch);
    const std::vector<RangedChoice> parts =
        ranged_default(p.gemm(), row.arch, device, default_tune_points(p.gemm()));
    ASSERT_FALSE(parts.empty());
    for (const RangedChoice& part : parts) {
      EXPECT_EQ(order_of(p, row.arch, part.choice), order_of(p, row.arch, parts[0].choice));
      EXPECT_EQ(why_illegal(p, row.arch, device, part.choice), "");
    }
  }
}

/// Round 0 is of two orders at most, and later rounds of the one that was the fastest.
TEST(Invariance, ASearchEndsWithOneOrder) {
  SearchInput in;
  in.problem = Problem::parse(key_of("m=1..512 n=256 k=1024 batch=1", kFloats));
  in.device = cpu_of(4), in.slots = 24;
  in.points = default_tune_points(in.problem.gemm());
  const Plan first = next_ranged_plan(in, {});
  std::set<std::string> orders;
  for (const PlanSlot& slot : first.slots) orders.insert(order_of(in.problem, "cpu", slot.choice));
  ASSERT_GE(first.slots.size(), 10u);
  EXPECT_LE(orders.size(), 2u);

  // As if the last one's order had been the fastest everywhere.
  const std::string fastest = order_of(in.problem, "cpu", first.slots.back().choice);
  for (const PlanSlot& slot : first.slots) {
    Record r;
    r.problem = in.problem.key(), r.arch = "cpu", r.choice = slot.choice, r.origin = slot.origin;
    r.sum_order = order_of(in.problem, "cpu", slot.choice), r.stage = "r0";
    const double ratio = r.sum_order == fastest ? 0.5 : 1;
    for (const Sizes& at : in.points.at)
      r.points.push_back({at, {ratio * 1e-6, ratio * 1e-6, ratio * 1e-6, ratio, ratio, ratio, 9, 1}});
    r.timing = mean_timing(r.points);
    in.records.push_back(r);
  }
  in.round = 1;
  const Plan second = next_ranged_plan(in, {});
  ASSERT_FALSE(second.slots.empty());
  for (const PlanSlot& slot : second.slots) EXPECT_EQ(order_of(in.problem, "cpu", slot.choice), fastest);
}

TEST(Invariance, EstimatesOfOrdersServeAllPoints) {
  const Gemm p = Gemm::parse(key_of("m=1..4096 n=512 k=1024 batch=1", kFloats));
  const TunePoints points = default_tune_points(p);
  const std::vector<OrderEstimate> orders = estimated_orders(p, "cpu", cpu_of(3), points.at, points.weights);
  ASSERT_GE(orders.size(), 2u);
  for (const OrderEstimate& e : orders) {
    ASSERT_EQ(e.best.size(), points.at.size());
    for (const Choice& c : e.best) EXPECT_EQ(order_of(p, "cpu", c), e.order);
  }
}

/// A lock with kernels of several orders, or of a problem that is not batch invariant.
class InvariantLock : public testing::Test {
protected:
  const std::string key_ = key_of("m=1..4096 n=512 k=1024 batch=1", kFloats);
  const Problem problem_ = Problem::parse(key_);
  const Device device_ = cpu_of(3);

  /// Two kernels, by the orders at these places of the estimate.
  LockEntry entry(size_t few, size_t many) const {
    const TunePoints points = default_tune_points(problem_.gemm());
    const auto orders = estimated_orders(problem_.gemm(), "cpu", device_, points.at, points.weights);
    LockEntry e;
    e.problem = key_, e.arch = "cpu", e.device = device_, e.toolchain = "tools";
    const auto fill = [&](auto& part, const Choice& c, char code) {
      part.choice = c, part.revision = find_template(c.template_name).revision();
      part.sha256 = std::string(64, code);
    };
    fill(e, orders.at(many).best.back(), 'a');
    SizeSpan low{{1, 512, 1024, 1}, {99, 512, 1024, 1}}, high{{100, 512, 1024, 1}, {4096, 512, 1024, 1}};
    e.taken = high;
    LockedPart part;
    fill(part, orders.at(few).best.front(), 'b');
    part.taken = low;
    e.ranges = {part};
    return e;
  }
};

TEST_F(InvariantLock, KernelsOfSeveralOrdersAreStale) {
  EXPECT_EQ(why_stale(entry(0, 0)), "");
  const std::string why = why_stale(entry(0, 1));
  EXPECT_NE(why.find("its kernels add up over K in several orders: "), std::string::npos) << why;
  EXPECT_NE(order_text(entry(0, 0)).find("batch invariant: cpu_tile isa=3"), std::string::npos);
}

TEST_F(InvariantLock, AnEntryTunedWithoutItIsStaleAndSaysWhy) {
  LockEntry e = entry(0, 0);
  e.problem = key_of("m=1..4096 n=512 k=1024 batch=1", kFloats, false);
  Lock lock;
  lock.put(e);
  SelectRequest r;
  r.file.target = "kernels", r.file.name = "f", r.file.ns = "kernels", r.file.problem = problem_;
  r.file.points = default_tune_points(problem_.gemm());
  r.device = device_;
  try {
    select(Mode::frozen, lock, "deepgen.lock.json", {r});
    FAIL() << "it is not of the problem";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("stale: it was tuned without BATCH_INVARIANT: " + e.problem),
              std::string::npos)
        << error.what();
  }
}

TEST_F(InvariantLock, AVendorsLibraryIsNoFallback) {
  const std::string json =
      R"({"schema":"deepgen.problem/1","target":"k","name":"f","namespace":"k","problem":")" +
      key_of("m=64 n=8 k=8 batch=1", kFloats) + R"(","untuned":false,"fallback":"vendor"})";
  try {
    ProblemFile::parse(json, "problem.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("promises no order of sums"), std::string::npos);
  }
}

} // namespace
} // namespace deepgen::invariance_test
