// How many CPUs a process may use: what quotas of cgroups leave of them.
#include "runtime/core/cpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using namespace deepgen;

/// A folder as /sys/fs/cgroup, and a file as /proc/self/cgroup.
class Quota : public ::testing::Test {
protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
  }
  int of(const std::string& memberships) {
    write("memberships", memberships);
    return cpus::of_quota((folder / "memberships").c_str(), folder.c_str());
  }
  const fs::path folder = fs::path(::testing::TempDir()) / ("cpus_test_" + std::to_string(getpid()));
};

TEST_F(Quota, OfVersion2IsTheLeastOfAGroupAndOfThoseThatHoldIt) {
  write("a/b/cpu.max", "800000 100000\n");
  EXPECT_EQ(of("0::/a/b\n"), 8);
  write("a/cpu.max", "300000 100000\n");
  EXPECT_EQ(of("0::/a/b\n"), 3);
  write("cpu.max", "max 100000\n");
  EXPECT_EQ(of("0::/a/b\n"), 3);
  EXPECT_EQ(of("0::/other\n"), 0);
  EXPECT_EQ(of("0::/\n"), 0);
}

TEST_F(Quota, OfVersion1IsThatOfTheControllerOfCpus) {
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  write("cpu/box/cpu.cfs_quota_us", "400000\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(of("5:cpuset:/\n4:cpu,cpuacct:/box\n0::/\n"), 4);
  EXPECT_EQ(of("4:cpuacct,cpu:/box/deeper\n"), 4);
  EXPECT_EQ(of("5:cpuset:/box\n"), 0) << "another controller";
  EXPECT_EQ(of("4:cpu:/\n"), 0);
}

TEST_F(Quota, OfAContainerLiesWhereItsMountBegins) {
  write("cpu.max", "200000 100000\n");
  EXPECT_EQ(of("0::/of/the/host/that/is/not/here\n"), 2);
}

TEST_F(Quota, AFractionIsNoneButOneIsTheLeast) {
  for (auto [text, expected] :
       {std::pair{"250000 100000", 2}, {"199999 100000", 1}, {"50000 100000", 1}, {"1000 100000", 1}}) {
    write("cpu.max", text);
    EXPECT_EQ(of("0::/\n"), expected) << text;
  }
}

TEST_F(Quota, WhatIsNotUnderstoodIsNoLimit) {
  for (const char* text : {"", "\n", "max", "200000", "200000 0", "-5 100000", "many 100000"}) {
    write("cpu.max", text);
    EXPECT_EQ(of("0::/\n"), 0) << text;
  }
  write("cpu.max", "200000 100000");
  EXPECT_EQ(of(""), 0);
  EXPECT_EQ(of("0\n0:\n::\n"), 2) << "the last one is of version 2";
  EXPECT_EQ(of("0::" + std::string(5000, 'x')), 0) << "longer than a path";
  EXPECT_EQ(cpus::of_quota("/nowhere/memberships", folder.c_str()), 0);
}

TEST(Cpus, AreNoMoreThanTheAffinityMaskHas) {
  const int all = cpus::usable();
  EXPECT_GE(all, 1);
  int in_thread = 0;
  std::thread([&] { // the mask is the thread's own
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    EXPECT_LE(all, CPU_COUNT(&mask));
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    in_thread = cpus::usable();
  })
      .join();
  EXPECT_EQ(in_thread, 1);
}

} // namespace
