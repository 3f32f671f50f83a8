#include "base/json/json.h"
#include "generator/report/export.h"
#include "generator/report/report_page.h"

#include "base/text/error.h"
#include "generator/report/report.h"
#include "tests/unit/generator/fake_template.h"

#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

namespace deepgen::report_test {
namespace {

Gemm problem(int64_t m) {
  return Gemm::parse("gemm m=" + std::to_string(m) +
                     " n=64 k=32 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=bias align=4");
}

Record record(const Gemm& p, const std::string& stage, int64_t slot, const Choice& choice,
              const std::string& origin, double ratio) {
  Record r;
  r.stage = stage, r.slot = slot, r.problem = p.key(), r.arch = "fake", r.revision = 3;
  r.choice = choice, r.origin = origin, r.sha256 = "sha of " + choice.text() + std::to_string(slot);
  r.timing = Timing{1e-3 * ratio, 0.9e-3 * ratio, 1.1e-3 * ratio, ratio, ratio * 0.99, ratio * 1.01, 40, 1};
  if (ratio == 1) r.timing->low = r.timing->high = 1;
  return r;
}

Record vendor(const Gemm& p, double ratio) {
  Record r = record(p, "final", -1, {"vendor", {}}, "library 1.0", ratio);
  r.revision = 0, r.sha256 = "";
  return r;
}

RecordLog log_of(std::vector<Record> records, double noise = 0) {
  RecordLog log;
  Json device = fake_device().to_json();
  log.environment = {{"device", device}, {"anchor", "default"}};
  log.records = std::move(records), log.noise_floor = noise;
  return log;
}

const Choice kDefault = fake_choice(4, 2, 64, 0), kFast = fake_choice(4, 4, 32, 0),
             kSlow = fake_choice(1, 1, 8, 0);

/// Two rounds and finals: the default, one candidate of speed 1 / `ratio`, a failure, the vendor.
std::vector<RecordLog> search(const Gemm& p, double ratio, double vendor_ratio) {
  Record broken = record(p, "r0", 1, kSlow, "random", 1);
  broken.status = "wrong", broken.detail = "D[3,4] is 7", broken.timing.reset();
  return {log_of({record(p, "r10", 0, kFast, "neighbour", ratio)}),
          log_of({broken, record(p, "r0", 0, kDefault, "default", 1)}),
          log_of({record(p, "final", 0, kDefault, "default", 1),
                  record(p, "final", 0, kFast, "neighbour", ratio), vendor(p, vendor_ratio)},
                 0.01)};
}

ReportInput input(std::initializer_list<std::vector<RecordLog>> searches) {
  register_fake_template();
  ReportInput in;
  for (const auto& logs : searches) in.logs.insert(in.logs.end(), logs.begin(), logs.end());
  return in;
}

/// A race times what is ahead again and again: what left it early stands behind, whatever its few rounds
/// said.
TEST(Report, RatiosOfFewRoundsAreNotSortedAmongThoseOfMany) {
  std::vector<RecordLog> logs = search(problem(16), 0.984, 0.5);
  const auto add = [&](RecordLog& log, int64_t slot, double ratio, int64_t samples, const char* status) {
    Record r = record(problem(16), &log == &logs[2] ? "final" : "r0", slot, kFast, "model", ratio);
    r.status = status, r.timing->samples = samples;
    log.records.push_back(r);
  };
  for (Record& r : logs[2].records) r.timing->samples = 60;
  add(logs[2], 31, 0.957, 15, "dropped");
  add(logs[2], 32, 0.960, 15, "dropped");
  add(logs[1], 33, 0.9, 3, "ok"), add(logs[1], 34, 0.95, 17, "ok"), add(logs[1], 35, 0.93, 8, "ok");
  const std::string text = report(logs, true);
  const auto line = [&](int slot) {
    const size_t at =
        std::min(text.find(" " + std::to_string(slot) + " "), text.find("/" + std::to_string(slot) + " "));
    EXPECT_NE(at, std::string::npos) << slot << "\n" << text;
    return at;
  };
  EXPECT_LT(line(34), line(35)) << text;
  EXPECT_LT(line(35), line(33)) << text;
  const size_t stayed = text.find("1.016", text.find("  final ")); // 1 / 0.984
  EXPECT_LT(stayed, line(31)) << text;
  EXPECT_LT(line(31), line(32)) << text;
}

TEST(Study, HoldsTheRecordsInTheOrderOfTheSearch) {
  const std::vector<Study> studies = studies_of(input({search(problem(16), 0.8, 0.5)}));
  ASSERT_EQ(studies.size(), 1u);
  const Study& s = studies[0];
  ASSERT_EQ(s.trials.size(), 3u);
  EXPECT_EQ(s.trials[0].record.origin, "default");
  EXPECT_EQ(s.trials[1].record.status, "wrong");
  EXPECT_EQ(s.trials[2].record.stage, "r10");
  EXPECT_EQ(s.outcome(), "improved");
  EXPECT_EQ(s.decision.winner.choice, kFast);
  EXPECT_DOUBLE_EQ(s.against_default->value, 1 / 0.8);
  EXPECT_DOUBLE_EQ(s.against_default->low, 1 / (0.8 * 1.01));
  EXPECT_DOUBLE_EQ(s.against_vendor->value, 0.5 / 0.8);
  EXPECT_DOUBLE_EQ(s.against_vendor->low, 0.5 * 0.99 / (0.8 * 1.01)) << "the worse ends of both";
  EXPECT_EQ(s.vendor_verdict, "loss");
  EXPECT_EQ(s.default_verdict, "win");
  EXPECT_EQ(s.evidence["candidates"], 3);
}

TEST(Study, TakesPairedRatiosToTheVendorWhereThereAre) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  const std::string sha = in.logs[2].records[1].sha256;
  in.logs[2].environment["vendor"] = {{"ratios",
                                       {{{"sha256", "another"}, {"ratio", 9}},
                                        {{"sha256", sha}, {"ratio", 0.6}, {"low", 0.59}, {"high", 0.61}}}}};
  const Speed speed = *studies_of(in)[0].against_vendor;
  EXPECT_EQ(speed.value, 0.6);
  EXPECT_EQ(speed.low, 0.59);
  EXPECT_EQ(speed.high, 0.61);
}

TEST(Study, ReportsTheHoldOut) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  RecordLog& last = in.logs[2];
  const std::string sha = last.records[1].sha256;
  last.records.push_back(record(problem(16), "holdout", 0, kDefault, "default", 1));
  last.records.push_back(record(problem(16), "holdout", 0, kFast, "neighbour", 0.9));
  Record library = vendor(problem(16), 0.6);
  library.stage = "holdout";
  last.records.push_back(library);
  last.environment["holdout"] = {
      {"sha256", sha},
      {"rounds", 40},
      {"verdict", "power-limited win"},
      {"vendor", {{"name", "library 1.0"}, {"ratio", {1.4, 1.5, 1.6}}, {"verdict", "loss"}}}};
  const Study s = studies_of(in)[0];
  EXPECT_DOUBLE_EQ(s.against_default->value, 1 / 0.9);
  EXPECT_EQ(s.default_verdict, "power-limited win");
  EXPECT_DOUBLE_EQ(s.against_vendor->value, 1 / 1.5);
  EXPECT_DOUBLE_EQ(s.against_vendor->low, 1 / 1.6);
  EXPECT_EQ(s.vendor->timing->ratio, 0.6);
  EXPECT_EQ(s.trials.size(), 3u);

  last.records[4].timing->high =
      1.1; // not confirmed: the default stays, and the hold-out's verdicts are not about it
  const Study kept = studies_of(in)[0];
  EXPECT_EQ(kept.outcome(), "unchanged");
  EXPECT_EQ(kept.default_verdict, "unchanged");
  EXPECT_DOUBLE_EQ(kept.against_vendor->value, 0.6);
}

TEST(Study, EstimatesWhatIsLegalStillAndSaysWhyNot) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  Record illegal = record(problem(16), "r0", 2, fake_choice(4, 8, 64, 0), "random", 2);
  Record old = record(problem(16), "r0", 3, kFast, "random", 2);
  old.revision = 1;
  Record gone = record(problem(16), "r0", 4, {"no_such_template", {}}, "random", 2);
  in.logs[1].records.insert(in.logs[1].records.end(), {illegal, old, gone});
  const Study s = studies_of(in)[0];
  ASSERT_EQ(s.trials.size(), 6u);
  const Template& fake = find_template("fake_tile");
  EXPECT_EQ(s.trials[0].estimate, fake.cost(problem(16), fake_device(), kDefault.config));
  for (size_t i : {2, 3, 4}) {
    EXPECT_FALSE(s.trials[i].estimate) << i;
    EXPECT_NE(s.trials[i].no_estimate, "") << i;
  }
  EXPECT_NE(s.trials[3].no_estimate.find("revision"), std::string::npos);
}

/// Estimates divide by a GPU's cores.
TEST(Study, ALogThatDoesNotSayItsGpuIsOfATypicalOne) {
  const Gemm p = Gemm::parse(
      "gemm m=1024 n=1024 k=1024 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");
  const Choice choice = Space(p, "sm_90a", generic_gpu("sm_90a")).default_choice();
  ReportInput in;
  in.logs = {log_of({record(p, "r0", 0, choice, "default", 1)})};
  in.logs[0].environment = Json::object();
  in.logs[0].records[0].arch = "sm_90a",
  in.logs[0].records[0].revision = find_template(choice.template_name).revision();
  const Study s = studies_of(in).at(0);
  EXPECT_EQ(s.device.name, "");
  EXPECT_EQ(s.trials.at(0).estimate,
            find_template(choice.template_name).cost(p, generic_gpu("sm_90a"), choice.config));
}

TEST(Device, GpusHaveCores) {
  Device device = generic_gpu("sm_90a");
  EXPECT_EQ(Device::from_json(device.to_json()), device);
  device.cores = 0;
  EXPECT_THROW(Device::from_json(device.to_json()), Error);
}

TEST(Study, AFailedDefaultLeavesNothingToCompareWith) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  in.logs[2].records[0].status = "crash", in.logs[2].records[0].timing.reset();
  in.logs[2].environment["anchor"] = "the default failed, instead: a finalist";
  const std::vector<Study> studies = studies_of(in);
  EXPECT_EQ(studies[0].outcome(), "default failed");
  EXPECT_FALSE(studies[0].against_default);
  EXPECT_NE(studies[0].anchor, "default");
  EXPECT_EQ(summaries_of(studies)[0].against_default.count, 0u);
  EXPECT_EQ(summaries_of(studies)[0].against_vendor.count, 1u);
}

TEST(Study, WithoutFinalsOrRecords) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  in.logs.pop_back();
  EXPECT_EQ(studies_of(in)[0].outcome(), "unfinished");
  LockEntry entry;
  entry.problem = problem(48).key(), entry.arch = "fake", entry.device = fake_device(), entry.choice = kFast;
  entry.revision = 3;
  Lock lock;
  lock.put(entry);
  in.locks = {lock};
  const std::vector<Study> studies = studies_of(in);
  ASSERT_EQ(studies.size(), 2u);
  EXPECT_EQ(studies[1].outcome(), "not searched");
  EXPECT_EQ(studies[1].locked.size(), 1u);
  EXPECT_TRUE(studies[0].locked.empty());
}

/// SHAPE 256, 128, 256 again: the records are those of 128, and the lock has both.
TEST(Study, AShapeThatCameBack) {
  ReportInput in = input({search(problem(32), 0.8, 0.5)});
  Lock lock;
  for (int64_t size : {32, 48}) {
    LockEntry entry;
    entry.problem = problem(size).key(), entry.arch = "fake", entry.device = fake_device(),
    entry.choice = kFast;
    entry.revision = 3;
    entry.evidence = {{"noise_floor", 0.01}};
    lock.put(entry);
  }
  in.locks = {lock};
  in.labels = {{problem(48).key(), "kernels up"}};
  EXPECT_EQ(studies_of(in).size(), 2u);
  in.only_labelled = true;
  const std::vector<Study> studies = studies_of(in);
  ASSERT_EQ(studies.size(), 1u);
  EXPECT_EQ(studies[0].label, "kernels up");
  EXPECT_EQ(studies[0].outcome(), "locked") << "and not 'not searched'";
}

TEST(Summary, CountsLossesAndWhatIsUnchanged) {
  ReportInput in =
      input({search(problem(16), 0.8, 0.5), search(problem(32), 1.5, 2), search(problem(48), 0.5, 0.5)});
  in.weights[problem(16).key()] = 10;
  const std::vector<Study> studies = studies_of(in);
  const std::vector<Summary> summaries = summaries_of(studies);
  ASSERT_EQ(summaries.size(), 1u);
  const Summary& s = summaries[0];
  EXPECT_EQ(s.outcomes, (std::map<std::string, size_t>{{"improved", 2}, {"unchanged", 1}}));
  EXPECT_EQ(s.against_default.count, 3u);
  EXPECT_NEAR(s.against_default.geomean, std::cbrt(1.25 * 1 * 2), 1e-12);
  EXPECT_EQ(s.against_default.worst, 1);
  EXPECT_EQ(s.against_default.worst_problem, problem(32).key());
  // Seconds of the default are 1e-3 in all.
  EXPECT_NEAR(s.against_default.weighted, (10 + 1 + 1) / (10 * 0.8 + 1 + 0.5), 1e-12);
  EXPECT_NEAR(s.against_vendor.geomean, std::cbrt(0.625 * 2 * 1), 1e-12);
  EXPECT_EQ(s.against_vendor.worst, 0.625);
  EXPECT_NEAR(s.against_vendor.weighted, (10 * 0.5 + 2 + 0.5) / (10 * 0.8 + 1 + 0.5), 1e-12);
  EXPECT_EQ(s.against_vendor.verdicts, (std::map<std::string, size_t>{{"AMBG", 1}, {"loss", 1}, {"win", 1}}));
  const std::string text = summary_text(studies);
  EXPECT_NE(text.find("1 AMBG, 1 loss, 1 win"), std::string::npos) << text;
}

TEST(Roofline, CountsEveryOperandOnce) {
  Gemm p = Gemm::parse("gemm m=4 n=8 k=16 batch=2 a=bf16 b=bf16 d=f32 acc=f32 layout=nn "
                       "epilogue=bias+residual+scale_row align=2");
  EXPECT_EQ(p.flops(), 2. * 4 * 8 * 16 * 2);
  EXPECT_EQ(p.bytes(), 2 * (4 * 16 * 2 + 16 * 8 * 2 + 4 * 8 * 4) + 8 * 4 + 2 * 4 * 8 * 4 + 4 * 4);
}

TEST(ReportPage, HoldsTheRecordsNumbersAndNothingElseRuns) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  in.logs[1].records[0].detail = "</script><script>alert(1)</script>";
  const std::vector<Study> studies = studies_of(in);
  const std::string page = report_page(studies);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos) << "text of a record must not end the script";
  EXPECT_EQ(page.find("{{"), std::string::npos) << "a part that was not filled in";
  EXPECT_EQ(page.find("sourceMappingURL"), std::string::npos);
  const std::string open = "id=\"data\">";
  const size_t at = page.find(open) + open.size();
  const Json data = Json::parse(page.substr(at, page.find("</script>", at) - at));
  EXPECT_EQ(data, report_json(studies));
  const Json& study = data["devices"][0]["studies"][0];
  EXPECT_EQ(study["trials"][2]["ratio"], 0.8);
  EXPECT_EQ(study["trials"][1]["detail"], in.logs[1].records[0].detail);
  EXPECT_EQ(study["finals"]["winner"]["config"], kFast.config.to_json());
  EXPECT_EQ(study["parameters"]["fake_tile"].size(), kFast.config.values.size());
  EXPECT_EQ(data["devices"][0]["against_vendor"]["verdicts"]["loss"], 1);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Csv, ARowAProblemAndARowACandidate) {
  ReportInput in = input({search(problem(16), 0.8, 0.5), search(problem(32), 1.5, 2)});
  in.logs[1].records[0].detail = "a \"quoted\", long\nreason";
  const std::vector<Study> studies = studies_of(in);
  const std::vector<std::string> summary = lines_of(summary_csv(studies));
  ASSERT_EQ(summary.size(), 3u);
  EXPECT_EQ(summary[1],
            problem(16).key() + ",fake,fake device,,1,improved," + kFast.text() +
                ",0.0008,0.08192,0.01,1.25,1.23762376,1.26262626,library 1.0,0.0005,0.625,0.612623762,"
                "0.637626263,loss,3,1");
  const std::string candidates = candidates_csv(studies);
  EXPECT_NE(candidates.find("\"a \"\"quoted\"\", long\nreason\""), std::string::npos);
  EXPECT_EQ(lines_of(candidates).size(), 1u + 2 * 6 + 1)
      << "head, three trials and three finals each, a line break";
}

TEST(Export, T4HasEveryTrial) {
  ReportInput in = input({search(problem(16), 0.8, 0.5)});
  Record twin = record(problem(16), "r10", 1, fake_choice(4, 4, 32, 1), "neighbour", 1);
  twin.status = "duplicate", twin.timing.reset(), twin.sha256 = in.logs[0].records[0].sha256;
  in.logs[0].records.push_back(twin);
  in.logs[0].environment["ended"] = "2026-01-05T10:11:12Z";
  const Json t4 = t4_json(studies_of(in)[0]);
  EXPECT_EQ(t4["schema_version"], "1.0.0");
  const Json& results = t4["results"];
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0]["configuration"]["template"], "fake_tile");
  EXPECT_EQ(results[0]["configuration"]["nr"], 64);
  EXPECT_EQ(results[3]["timestamp"], "2026-01-05T10:11:12Z");
  EXPECT_EQ(results[1]["invalidity"], "correctness");
  EXPECT_EQ(results[1]["correctness"], 0);
  EXPECT_TRUE(results[1]["times"]["runtimes"].empty());
  for (size_t i : {2, 3}) { // the duplicate has its twin's time
    EXPECT_EQ(results[i]["invalidity"], "correct");
    EXPECT_DOUBLE_EQ(results[i]["times"]["runtimes"][0], 0.8) << "milliseconds";
    EXPECT_EQ(results[i]["measurements"][0]["name"], results[i]["objectives"][0]);
    EXPECT_DOUBLE_EQ(results[i]["measurements"][0]["value"], 0.8);
  }
}

TEST(Export, T1ListsTheLegalConfigs) {
  register_fake_template();
  const Space space(problem(16), "fake", fake_device());
  const Json t1 = t1_json(problem(16), "fake", space, 64);
  const Json& parameters = t1["ConfigurationSpace"]["TuningParameters"];
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[2]["Name"], "nr");
  EXPECT_EQ(parameters[2]["Values"], "[8,16,32,64]");
  const Json& condition = t1["ConfigurationSpace"]["Conditions"][0];
  EXPECT_EQ(condition["Parameters"], (Json{"isa", "mr", "nr", "pack"}));
  const std::string text = condition["Expression"];
  EXPECT_EQ(text.rfind("(isa, mr, nr, pack, ) in {", 0), 0u) << text.substr(0, 60);
  size_t tuples = 0;
  for (char c : text) tuples += c == ')';
  EXPECT_EQ(tuples, 1 + space.size());
  EXPECT_NE(text.find("(4,2,64,0,)"), std::string::npos);
  EXPECT_EQ(text.find("(4,8,64,0,)"), std::string::npos) << "an illegal one";
  EXPECT_EQ(t1["Budget"][0]["BudgetValue"], 64);
}

} // namespace
} // namespace deepgen::report_test
