#include "base/json/json.h"

#include "base/kernel/kernel.h"
#include "base/search/record.h"

#include <gtest/gtest.h>
#include <limits>

namespace deepgen::json_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "a file");
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a file"), std::string::npos) << e.what();
    return e.what();
  }
  return "";
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Json, WhatIsTooDeepIsRefused) {
  EXPECT_EQ(refusal(repeated("[", 60) + repeated("]", 60)), "");
  for (const char* open : {"[", "{\"a\":"})
    EXPECT_NE(refusal(repeated(open, 1000000)).find("nested"), std::string::npos);
}

TEST(Json, AKeyThatComesTwiceIsRefused) {
  EXPECT_NE(refusal(R"({"config":{"mr":1,"mr":2}})").find("\"mr\" twice"), std::string::npos);
  EXPECT_EQ(refusal(R"([{"mr":1},{"mr":2,"in":{"mr":3}}])"), "");
}

TEST(Json, ManyKeysAreRefusedBeforeTheyTakeQuadraticTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 1000000; ++i) text += ",\"" + std::to_string(i) + "\":0";
  EXPECT_NE(refusal(text + "}").find("keys"), std::string::npos);
}

TEST(Json, NumbersBeyondRangeAreRefused) {
  EXPECT_NE(refusal("{\"a\":1e400}").find("number overflow"), std::string::npos);
}

TEST(Json, FieldsAreOfTheTypeThatIsAskedFor) {
  const Json json =
      parse_json(R"({"half":1.5,"huge":1e300,"big":9223372036854775808,"yes":true,"nothing":null,
                                   "list":[1,2,3],"mixed":[1,"2"],"minus":-1,"whole":7})",
                 "x");
  EXPECT_EQ(get<int64_t>(json, "whole", "x"), 7);
  EXPECT_EQ(get<double>(json, "whole", "x"), 7);
  EXPECT_EQ(get<uint64_t>(json, "big", "x"), uint64_t(1) << 63);
  EXPECT_EQ((get<std::array<int64_t, 3>>(json, "list", "x")), (std::array<int64_t, 3>{1, 2, 3}));
  for (const char* key : {"half", "huge", "big", "yes", "nothing", "list"})
    EXPECT_THROW(get<int64_t>(json, key, "x"), Error) << key;
  for (const char* key : {"yes", "nothing", "list"}) EXPECT_THROW(get<double>(json, key, "x"), Error) << key;
  EXPECT_THROW(get<size_t>(json, "minus", "x"), Error);
  EXPECT_THROW((get<std::array<int64_t, 2>>(json, "list", "x")), Error);
  EXPECT_THROW(get<std::vector<int64_t>>(json, "mixed", "x"), Error);
  EXPECT_THROW(get<std::vector<Json>>(json, "whole", "x"), Error);
  EXPECT_THROW(Config::from_json(parse_json(R"({"mr":9223372036854775808})", "x")), Error);
}

TEST(Config, BadTextSaysWhy) {
  const auto error_of = [](const std::string& text) {
    try {
      Config::parse(text);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of("bm=-128 bn=9223372036854775807"), "");
  for (const auto& [text, why] :
       {std::pair{"bm=128 stages=99999999999999999999", "99999999999999999999 takes more than 64 bits"},
        {"bm=12x", "'12x' is no integer"},
        {"bm=", "'' is no integer"}}) {
    const std::string error = error_of(text);
    for (const std::string& part :
         {std::string(why), std::string("where:  ") + text, std::string("deepgen space explain")})
      EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  for (const char* text : {"bm", "=5"})
    EXPECT_NE(error_of(text).find("remedy"), std::string::npos) << error_of(text);
}

TEST(Json, CountsHaveBounds) {
  const Json json = parse_json(
      R"({"zero":0,"minus":-1,"least":-9223372036854775808,"huge":1125899906842625,"one":1})", "x");
  EXPECT_EQ(get_count(json, "zero", "x"), 0);
  EXPECT_EQ(get_count(json, "one", "x", 1), 1);
  EXPECT_THROW(get_count(json, "zero", "x", 1), Error);
  for (const char* key : {"minus", "least", "huge"}) EXPECT_THROW(get_count(json, key, "x"), Error) << key;
}

/// A compiler's message in Latin-1, or cut within a character, must not cost the candidate its record.
TEST(Json, TextThatIsNotUtf8IsWritten) {
  KernelFile file;
  file.status = "failed", file.detail = "caf\xe9: \xe2\x82";
  const KernelFile read = KernelFile::parse(file.serialize(), "x");
  EXPECT_EQ(read.detail, "caf\xef\xbf\xbd: \xef\xbf\xbd");
  EXPECT_EQ(KernelFile::parse(read.serialize(), "x").detail, read.detail);
}

/// JSON has no NaN; written as null it would make the whole log unreadable.
TEST(Json, ALogWithNumbersThatAreNoneIsReadable) {
  RecordLog log;
  log.noise_floor = std::numeric_limits<double>::quiet_NaN();
  log.records.resize(1);
  log.records[0].error = std::numeric_limits<double>::infinity();
  log.records[0].timing = Timing{1e-3, 0, 0, log.noise_floor, -log.records[0].error, 1, 3, 1};
  const RecordLog read = RecordLog::parse(log.serialize(), "x");
  EXPECT_GT(read.noise_floor, 1e20);
  EXPECT_GT(read.records[0].error, 1e20);
  EXPECT_GT(read.records[0].timing->ratio, 1e20);
  EXPECT_LT(read.records[0].timing->low, -1e20);
}

} // namespace
} // namespace deepgen::json_test
