// What a search does when its share of MINUTES is over: who takes part in the finals, and where races and
// workers stop.
#include "measure/commands/search_time.h"
#include "measure/commands/starters.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/search/record.h"
#include "measure/process/stopwatch.h"
#include "measure/race/race.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

namespace deepgen::search_time_test {
namespace {

struct Logs : testing::Test {
  Logs() {
    std::string name = (std::filesystem::temp_directory_path() / "deepgen-time-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~Logs() override { std::filesystem::remove_all(folder); }

  std::string log(const std::string& name, const Json& spent, bool cut) const {
    RecordLog l;
    l.environment["spent"] = spent;
    if (cut) l.environment["cut"] = 3;
    write_atomically(folder + "/" + name, l.serialize());
    return folder + "/" + name;
  }
  std::string folder;
};

TEST_F(Logs, SayWhatIsLeft) {
  const std::string a = log("a", {{"waiting", 500}, {"verifying", 3}, {"timing", 1.5}}, false),
                    b = log("b",
                            {{"making", 4}, {"preparing", 0.5}, {"starts", {{"workers", 7}, {"seconds", 3}}}},
                            true);
  const SearchTime one(20, {a}), both(20, {a, b}), none(0, {a, b});
  EXPECT_DOUBLE_EQ(one.left(), 15.5) << "waiting is on nobody's account";
  EXPECT_FALSE(one.cut());
  EXPECT_DOUBLE_EQ(one.preparing(), 0);
  EXPECT_DOUBLE_EQ(both.preparing(), 0.5);
  EXPECT_DOUBLE_EQ(both.left(), 11) << "starts are a part of making";
  EXPECT_DOUBLE_EQ(both.left_but(5), 6);
  EXPECT_DOUBLE_EQ(both.left_but(50), 0);
  EXPECT_TRUE(both.cut());
  EXPECT_FALSE(none.bounded());
  EXPECT_TRUE(std::isinf(none.left()) && std::isinf(none.left_but(5)));
}

FinalsField with_vendor() {
  FinalsField f;
  f.vendor = true;
  return f;
}
const FinalsField kVendor = with_vendor();

TEST(Starters, AreThoseWhoseFinalsEndInTime) {
  const std::vector<double> calls = {0.1, 0.05, 0.06, 0.06};
  EXPECT_EQ(starters_within(1000, 0, calls, kVendor).finalists, 4u);
  EXPECT_TRUE(starters_within(1000, 0, calls, kVendor).vendor);
  size_t before = 4;
  bool vendor = true;
  for (double seconds = 20; seconds > 0; seconds -= 0.25) { // less time, never more starters
    const Starters s = starters_within(seconds, 0, calls, kVendor);
    EXPECT_LE(s.finalists, before);
    EXPECT_NE(s.finalists, 1u) << "there is nothing to decide";
    EXPECT_TRUE(s.vendor || s.finalists <= 2) << "the vendor goes last but one";
    EXPECT_TRUE(!s.finalists || s.needed <= seconds);
    EXPECT_TRUE(vendor || !s.vendor);
    before = s.finalists, vendor = s.vendor;
  }
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(starters_within(20, 9, calls, kVendor).finalists, 0u)
      << "operands are made for the finals and the hold-out";
  EXPECT_GT(starters_within(1, 0, calls, kVendor).needed, 1) << "what it would take is said";
  EXPECT_EQ(starters_within(0.1, 0, {5}, FinalsField()).finalists, 1u) << "the default alone";
}

/// The least time in which all four take part, with the vendor's library.
double needed_by(const FinalsField& field, const std::vector<double>& calls = {1e-4, 1e-4, 1e-4, 1e-4}) {
  const Starters s = starters_within(1e9, 0, calls, field);
  EXPECT_EQ(s.finalists, calls.size());
  EXPECT_EQ(s.vendor, field.vendor);
  return s.needed;
}

TEST(Starters, WaitForTheThreadsOfAVendor) {
  FinalsField on_threads = kVendor;
  on_threads.vendor_rest = 0.01;
  const std::vector<double> short_calls(4, 1e-5), long_calls(4, 1);
  EXPECT_GE(needed_by(on_threads, short_calls) - needed_by(kVendor, short_calls), 0.01 * 16 * (11 + 7))
      << "behind each slice";
  EXPECT_LT(needed_by(on_threads, long_calls) - needed_by(kVendor, long_calls), 0.01 * 2 * (11 + 7))
      << "a long call has no slices";
  on_threads.vendor = false;
  EXPECT_DOUBLE_EQ(needed_by(on_threads), needed_by(FinalsField()));
}

TEST(Starters, OfAGpuRestInBurstsAndAskTheVendor) {
  FinalsField sustained = kVendor;
  sustained.asking = 2, sustained.algorithms = 8, sustained.starting = 2, sustained.rest = 0.03;
  FinalsField balanced = sustained, burst = sustained;
  balanced.regime = TunedFor::balanced, burst.regime = TunedFor::burst;
  balanced.extra = burst.extra = 1;
  // Of short calls the rests are most of it: 6 rounds of 7 arms and 7 of 4, or 11 of 13 and 7 of 4.
  EXPECT_GE(needed_by(balanced) - needed_by(sustained), 0.03 * (6 * 7 + 7 * 4));
  EXPECT_GE(needed_by(burst) - needed_by(sustained), 0.03 * (11 * 13 + 7 * 4));
  FinalsField many = sustained;
  many.algorithms = 16;
  const std::vector<double> slow(4, 0.01);
  EXPECT_GE(needed_by(many, slow) - needed_by(sustained, slow), 11 * 8 * 0.01)
      << "each algorithm is an arm of the finals";
  FinalsField known = sustained, none = sustained;
  known.asking = 0, none.vendor = false;
  EXPECT_DOUBLE_EQ(needed_by(sustained) - needed_by(known), 2);
  EXPECT_GT(needed_by(known), needed_by(none)) << "what is not asked for takes no time";
  // In a share that sustained finals would just fit into, balanced ones have fewer starters.
  const double share = needed_by(sustained);
  const Starters fewer = starters_within(share, 0, std::vector<double>(4, 1e-4), balanced);
  EXPECT_TRUE(fewer.finalists < 4 || !fewer.vendor);
  EXPECT_LE(fewer.finalists ? fewer.needed : 0, share);
}

TEST(Starters, RoundsLeaveThemWhatTheirDeviceNeeds) {
  Device cpu, gpu;
  cpu.arch = "cpu", gpu.arch = "sm_90a";
  MeasureOptions o;
  o.seconds = 5, o.vendor = true, o.regime = TunedFor::balanced;
  EXPECT_DOUBLE_EQ(finals_reserve(cpu, o), 7.5);
  const double reserve = finals_reserve(gpu, o);
  EXPECT_GT(reserve, 7.5);
  EXPECT_LT(reserve, 20) << "the share of a quick search: rounds have some, too";
  const Starters s = starters_within(reserve, 0, std::vector<double>(6, 1e-5), expected_field(gpu, o));
  EXPECT_TRUE(s.finalists == 6 && s.vendor);
  o.seconds = 60;
  EXPECT_DOUBLE_EQ(finals_reserve(gpu, o), 90);
}

TEST(RaceEnd, LeavesWhatWasSampled) {
  RaceOptions options;
  options.deadline = wall_seconds() + 100;
  options.end = wall_seconds() + 0.6;
  const auto slow = [] {
    return std::function<void()>([] {
      const double start = wall_seconds();
      while (wall_seconds() - start < 0.05) {
      }
    });
  };
  const auto endless = [] {
    return std::function<void()>([] {
      while (true) {
      }
    });
  };
  Progress progress("test");
  std::vector<ArmResult> r = full_race({{"a", slow}, {"b", slow}}, 1000, 1000, options, progress);
  EXPECT_TRUE(r[0].failure.empty() && r[1].failure.empty()) << "that time is over is nobody's fault";
  EXPECT_LT(r[0].rounds.size(), 1000u);
  options.end = wall_seconds() + 0.3;
  r = full_race({{"a", slow}, {"b", endless}}, 5, 5, options, progress);
  EXPECT_TRUE(r[1].failure.empty());
  EXPECT_FALSE(r[1].timed());
}

} // namespace
} // namespace deepgen::search_time_test
