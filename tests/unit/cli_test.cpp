#include "base/error.h"
#include "generator/cli/groups.h"
#include "generator/cli/isolate.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>
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
  EXPECT_FALSE(crash.killed);
  EXPECT_TRUE(run_isolated([] { return raise(SIGKILL), std::string(); }, 60).killed);
  const Isolated hang = run_isolated([] { return pause(), std::string(); }, 0.1);
  EXPECT_NE(hang.failure.find("took longer"), std::string::npos);
  EXPECT_FALSE(hang.killed) << "by whom, if not by us";
  const Isolated thrown = run_isolated([]() -> std::string { throw std::runtime_error("no registers"); }, 60);
  EXPECT_TRUE(thrown.threw);
  EXPECT_EQ(thrown.errors, "no registers");
  EXPECT_EQ(run_isolated([]() -> std::string { _exit(3); }, 60).failure, "ended with status 3");
}

/// A child that outlived its parent would keep the parent's locks.
TEST(Isolate, ChildDiesWithItsParent) {
  int alive[2], started[2];
  ASSERT_EQ(pipe(alive), 0);
  ASSERT_EQ(pipe(started), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    run_isolated(
        [&] {
          while (write(started[1], "x", 1) == 1)
            pause();
          return std::string();
        },
        60);
    _exit(0);
  }
  close(alive[1]);
  char x = 0;
  ASSERT_EQ(read(started[0], &x, 1), 1);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  pollfd ended = {alive[0], POLLIN, 0}; // hangs up when the last holder of the other end is gone
  EXPECT_EQ(poll(&ended, 1, 10000), 1) << "the child still runs";
  for (int fd : {alive[0], started[0], started[1]})
    close(fd);
}

} // namespace
} // namespace deepgen
