#include "base/search/search_options.h"

#include "base/text/error.h"

#include <gtest/gtest.h>

namespace deepgen::search_options_test {
namespace {

constexpr const char* kFull = R"json({
 "schema": "deepgen.search/1", "budget": "thorough", "slots": [8, 4], "strategy": "genetic", "seed": 7, "trials": 100, "regime": "burst",
 "patience": 0, "templates": {"simt": {}, "cpu_tile": {"isa": [4], "kc": {"add": [320, 640]}}},
 "include": "mr=(6|8)", "exclude": "loops=2", "workspace": 4096, "space": "top.json",
 "measure": {"seconds": 2.5, "warmup": 3, "samples": 40, "call_timeout": 5, "compile_timeout": 30, "caches": "warm", "baseline": "none",
             "devices": [1, "GPU-0a1b", "NVIDIA H100 80GB HBM3"]}})json";

SearchOptions parse(const std::string& members) {
  return SearchOptions::parse(
      "{\"schema\":\"deepgen.search/1\"" + (members.empty() ? "" : "," + members) + "}", "s.json");
}

/// The message for a file with these members.
std::string failure(const std::string& members) {
  try {
    parse(members);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(SearchOptions, ReadsEverything) {
  const SearchOptions o = SearchOptions::parse(kFull, "s.json");
  EXPECT_EQ(o.budget, "thorough");
  EXPECT_EQ(o.slots, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(o.strategy, "genetic");
  EXPECT_EQ(o.seed, 7u);
  EXPECT_EQ(o.trials, 100);
  EXPECT_EQ(o.regime, "burst");
  EXPECT_EQ(o.patience, 0);
  ASSERT_EQ(o.templates.size(), 2u);
  EXPECT_TRUE(o.templates.at("simt").values.empty());
  EXPECT_EQ(o.templates.at("cpu_tile").values.at("isa"), (std::vector<int64_t>{4}));
  EXPECT_EQ(o.templates.at("cpu_tile").added.at("kc"), (std::vector<int64_t>{320, 640}));
  EXPECT_EQ(o.include, "mr=(6|8)");
  EXPECT_EQ(o.exclude, "loops=2");
  EXPECT_EQ(o.workspace, 4096);
  EXPECT_EQ(o.space, "top.json");
  EXPECT_EQ(o.measure.seconds, 2.5);
  EXPECT_EQ(o.measure.warmup, 3);
  EXPECT_EQ(o.measure.samples, 40);
  EXPECT_EQ(o.measure.caches, "warm");
  EXPECT_EQ(o.measure.call_timeout, 5);
  EXPECT_EQ(o.measure.compile_timeout, 30);
  EXPECT_EQ(o.measure.baseline, "none");
  EXPECT_EQ(o.measure.devices, (std::vector<std::string>{"1", "GPU-0a1b", "NVIDIA H100 80GB HBM3"}));
}

TEST(SearchOptions, WhatIsWrittenIsReadAgain) {
  SearchOptions o = SearchOptions::parse(kFull, "s.json");
  const SearchOptions again = SearchOptions::parse(o.serialize(), "again");
  EXPECT_TRUE(again == o) << o.serialize();
  EXPECT_TRUE(parse("") == SearchOptions());
  EXPECT_TRUE(SearchOptions::parse(SearchOptions().serialize(), "default") == SearchOptions());
}

TEST(SearchOptions, PatternsAreThoseOfRe2) {
  EXPECT_EQ(parse("\"include\": \"(?:mr|nv)=\\\\d+\\\\b\"").include, "(?:mr|nv)=\\d+\\b");
  const std::string error = failure("\"exclude\": \"mr=(?!8)\"");
  EXPECT_NE(error.find("s.json, exclude"), std::string::npos) << error;
  EXPECT_NE(error.find("remedy: write it as RE2 has them: without lookaheads"), std::string::npos) << error;
}

TEST(SearchOptions, ErrorsNameFileKeyValueAndRemedy) {
  const struct {
    const char *members, *said;
  } cases[] = {
      {"\"trails\": 5", "unknown key 'trails'"},
      {"\"measure\": {\"second\": 5}", "unknown key 'measure.second'"},
      {"\"strategy\": \"luck\"", "bad value of 'strategy': \"luck\""},
      {"\"strategy\": 3", "allowed: auto, grid, random, anneal, genetic, gbt, xgboost"},
      {"\"budget\": \"huge\"", "allowed: quick, default, thorough"},
      {"\"trials\": 0", "allowed: a whole number from 1 to 100000"},
      {"\"trials\": 1.5", "bad value of 'trials': 1.5"},
      {"\"seed\": -1", "bad value of 'seed': -1"},
      {"\"seed\": 18446744073709551615", "bad value of 'seed': 18446744073709551615"},
      {"\"patience\": null", "bad value of 'patience': null"},
      {"\"slots\": []", "bad value of 'slots': []"},
      {"\"slots\": [4, 1001]", "bad value of 'slots': 1001"},
      {"\"templates\": {}", "an object with a member for each template"},
      {"\"templates\": {\"t\": 1}", "'templates.t' is not an object"},
      {"\"templates\": {\"t\": {\"mr\": 4}}", "bad value of 'templates.t.mr': 4"},
      {"\"templates\": {\"t\": {\"mr\": []}}", "bad value of 'templates.t.mr': []"},
      {"\"templates\": {\"t\": {\"mr\": [4, 4]}}", "bad value of 'templates.t.mr': 4"},
      {"\"templates\": {\"t\": {\"mr\": [18446744073709551615]}}", "bad value of 'templates.t.mr': 184467"},
      {"\"templates\": {\"t\": {\"mr\": {\"plus\": [1]}}}", "unknown key 'templates.t.mr.plus'"},
      {"\"templates\": {\"t\": {\"mr\": {}}}", "bad value of 'templates.t.mr': {}"},
      {"\"include\": \"mr=(\"", "not a regular expression: 'mr=('"},
      {"\"exclude\": [\"a\"]", "bad value of 'exclude': [\"a\"]"},
      {"\"measure\": 3", "'measure' is not an object"},
      {"\"measure\": {\"seconds\": 0}", "allowed: seconds from 0.1 to 86400"},
      {"\"measure\": {\"samples\": 5}", "bad value of 'measure.samples': 5"},
      {"\"measure\": {\"baseline\": \"cublas\"}", "allowed: vendor, none"},
      {"\"measure\": {\"caches\": \"hot\"}", "allowed: cold, weights-cold, warm"},
      {"\"regime\": \"bursts\"", "allowed: sustained, burst, balanced"},
      {"\"measure\": {\"devices\": [\"a;b\"]}", "bad value of 'measure.devices': \"a;b\""},
      {"\"measure\": {\"devices\": [-1]}", "bad value of 'measure.devices': -1"},
  };
  for (const auto& c : cases) {
    const std::string text = failure(c.members);
    EXPECT_NE(text.find(c.said), std::string::npos) << c.members << "\n" << text;
    EXPECT_NE(text.find("where:  s.json"), std::string::npos) << text;
    EXPECT_NE(text.find("remedy: "), std::string::npos) << text;
  }
  EXPECT_NE(failure("\"include\": \"" + std::string(501, 'a') + "\"").find("up to 500 characters"),
            std::string::npos);
  for (const char* text : {"", "{", "[]", "3", "{\"schema\":\"deepgen.plan/1\"}", "{\"seed\":1}"})
    EXPECT_THROW(SearchOptions::parse(text, "s.json"), Error) << text;
  EXPECT_THROW(SearchOptions::read("/no/such/search.json"), Error);
}

TEST(SearchOptions, NestingIsNoDanger) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_NE(failure("\"seed\":" + deep).find("nested more than"), std::string::npos);
  EXPECT_NE(failure("\"slots\":[" + deep + "]").find("nested more than"), std::string::npos);
}

TEST(SavedSpace, RoundTripsAndSelectsByProblem) {
  const Choice x{"cpu_tile", Config::parse("isa=4 mr=6")}, y{"cpu_tile", Config::parse("isa=3 mr=4")};
  SavedSpace space{{{"gemm a", "cpu", x}, {"gemm b", "cpu", y}, {"", "", y}, {"gemm a", "cpu", x}}};
  const SavedSpace again = SavedSpace::parse(space.serialize(), "space.json");
  EXPECT_EQ(again.serialize(), space.serialize());
  EXPECT_EQ(again.configs_for("gemm a", "cpu"), (std::vector<Choice>{x, y})) << "each once";
  EXPECT_EQ(again.configs_for("gemm b", "cpu"), (std::vector<Choice>{y}));
  EXPECT_EQ(again.configs_for("gemm a", "sm_80"), (std::vector<Choice>{y}));
  for (const char* text :
       {"{\"schema\":\"deepgen.space/1\"}", "{\"schema\":\"deepgen.space/1\",\"configs\":{}}",
        "{\"schema\":\"deepgen.space/1\",\"configs\":[{\"template\":\"t\"}]}",
        "{\"schema\":\"deepgen.space/1\",\"configs\":[{\"template\":\"t\",\"config\":{},\"x\":1}]}",
        "{\"schema\":\"deepgen.search/1\",\"configs\":[]}"})
    EXPECT_THROW(SavedSpace::parse(text, "space.json"), Error) << text;
}

} // namespace
} // namespace deepgen::search_options_test
