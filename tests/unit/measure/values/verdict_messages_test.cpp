// Messages of workers that verify, and of those that ask about a device: what is read is what was written,
// and nothing else is read.
#include "base/json/json.h"
#include "measure/gpu/surroundings.h"
#include "measure/process/worker.h"
#include "measure/values/verdict_messages.h"

#include <gtest/gtest.h>

#include <limits>

namespace deepgen::verdict_messages_test {
namespace {

Json sent(const Json& json) { return parse_json(dump_json(json), "a test"); }

TEST(VerdictMessages, AreReadAsTheyWereWritten) {
  const Verdict verdict = {"varies", "D[3,5] is\n\"7\"", 12.5, "00ff"};
  const auto read = std::get<Verified>(verdict_message_from(sent(to_json(Verified{4, verdict})), 4));
  EXPECT_EQ(read.candidate, 4u);
  EXPECT_EQ(read.verdict.status, verdict.status);
  EXPECT_EQ(read.verdict.detail, verdict.detail);
  EXPECT_EQ(read.verdict.error, verdict.error);
  EXPECT_EQ(read.verdict.row_bits, verdict.row_bits);
  EXPECT_EQ(std::get<NotOpened>(verdict_message_from(sent(to_json(NotOpened{"lost"})), 0)).why, "lost");
  for (double error : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(std::get<Verified>(verdict_message_from(sent(to_json(Verified{0, {"wrong", "", error}})), 0))
                  .verdict.error,
              finite(error));
}

/// What the reader says to it; empty when it takes it.
std::string refusal(const Json& json, size_t next = 4) {
  try {
    verdict_message_from(json, next);
  } catch (const ForeignMessage& e) {
    return e.what();
  }
  return "";
}

TEST(VerdictMessages, WhatIsNoneIsRefusedWithTheFieldAtFault) {
  struct {
    const char *text, *why;
  } const cases[] = {
      {"[]", "missing field 'kind'"},
      {R"({"kind":"settled","seconds":1})", "no message of this kind is known: 'settled'"},
      {R"({"kind":"verified","candidate":5,"status":"ok","detail":"","error":0,"row_bits":""})",
       "field 'candidate' is none of 5"},
      {R"({"kind":"verified","candidate":3,"status":"ok","detail":"","error":0,"row_bits":""})",
       "it is of candidate 3, and 4 is next"},
      {R"({"kind":"verified","candidate":4,"status":"good","detail":"","error":0,"row_bits":""})",
       "no status is called 'good'"},
      {R"({"kind":"verified","candidate":4,"status":"ok","detail":"","error":null,"row_bits":""})",
       "field 'error' has the wrong type"},
      {R"({"kind":"verified","candidate":4,"status":"ok","detail":"","error":0,"row_bits":"","more":1})",
       "fields beyond those of its kind"}};
  for (const auto& c : cases) {
    const std::string text = refusal(Json::parse(c.text));
    EXPECT_NE(text.find(c.why), std::string::npos) << c.text << ": " << text;
    EXPECT_NE(text.find("remedy"), std::string::npos) << text;
  }
}

TEST(VerdictMessages, EveryFieldIsNeeded) {
  for (const VerdictMessage& message : std::vector<VerdictMessage>{Verified{4, {}}, NotOpened{"x"}}) {
    const Json whole = to_json(message);
    EXPECT_EQ(refusal(whole), "");
    for (const auto& [key, value] : whole.items()) {
      Json damaged = whole;
      damaged.erase(key);
      EXPECT_NE(refusal(damaged).find("missing field '" + key + "'"), std::string::npos)
          << dump_json(damaged);
    }
  }
}

TEST(SurroundingsMessages, AreReadAsTheyWereWritten) {
  cuda::Surroundings s;
  s.other_processes = 3, s.power_limit_watts = 650.5, s.driver = "580.1", s.unwatched = "no library";
  const cuda::Surroundings read = cuda::surroundings_from(sent(cuda::to_json(s)));
  EXPECT_EQ(read.other_processes, 3);
  EXPECT_EQ(read.power_limit_watts, 650.5);
  EXPECT_EQ(read.driver, "580.1");
  EXPECT_EQ(read.unwatched, "no library");
  Json damaged = cuda::to_json(s);
  damaged["processes"] = -1;
  EXPECT_THROW(cuda::surroundings_from(damaged), ForeignMessage);
  damaged.erase("processes");
  EXPECT_THROW(cuda::surroundings_from(damaged), ForeignMessage);
}

} // namespace
} // namespace deepgen::verdict_messages_test
