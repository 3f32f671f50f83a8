#include "base/record.h"

#include "base/error.h"
#include "base/files.h"
#include "base/finalists.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
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

TEST(Finalists, WhatLeftItsRoundEarlyRanksBehindWhatStayed) {
  std::vector<LoggedRecord> records;
  auto add = [&](const char* log, const char* code, double ratio, int64_t samples, const char* origin = "model") {
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
  EXPECT_EQ(codes, (std::vector<std::string>{"default", "left, second", "left, first", "one dropped", "stayed 0"}));
}

TEST(Finalists, WhatALaterRoundTimedAgainHasTheTimeOfThen) {
  const auto make = [](const char* code, double ratio, const char* origin = "model") {
    Record r = sample().records[0];
    r.sha256 = code, r.origin = origin, r.timing->ratio = ratio;
    return r;
  };
  RecordLog first, second;
  first.records = {make("default", 1, "default"), make("a", 0.90), make("b", 0.91), make("c", 0.92)};
  second.records = {make("d", 0.955), make("e", 0.97)};
  second.again = {make("b", 0.95), make("a", 0.96)}; // the device was hotter
  const fs::path folder = fs::temp_directory_path() / ("deepgen_again_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::vector<std::string> logs = {(folder / "r0.jsonl").string(), (folder / "r1.jsonl").string()};
  write_atomically(logs[0], first.serialize()), write_atomically(logs[1], second.serialize());
  const std::vector<LoggedRecord> records = read_records(logs);
  fs::remove_all(folder);
  ASSERT_EQ(records.size(), 6u) << "each config once";
  std::string codes;
  for (const LoggedRecord& r : finalists_of(records)) codes += " " + r.record.sha256;
  EXPECT_EQ(codes, " default b d a c e") << "c was not among the best of its round";
  EXPECT_EQ(records[2].record.timing->ratio, 0.95);
  EXPECT_EQ(records[2].log, logs[0]) << "where its kernel file is";
}

TEST(RecordLog, TornTailIsIgnoredAtEveryByte) {
  const std::string text = sample().serialize();
  const size_t last_line = text.rfind('\n', text.size() - 2) + 1;
  for (size_t size = last_line; size < text.size(); ++size)
    EXPECT_EQ(RecordLog::parse(text.substr(0, size), "x").records.size(), 1u) << size;
  EXPECT_EQ(RecordLog::parse(text, "x").records.size(), 2u);
  EXPECT_TRUE(RecordLog::parse("", "x").records.empty());
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
} // namespace deepgen
