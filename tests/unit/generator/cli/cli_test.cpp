#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/numbers.h"
#include "generator/cli/groups.h"
#include "generator/cli/inputs.h"
#include "generator/cli/isolate.h"
#include "generator/lock/exchange.h"
#include "tests/unit/stopped.h"

#include "tests/paths.h"
#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deepgen::cli_test {
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

TEST(Groups, AnOptionThatMayHaveManyValuesHasOneAtLeast) {
  Words words = {"lock", "check", "--problem", "a", "b", "--arch", "cpu", "--problem"};
  const std::vector<Group> groups = take_groups(words);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].at_least_one("--problem"), (Words{"a", "b"}));
  EXPECT_THROW(groups[1].at_least_one("--problem"), Error);
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

/// Says nothing about the work.
TEST(Isolate, WhatTheHostCannotDoIsToldApart) {
  const Isolated thrown = run_isolated([]() -> std::string { throw HostFault("no pipe"); }, 60);
  EXPECT_EQ(thrown.host, "no pipe");
  EXPECT_FALSE(thrown.threw);
#ifndef __SANITIZE_ADDRESS__ // which ends a process that finds no memory
  const Isolated exhausted = run_isolated(
      []() noexcept -> std::string {
        const rlimit none = {0, 0};
        setrlimit(RLIMIT_AS, &none);
        std::vector<std::string> all;
        while (true) all.emplace_back(size_t(1) << 20, 'x');
      },
      60);
  EXPECT_NE(exhausted.host.find("not enough memory"), std::string::npos)
      << exhausted.failure << exhausted.errors;
  EXPECT_GT(exhausted.peak_bytes, 1 << 20);
#endif
  const Isolated of_llvm =
      run_isolated([]() -> std::string { llvm::report_bad_alloc_error("Allocation failed"); }, 60);
  EXPECT_NE(of_llvm.host.find("not enough memory"), std::string::npos) << of_llvm.failure;
  EXPECT_EQ(run_isolated([]() -> std::string { throw std::runtime_error("bad"); }, 60).host, "");
}

TEST(Isolate, TimeInWhichBothWereStoppedDoesNotCount) {
  const auto body = [](const Work& work) {
    return run_isolated([&] { return work() ? std::string("done") : std::string(); }, 1).result != "done";
  };
  EXPECT_EQ(status_after_stop(std::chrono::seconds(2), body), 0);
}

TEST(Inputs, AProblemsPathMayHaveSpaces) {
  const std::string folder = testing::TempDir() + "with a space " + std::to_string(getpid()),
                    path = folder + "/problem m=4.json";
  const ProblemFile file = ProblemFile::read(paths::in_source("tests/fuzz/corpus/problem/one"));
  write_atomically(path, read_file(paths::in_source("tests/fuzz/corpus/problem/one")));
  EXPECT_EQ(problem_of(path), file.problem);
  EXPECT_EQ(problem_of(file.problem.key()), file.problem);
  for (const std::string& bad : {path + ".absent", std::string("m=4 n=4 k=4"), std::string("gemm m=4")})
    EXPECT_THROW(problem_of(bad), Error) << bad;
  std::filesystem::remove_all(folder);
}

TEST(Numbers, OnlyNumbersWithinTheRange) {
  const CLI::Validator check = within(0.1, 86400);
  for (const char* good : {"0.1", "1", "86400", "1e3"}) EXPECT_EQ(check(std::string(good)), "") << good;
  for (const char* bad : {"nan", "NaN", "-nan", "nan(1)", "inf", "-inf", "0", "-1", "1e999", "", "x", "1x"})
    EXPECT_NE(check(std::string(bad)), "") << bad;
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
          while (write(started[1], "x", 1) == 1) pause();
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
  for (int fd : {alive[0], started[0], started[1]}) close(fd);
}

} // namespace
} // namespace deepgen::cli_test
