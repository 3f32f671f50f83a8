// Workers: what they tell, how they end, and whose fault that is.
#include "base/json/json.h"
#include "base/text/error.h"
#include "measure/process/stopwatch.h"
#include "measure/process/worker.h"
#include "measure/values/buffers.h"
#include "tests/unit/stopped.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace deepgen::worker_test {
namespace {

TEST(Worker, DeliversMessagesAndEnds) {
  std::vector<int> seen;
  const WorkerEnd end = run_worker(
      [](Channel& channel) {
        channel.step("counting", 5);
        // Words of the protocol may be words of a message.
        for (int i = 0; i < 1000; ++i) channel.send({{"i", i}, {"error", 1}, {"done", 2}, {"step", 3}});
      },
      [&](const Json& m) { seen.push_back(m.value("i", -1)); });
  EXPECT_EQ(end.kind, WorkerEnd::done);
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_EQ(seen.back(), 999);
}

TEST(Worker, SurvivesCrashAndHang) {
  const auto ignore = [](const Json&) {};
  WorkerEnd end = run_worker(
      [](Channel& channel) {
        channel.step("the bad part", 5);
        std::abort();
      },
      ignore);
  EXPECT_EQ(end.kind, WorkerEnd::crash);
  EXPECT_EQ(end.detail, "SIGABRT in: the bad part");
  EXPECT_FALSE(end.killed);
  EXPECT_TRUE(run_worker([](Channel&) { raise(SIGKILL); }, ignore).killed);
  const double start = wall_seconds();
  end = run_worker(
      [](Channel& channel) {
        channel.step("sleeping", 0.2);
        pause();
      },
      ignore);
  EXPECT_EQ(end.kind, WorkerEnd::timeout);
  EXPECT_FALSE(end.killed) << "by whom, if not by us";
  EXPECT_LT(wall_seconds() - start, 5);
  EXPECT_THROW(run_worker([](Channel&) { throw Error("bad input"); }, ignore), Error);
}

TEST(Worker, IsLateWhenItsTimeIsOver) {
  int messages = 0;
  const WorkerEnd end = run_worker(
      [](Channel& channel) {
        channel.step("sleeping", 60);
        channel.send({{"i", 1}});
        pause();
      },
      [&](const Json&) { ++messages; }, wall_seconds() + 0.5);
  EXPECT_EQ(end.kind, WorkerEnd::late);
  EXPECT_EQ(end.detail, "its time was over in: sleeping");
  EXPECT_FALSE(end.killed);
  EXPECT_EQ(messages, 1);
  EXPECT_EQ(run_worker([](Channel&) {}, [](const Json&) {}, wall_seconds() + 60).kind, WorkerEnd::done);
}

/// Why run_worker() threw a HostFault; empty when it did not.
std::string host_fault(const std::function<void(Channel&)>& body) {
  try {
    run_worker(body, [](const Json&) {});
  } catch (const HostFault& e) {
    return e.what();
  }
  return "";
}

/// Not the fault of what runs in it, even where it runs through code that bears no exception.
TEST(Worker, LackOfMemoryIsTheHosts) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends a process that finds no memory";
#endif
  const auto exhaust = [](Channel& channel) noexcept {
    channel.step("the large part", 20);
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
    std::vector<std::string> all;
    while (true) all.emplace_back(size_t(1) << 20, 'x');
  };
  const std::string text = host_fault(exhaust);
  for (const char* part : {"not enough memory", "in: the large part", "the machine has", "remedy:"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  const std::string operand = host_fault([](Channel& channel) {
    channel.step("operands", 20);
    auto room = std::make_unique<std::string>(size_t(1) << 16, 'x');
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
    room.reset(); // what the heap has free suffices for the message
    const GuardedMatrix matrix("C", Type::f32, View::dense(1024, 1024, 1), Guard::behind, false);
  });
  for (const char* part :
       {"where:  C", " MiB (", "bytes) were refused", "the limit on address space is 0 bytes (ulimit -v)",
        "remedy:", "in:     operands"})
    EXPECT_NE(operand.find(part), std::string::npos) << operand;
  EXPECT_EQ(host_fault([](Channel&) {}), "");
  try {
    GuardedWorkspace workspace(int64_t(1) << 50);
    FAIL();
  } catch (const HostFault& e) {
    FAIL() << "no machine has that, so it is the config's: " << e.what();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("workspace"), std::string::npos) << e.what();
  }
}

/// Ctrl-Z for longer than the limit.
TEST(Worker, TimeInWhichBothWereStoppedDoesNotCount) {
  const auto body = [](const Work& work) {
    const auto in_worker = [&](Channel& channel) {
      channel.step("working", 1);
      const double start = wall_seconds();
      if (!work()) _exit(9);
      channel.send({{"clock went on", wall_seconds() - start > 2}});
    };
    bool went_on = false;
    const WorkerEnd end =
        run_worker(in_worker, [&](const Json& m) { went_on = m.value("clock went on", true); });
    return end.kind != WorkerEnd::done ? 1 : went_on ? 2 : 0;
  };
  EXPECT_EQ(status_after_stop(std::chrono::milliseconds(2500), body), 0)
      << "1: it was a timeout; 2: the budget ran out meanwhile";
}

} // namespace
} // namespace deepgen::worker_test
