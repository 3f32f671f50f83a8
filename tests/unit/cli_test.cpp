#include "base/error.h"
#include "generator/cli/groups.h"
#include "generator/cli/isolate.h"

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <stdexcept>
#include <unistd.h>

namespace deepgen {
namespace {

using Words = std::vector<std::string>;

TEST(Groups, AreTakenOutOfTheArguments) {
  Words words = {"lock",      "merge", "--lock",    "L", "--problem", "p1",
                 "--arch",    "cpu",   "--records", "a", "b",         "--problem=p2",
                 "--records", "c",     "--stamp",   "S"};
  const std::vector<Group> groups = take_groups(words);
  EXPECT_EQ(words, (Words{"lock", "merge", "--lock", "L", "--stamp", "S"}));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].one("--problem"), "p1");
  EXPECT_EQ(groups[0].many("--records"), (Words{"a", "b"}));
  EXPECT_EQ(groups[1].one("--problem"), "p2");
  EXPECT_EQ(groups[1].one_or("--arch", "cpu"), "cpu");
  EXPECT_THROW(groups[0].one("--records"), Error) << "two values";
  EXPECT_THROW(groups[1].one("--arch"), Error) << "none";
}

TEST(Groups, OtherCommandsKeepTheirArguments) {
  Words words = {"plan", "--problem", "p", "-o", "x"};
  const Words before = words;
  EXPECT_TRUE(take_groups(words).empty());
  EXPECT_EQ(words, before);
  Words early = {"select", "-o", "x", "--problem", "p"};
  EXPECT_THROW(take_groups(early), Error);
}

TEST(Isolate, ReturnsTheResult) {
  const std::string large(3 << 20, 'x'); // more than a pipe holds
  const Isolated i = run_isolated([&] { return large; }, 60);
  EXPECT_EQ(i.failure, "");
  EXPECT_EQ(i.result, large);
}

TEST(Isolate, CrashesHangsAndExceptionsAreResults) {
  const Isolated crash = run_isolated(
      []() -> std::string {
        std::fputs("last words", stderr);
        std::abort();
      },
      60);
  EXPECT_EQ(crash.failure, "was killed by signal 6 (Aborted)");
  EXPECT_EQ(crash.errors, "last words");
  const Isolated hang = run_isolated([] { return pause(), std::string(); }, 0.1);
  EXPECT_NE(hang.failure.find("took longer"), std::string::npos);
  const Isolated thrown = run_isolated([]() -> std::string { throw std::runtime_error("no registers"); }, 60);
  EXPECT_TRUE(thrown.threw);
  EXPECT_EQ(thrown.errors, "no registers");
  EXPECT_EQ(run_isolated([]() -> std::string { _exit(3); }, 60).failure, "ended with status 3");
}

} // namespace
} // namespace deepgen
