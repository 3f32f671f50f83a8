// What a lock entry tells of the regimes that its search has measured.
#include "base/search/decide.h"
#include "generator/lock/evidence.h"
#include "generator/lock/evidence_ratio.h"
#include "generator/lock/lock.h"
#include "tests/unit/generator/fake_template.h"

#include <gtest/gtest.h>

namespace deepgen::regime_evidence_test {
namespace {

std::string digits_of(int64_t mr) { return std::string(64, char('0' + mr)); }

/// Of finals and a hold-out of two kernels; the second one has 0.95 of the default's time there.
RecordLog sustained() {
  RecordLog log;
  log.noise_floor = 0.004;
  for (const char* stage : {"final", "holdout"})
    for (auto [origin, mr, ratio] : {std::tuple("default", 2, 1.0), {"model", 4, 0.95}}) {
      Record r;
      r.stage = stage, r.problem = Gemm().key(), r.arch = "fake", r.origin = origin, r.revision = 3;
      r.choice = fake_choice(4, mr, 16, 0), r.sha256 = digits_of(mr);
      r.timing = Timing{1e-3, 1e-3, 1e-3, ratio, ratio - 0.01, ratio + 0.01, 40, 1};
      log.records.push_back(r);
    }
  Record vendor = log.records[0];
  vendor.choice = {"vendor", {}}, vendor.origin = "openblas 0.3.21", vendor.timing->ratio = 1.25;
  log.records.push_back(vendor);
  log.environment["holdout"] = {
      {"rounds", 40},
      {"verdict", "win"},
      {"vendor", {{"name", "openblas 0.3.21"}, {"ratio", {0.97, 0.98, 0.985}}, {"verdict", "win"}}},
      {"sha256", digits_of(4)}};
  return log;
}

LockEntry entry_of(const RecordLog& final) {
  register_fake_template();
  return lock_entry(Gemm().key(), "fake", fake_device(), "tools", {final});
}

/// The same tuned for both regimes: 0.8 in bursts.
RecordLog balanced() {
  RecordLog final = sustained();
  for (Record& r : final.records)
    if (!r.is_vendor()) r.bursts = r.timing;
  for (size_t i : {1, 3}) final.records[i].bursts->ratio = 0.8;
  final.environment["regime"] = "balanced";
  final.environment["finals"]["bursts"]["noise_floor"] = 0.002;
  Json& holdout = final.environment["holdout"];
  const auto arm = [](double ratio, double vendor, const char* verdict) {
    return Json{{"noise_floor", 0.003},
                {"arms",
                 {{{"sha256", digits_of(2)}, {"seconds", 1e-3}, {"vendor", {1, 1, 1}}, {"verdict", "tie"}},
                  {{"sha256", digits_of(4)},
                   {"seconds", 1e-3},
                   {"clock_mhz", 1980},
                   {"default", {ratio, ratio, ratio}},
                   {"vendor", {vendor, vendor, vendor}},
                   {"verdict", verdict}}}}};
  };
  holdout["regimes"] = {{"sustained", arm(0.95, 0.98, "win")}, {"bursts", arm(0.8, 1.02, "loss")}};
  holdout["regimes"]["bursts"]["unstable"] = "busy";
  holdout["balanced"] = {{"verdict", "win"},
                         {"vendor_ratio", {0.99, 0.9998, 1.01}},
                         {"vendor_verdict", "tie"},
                         {"default_ratio", {1.1, 1.2, 1.3}},
                         {"default_verdict", "loss"}};
  return final;
}

TEST(RegimeEvidence, AllRegimesAreInTheEvidence) {
  const LockEntry e = entry_of(balanced());
  EXPECT_EQ(e.choice, fake_choice(4, 4, 16, 0));
  EXPECT_EQ(e.evidence["regime"], "balanced");
  EXPECT_NEAR(e.evidence["ratio"][1].get<double>(), 0.8718, 1e-4);
  EXPECT_EQ(e.evidence["vendor_ratio"], Json({0.99, 0.9998, 1.01}));
  EXPECT_EQ(e.evidence["vendor_verdict"], "tie");
  EXPECT_EQ(e.evidence["regimes"]["bursts"].dump(),
            "{\"ratio\":[0.8,0.8,0.8],\"vendor_ratio\":[1.02,1.02,1.02],\"vendor_verdict\":\"loss\","
            "\"clock_mhz\":1980,\"noise_floor\":0.003,\"unstable\":\"busy\"}");
  const std::string text = statement(e.evidence, e.device);
  EXPECT_NE(text.find("tuned for balanced calls; sustained: 1.053x vs default [1.053, 1.053], 1.020x vs "
                      "openblas 0.3.21 [1.020, 1.020]: win; bursts: 1.250x vs default [1.250, 1.250], 0.980x "
                      "vs openblas 0.3.21 [0.980, 0.980]: loss, unstable"),
            std::string::npos)
      << text;
  EXPECT_EQ(entry_of(sustained()).evidence.count("regime"), 0u) << "as ever";
}

TEST(RegimeEvidence, EntriesOfTwoRegimesAreNotCompared) {
  const LockEntry one = entry_of(balanced()), other = entry_of(sustained());
  EXPECT_FALSE(ratio_of(one, other));
  EXPECT_NE(why_no_ratio(one, other).find("follow each other differently"), std::string::npos);
  EXPECT_TRUE(ratio_of(one, one));
}

} // namespace
} // namespace deepgen::regime_evidence_test
