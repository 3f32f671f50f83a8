// Messages of a race: what is read is what was written, and nothing else is read.
#include "base/json/json.h"
#include "measure/race/race.h"
#include "measure/race/race_messages.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <unistd.h>
#include <vector>

namespace deepgen::race_messages_test {
namespace {

constexpr size_t kArms = 4;

race::Message read_back(const race::Message& message) {
  return race::message_from(parse_json(dump_json(race::to_json(message)), "a test"), kArms);
}

TEST(RaceMessages, AreReadAsTheyWereWritten) {
  EXPECT_EQ(std::get<race::Begun>(read_back(race::Begun{17})).race, 17) << "races are not arms";
  EXPECT_TRUE(std::holds_alternative<race::FirstMade>(read_back(race::FirstMade{})));
  EXPECT_EQ(std::get<race::Settled>(read_back(race::Settled{0.5})).seconds, 0.5);
  const auto sampled =
      std::get<race::Sampled>(read_back(race::Sampled{3, 7, {1e-9, false, 1755, true, true}}));
  EXPECT_EQ(sampled.arm, 3u);
  EXPECT_EQ(sampled.round, 7);
  EXPECT_EQ(sampled.sample.seconds, 1e-9);
  EXPECT_FALSE(sampled.sample.clean);
  EXPECT_EQ(sampled.sample.megahertz, 1755);
  EXPECT_TRUE(sampled.sample.throttled);
  EXPECT_TRUE(sampled.sample.capped);
  EXPECT_EQ(std::get<race::LeftOut>(read_back(race::LeftOut{2})).arm, 2u);
  EXPECT_EQ(std::get<race::RoundLost>(read_back(race::RoundLost{9})).round, 9);
  const auto kept = std::get<race::KeptFrom>(read_back(race::KeptFrom{1, 15}));
  EXPECT_EQ(kept.arm, 1u);
  EXPECT_EQ(kept.round, 15);
  const auto failed = std::get<race::Failed>(read_back(race::Failed{1, "a device\n\"lost\""}));
  EXPECT_EQ(failed.arm, 1u);
  EXPECT_EQ(failed.why, "a device\n\"lost\"");
}

/// What message_from() says to `json`; empty when it takes it.
std::string refusal(const Json& json) {
  try {
    race::message_from(json, kArms);
  } catch (const ForeignMessage& e) {
    return e.what();
  }
  return "";
}

TEST(RaceMessages, WhatIsNoneIsRefusedWithTheFieldAtFault) {
  struct {
    const char *text, *why;
  } const cases[] = {
      {"5", "missing field 'kind'"},
      {"[]", "missing field 'kind'"},
      {"{}", "missing field 'kind'"},
      {R"({"kind":3})", "field 'kind' has the wrong type: 3"},
      {R"({"kind":"verdict","arm":1})", "no message of this kind is known: 'verdict'"},
      {R"({"kind":"left out"})", "missing field 'arm'"},
      {R"({"kind":"left out","arm":4})", "field 'arm' is none of 4"},
      {R"({"kind":"left out","arm":-1})", "field 'arm' has the wrong type: -1"},
      {R"({"kind":"left out","arm":1.5})", "field 'arm' has the wrong type: 1.5"},
      {R"({"kind":"left out","arm":1,"round":1})", "fields beyond those of its kind"},
      {R"({"kind":"round lost","round":-1})", "field 'round' is negative"},
      {R"({"kind":"round lost","round":4294967296})", "field 'round' has the wrong type"},
      {R"({"kind":"settled","seconds":null})", "field 'seconds' has the wrong type: null"},
      {R"({"kind":"failed","arm":0,"why":["x"]})", "field 'why' has the wrong type"},
      {R"({"kind":"sampled","arm":0,"round":0,"seconds":1,"clean":1,"megahertz":0,"throttled":false,"capped":false})",
       "field 'clean' has the wrong type: 1"}};
  for (const auto& c : cases) {
    const std::string text = refusal(Json::parse(c.text));
    EXPECT_NE(text.find("no message of a race"), std::string::npos) << c.text << ": " << text;
    EXPECT_NE(text.find(c.why), std::string::npos) << c.text << ": " << text;
    EXPECT_NE(text.find("remedy"), std::string::npos) << text;
  }
}

TEST(RaceMessages, EveryFieldIsNeeded) {
  for (const race::Message& message :
       std::vector<race::Message>{race::Begun{1}, race::FirstMade{}, race::Settled{1}, race::Sampled{},
                                  race::LeftOut{}, race::RoundLost{}, race::KeptFrom{}, race::Failed{}}) {
    const Json whole = race::to_json(message);
    EXPECT_EQ(refusal(whole), "");
    for (const auto& [key, value] : whole.items()) {
      Json damaged = whole;
      damaged.erase(key);
      EXPECT_NE(refusal(damaged).find("missing field '" + key + "'"), std::string::npos)
          << dump_json(damaged);
      damaged[key] = Json::object();
      EXPECT_NE(refusal(damaged).find("field '" + key + "'"), std::string::npos) << dump_json(damaged);
    }
  }
}

TEST(RaceMessages, ATimeThatIsNoNumberIsRefused) {
  EXPECT_THROW(read_back(race::Settled{std::numeric_limits<double>::quiet_NaN()}), ForeignMessage);
}

/// An arm that writes a line into its worker's answers.
Arm forger(const std::string& line) {
  // The worker's end has the number that the next pipe's has.
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  for (int end : ends) close(end);
  return {"forger", [line, fd = ends[1]]() -> std::function<void()> {
            return [line, fd] { EXPECT_EQ(write(fd, line.data(), line.size()), ssize_t(line.size())); };
          }};
}

TEST(RaceMessages, AnArmThatWritesWhatIsNoneIsOutOfTheRace) {
  const auto spin = [](const char* name, int work) {
    return Arm{name, [work]() -> std::function<void()> {
                 return [work] {
                   for (int i = 0; i < work; ++i) asm volatile("" ::: "memory");
                 };
               }};
  };
  const std::vector<Arm> arms = {spin("anchor", 20000),
                                 forger("{\"message\":{\"kind\":\"left out\",\"arm\":17}}\n"),
                                 spin("other", 20000)};
  RaceOptions options;
  // Longer than whoever listens takes to read a line: the arm at work then is held to have written it.
  options.sample_seconds = 0.02;
  options.deadline = wall_seconds() + 10;
  Progress progress("test");
  const std::vector<ArmResult> r = halving_race(arms, options, progress);
  EXPECT_EQ(r[1].failure, "crash");
  EXPECT_NE(r[1].detail.find("field 'arm' is none of 3"), std::string::npos) << r[1].detail;
  EXPECT_TRUE(r[0].timed()) << r[0].failure << ": " << r[0].detail;
  EXPECT_TRUE(r[2].timed()) << r[2].failure << ": " << r[2].detail;
}

} // namespace
} // namespace deepgen::race_messages_test
