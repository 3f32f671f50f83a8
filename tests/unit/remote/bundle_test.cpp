#include "remote/bundle.h"

#include "remote/message.h"

#include <gtest/gtest.h>

namespace deepgen::bundle_test {
namespace {

Bundle sample() {
  return {{{"schema", "x"}, {"text", "a\nb"}},
          {{"plan.json", "{}"}, {"r0/s00.dgk", std::string("\0\n\xff deepgen.end", 15)}, {"empty", ""}}};
}

TEST(Bundle, ComesBackAsItWas) {
  const std::string text = sample().serialize();
  const Bundle back = Bundle::parse(text, "here");
  EXPECT_EQ(back.head, sample().head);
  EXPECT_EQ(back.files, sample().files);
  EXPECT_EQ(back.serialize(), text);
  ASSERT_TRUE(back.find("empty"));
  EXPECT_FALSE(back.find("r0"));
}

TEST(Bundle, TellsItsLengthAsSoonAsItsFirstLineIsThere) {
  const std::string text = sample().serialize();
  const size_t line = text.find('\n');
  for (size_t n = 0; n <= line; ++n) EXPECT_FALSE(bundle_size(text.substr(0, n), "here")) << n;
  EXPECT_EQ(bundle_size(text.substr(0, line + 1), "here"), text.size());
  EXPECT_EQ(bundle_size(text + "more", "here"), text.size());
}

TEST(Bundle, CutAnywhereOrChangedAnywhereIsRefused) {
  const std::string text = sample().serialize();
  for (size_t n = 0; n < text.size(); ++n) {
    EXPECT_THROW(Bundle::parse(text.substr(0, n), "here"), Error) << n;
    std::string changed = text;
    changed[n] = char(changed[n] ^ 1);
    EXPECT_THROW(Bundle::parse(changed, "here"), Error) << n;
  }
  EXPECT_THROW(Bundle::parse(text + "\n", "here"), Error);
}

TEST(Bundle, NamesLeadNowhereElse) {
  for (const char* name :
       {"", "/etc/passwd", "..", "../a", "a/../b", "a/..", "a//b", "./a", "a/", "a\nb", "a\x01"}) {
    EXPECT_NE(why_no_bundle_name(name), "") << name;
    EXPECT_THROW(Bundle::parse(Bundle{Json::object(), {{name, "x"}}}.serialize(), "here"), Error) << name;
  }
  for (const char* name : {"a", "a/b", "a..b", "...", "cpu@site/r0/s00.dgk", "with blank"})
    EXPECT_EQ(why_no_bundle_name(name), "") << name;
  for (const auto& [one, other] : {std::pair{"a", "a"}, {"a", "a/b"}, {"a/b/c", "a/b"}})
    EXPECT_THROW(Bundle::parse(Bundle{Json::object(), {{one, ""}, {other, ""}}}.serialize(), "here"), Error);
}

TEST(Bundle, LengthsThatNothingCouldHaveAreRefusedBeforeAnythingIsRead) {
  for (const char* line : {"deepgen.bundle/1 9999999999\n", "deepgen.bundle/1 -1\n", "deepgen.bundle/1 01\n",
                           "deepgen.bundle/1 \n", "deepgen.bundle/1 1e3\n", "deepgen.bundle/2 1\n",
                           "Welcome\n", "deepgen.bundle/1 12345678901234567890"})
    EXPECT_THROW(bundle_size(line, "here"), Error) << line;
}

TEST(Messages, ComeBackAsTheyWere) {
  const Request request{"deepgen 1", {"compile", "--slot", "0"}, {"a/b"}, "cpu", "Some CPU"};
  const Request r = Request::from_json(request.to_json(), "here");
  EXPECT_EQ(r.to_json(), request.to_json());
  const Response response{"refused", "why", 3};
  EXPECT_EQ(Response::from_json(response.to_json(), "here").to_json(), response.to_json());
  const auto started = Started::parse(Started{"deepgen 1", "node7", "12.0", 99}.line());
  ASSERT_TRUE(started);
  EXPECT_EQ(started->node, "node7");
  EXPECT_EQ(started->job, "12.0");
  EXPECT_FALSE(Started::parse("Welcome to node7"));
}

TEST(Messages, OfOthersAreRefused) {
  Json json = Request{"id", {"compile"}, {"../x"}, "", ""}.to_json();
  EXPECT_THROW(Request::from_json(json, "here"), Error) << "an output outside";
  json["outputs"] = Json::array();
  json["command"] = Json::array({std::string("a\0b", 3)});
  EXPECT_THROW(Request::from_json(json, "here"), Error) << "a word that would end early";
  json = Response{}.to_json();
  json["status"] = "fine";
  EXPECT_THROW(Response::from_json(json, "here"), Error);
}

} // namespace
} // namespace deepgen::bundle_test
