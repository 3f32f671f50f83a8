#include "base/search/record.h"

#include "base/files/files.h"
#include "base/search/finalists.h"
#include "base/search/names.h"
#include "base/text/error.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen::record_test {
namespace {

RecordLog sample() {
  RecordLog log;
  log.environment = {{"device", "fake"}};
  log.noise_floor = 0.004;
  log.stable = false;
  Record r;
  r.stage = "r0", r.slot = 3, r.problem = "p", r.arch = "cpu", r.revision = 2, r.origin = "model";
  r.choice = {"cpu_tile", Config::parse("isa=4 mr=14")};
  r.sha256 = "ab", r.code_bytes = 100, r.workspace = 64, r.kernel_file = "s03.dgk", r.error = 0.25;
  r.timing = Timing{1e-3, 0.9e-3, 1.1e-3, 0.92, 0.91, 0.93, 40, 0.98};
  log.records = {r, r};
  log.records[1].status = "wrong", log.records[1].detail = "D[3,4]\nis 7", log.records[1].timing.reset();
  return log;
}

TEST(RecordLog, RoundTrips) {
  const RecordLog log = sample();
  const RecordLog parsed = RecordLog::parse(log.serialize(), "x");
  EXPECT_EQ(parsed.serialize(), log.serialize());
  ASSERT_EQ(parsed.records.size(), 2u);
  EXPECT_EQ(parsed.records[0].choice, log.records[0].choice);
  EXPECT_EQ(parsed.records[0].timing->low, 0.91);
  EXPECT_FALSE(parsed.records[1].timing);
  EXPECT_FALSE(parsed.stable);
}

TEST(Record, NamesItsCandidateByItsRound) {
  Record r = sample().records[0];
  EXPECT_EQ(candidate_name(r), "r0/3");
  r.stage = "final", r.kernel_file = "r1/s03.dgk";
  EXPECT_EQ(candidate_name(r), "r1/3") << "another one than slot 3 of r0";
  r.stage = "holdout", r.kernel_file = "../up/cpu/r0/s03.dgk";
  EXPECT_EQ(candidate_name(r), "r0/3");
  r.kernel_file = "s03.dgk";
  EXPECT_EQ(candidate_name(r), "holdout/3");
  r.origin = "default";
  EXPECT_EQ(candidate_name(r), "default");
  r.origin = "oneDNN", r.choice.template_name = "vendor";
  EXPECT_EQ(candidate_name(r), "oneDNN");
}

TEST(Finalists, WhatLeftItsRoundEarlyRanksBehindWhatStayed) {
  std::vector<LoggedRecord> records;
  auto add = [&](const char* log, const char* code, double ratio, int64_t samples,
                 const char* origin = "model") {
    Record r = sample().records[0];
    r.sha256 = code, r.origin = origin;
    r.timing->ratio = ratio, r.timing->samples = samples;
    const size_t round = std::string(log) == "r1";
    records.push_back({r, log, round, round});
  };
  add("r0", "default", 1, 17, "default");
  add("r0", "stayed 0", 0.98, 17);
  add("r0", "one dropped", 0.97, 16); // the round in which the device throttled counts for nobody
  add("r1", "left, first", 0.90, 3);
  add("r1", "left, second", 0.95, 8);
  add("r1", "stayed 1", 0.96, 17);
  add("r1", "stayed 2", 0.965, 17);
  std::vector<std::string> codes;
  for (const LoggedRecord& r : finalists_of(records)) codes.push_back(r.record.sha256);
  EXPECT_EQ(codes, (std::vector<std::string>{"default", "stayed 1", "stayed 2", "left, second", "left, first",
                                             "one dropped", "stayed 0"}));
  records.pop_back(), records.pop_back();
  codes.clear();
  for (const LoggedRecord& r : finalists_of(records)) codes.push_back(r.record.sha256);
  EXPECT_EQ(codes,
            (std::vector<std::string>{"default", "left, second", "left, first", "one dropped", "stayed 0"}));
}

Record timed(const char* code, double ratio, double seconds = 1, const char* origin = "model") {
  Record r = sample().records[0];
  r.sha256 = code, r.origin = origin, r.timing->ratio = ratio, r.timing->seconds = seconds;
  return r;
}

/// As read from files r0, r1, ...
std::vector<LoggedRecord> records_of(const std::vector<RecordLog>& logs) {
  const fs::path folder = fs::temp_directory_path() / ("deepgen_logs_" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::vector<std::string> paths;
  for (const RecordLog& log : logs) {
    paths.push_back((folder / ("r" + std::to_string(paths.size()))).string());
    write_atomically(paths.back(), log.serialize());
  }
  const std::vector<LoggedRecord> records = read_records(paths);
  fs::remove_all(folder);
  return records;
}

std::string finalists_text(const std::vector<LoggedRecord>& records) {
  std::string codes;
  for (const LoggedRecord& r : finalists_of(records)) codes += " " + r.record.sha256;
  return codes;
}

TEST(Finalists, WhatALaterRoundTimedAgainHasTheTimeOfThen) {
  RecordLog first, second;
  first.records = {timed("default", 1, 1, "default"), timed("a", 0.90), timed("b", 0.91), timed("c", 0.92)};
  second.records = {timed("d", 0.955), timed("e", 0.97)};
  second.again = {timed("b", 0.95), timed("a", 0.96)}; // the device was hotter
  const std::vector<LoggedRecord> records = records_of({first, second});
  ASSERT_EQ(records.size(), 6u) << "each config once";
  EXPECT_EQ(finalists_text(records), " default b d a c e") << "c was not among the best of its round";
  EXPECT_EQ(records[2].record.timing->ratio, 0.95);
  EXPECT_EQ(fs::path(records[2].log).filename(), "r0") << "where its kernel file is";
}

TEST(Finalists, SecondsCompareRoundsThatHadOtherAnchors) {
  RecordLog first, second;
  first.environment = {{"anchor", "the default failed, instead: slot 1"}};
  second.environment = {{"anchor", "the default failed, instead: slot 0"}};
  first.records = {timed("default", 1, 1, "default"), timed("a", 1, 20e-6), timed("b", 0.8, 16e-6)};
  first.records[0].status = "compile_error", first.records[0].timing.reset();
  second.records = {timed("c", 1, 9e-6), timed("d", 1.1, 9.9e-6)};
  EXPECT_EQ(finalists_text(records_of({first, second})), " c d b a");
  first.records[2].timing->ratio = 0; // no round had both
  EXPECT_EQ(finalists_text(records_of({first, second})), " c d b a");
}

TEST(Finalists, TimesFromTheCacheWereInNoRaceWithOthers) {
  RecordLog log;
  log.records = {timed("default", 1, 1, "default"), timed("a", 0.83), timed("b", 0.84), timed("slow", 1.3)};
  for (size_t i = 1; i < 3; ++i) log.records[i].cached = true, log.records[i].timing->samples = 8;
  log.records[3].timing->samples = 17;
  EXPECT_EQ(finalists_text(records_of({log})), " default a b slow");
}

TEST(RecordLog, TornTailIsIgnoredAtEveryByte) {
  const std::string text = sample().serialize();
  const size_t last_line = text.rfind('\n', text.size() - 2) + 1;
  for (size_t size = last_line; size < text.size(); ++size)
    EXPECT_EQ(RecordLog::parse(text.substr(0, size), "x").records.size(), 1u) << size;
  EXPECT_EQ(RecordLog::parse(text, "x").records.size(), 2u);
  EXPECT_TRUE(RecordLog::parse("", "x").records.empty());
}

TEST(RecordLog, ATornTailIsSaid) {
  const std::string text = sample().serialize(),
                    path =
                        (fs::temp_directory_path() / ("deepgen_torn_" + std::to_string(getpid()))).string();
  EXPECT_FALSE(RecordLog::parse(text, "x").torn);
  EXPECT_TRUE(RecordLog::parse(text.substr(0, text.size() - 1), "x").torn);
  const auto said = [&](const std::string& content) {
    write_atomically(path, content);
    testing::internal::CaptureStderr();
    RecordLog::read(path);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(text), "");
  EXPECT_EQ(said(text.substr(0, text.size() - 9)),
            path + ": the last line is torn and left out; 1 records are whole\n");
  fs::remove(path);
}

TEST(RecordLog, TimesAndNoiseAreNotNegative) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = sample().serialize();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    EXPECT_THROW(RecordLog::parse(text.replace(at, from.size(), to), "x"), Error) << to;
  };
  refused("\"noise_floor\":0.004", "\"noise_floor\":-2");
  refused("\"ratio\":0.92", "\"ratio\":-0.92");
  refused("\"seconds\":0.001", "\"seconds\":-0.001");
}

/// What reports and decisions read of an environment without another look.
TEST(RecordLog, EnvironmentsAreCheckedWhenTheyAreRead) {
  const Json vendor = {{"name", "v 1"}, {"algorithm", "3"}, {"ratio", {0.7, 0.8, 0.9}}, {"verdict", "win"}};
  const Json pair = {{"sha256", "ab"}, {"ratio", 1.2}, {"low", 1.1}, {"high", 1.3}};
  const Json good = {{"anchor", "default"},
                     {"cut", 3},
                     {"unstable", "busy"},
                     {"power_limit_watts", 700.0},
                     {"holdout",
                      {{"sha256", "ab"},
                       {"rounds", 40},
                       {"clock_mhz", {1900, 1890}},
                       {"power_capped", 0.5},
                       {"vendor", vendor}}},
                     {"vendor", {{"ratios", {pair}}}},
                     {"of another tool", {1, "2"}}};
  const auto read = [](const Json& environment) {
    RecordLog log = sample();
    log.environment = environment;
    return RecordLog::parse(log.serialize(), "records.jsonl").environment;
  };
  EXPECT_EQ(read(good), good);
  const auto refused = [&](const char* place, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(place)] = value;
    try {
      read(bad);
      ADD_FAILURE() << place << " is " << value;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("records.jsonl:1"), std::string::npos) << e.what();
    }
  };
  for (const Json& value : {Json(), Json(7), Json("text"), Json::array({1})}) refused("", value);
  for (const char* text :
       {"/anchor", "/unstable", "/driver", "/ended", "/profile", "/holdout/sha256", "/holdout/verdict",
        "/holdout/clocks", "/holdout/vendor/verdict", "/holdout/vendor/algorithm", "/vendor/ratios/0/sha256"})
    for (const Json& value : {Json(), Json(7), Json::object()}) refused(text, value);
  for (const char* number : {"/least_noise", "/power_limit_watts", "/holdout/noise_floor", "/holdout/dropped",
                             "/holdout/clock_mhz", "/vendor/ratios/0/low"})
    for (const Json& value : {Json(), Json("7"), Json::object()}) refused(number, value);
  for (const char* whole : {"/cut", "/holdout/rounds"})
    for (const Json& value : {Json(), Json("7"), Json(1.5), Json(INT64_MAX), Json(-1)}) refused(whole, value);
  for (const char* object : {"/holdout", "/holdout/vendor", "/vendor", "/vendor/ratios/0"})
    for (const Json& value : {Json(), Json(7), Json::array()}) refused(object, value);
  refused("/holdout/vendor/ratio", {1, 2}), refused("/holdout/vendor/ratio", {1, 2, "3"});
  refused("/holdout/vendor", Json::object()), refused("/vendor/ratios", 1);
}

TEST(RecordLog, DamageElsewhereNamesTheLine) {
  std::string text = sample().serialize();
  text[text.find('\n') + 5] = '\x01';
  try {
    RecordLog::parse(text, "records.jsonl");
    FAIL() << "damage in line 2";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("records.jsonl:2"), std::string::npos) << e.what();
  }
  EXPECT_THROW(RecordLog::parse("{\"schema\":\"deepgen.env/9\"}\n", "x"), Error);
}

} // namespace
} // namespace deepgen::record_test
