// Verification and the commands of deepgen-measure, on kernels that are jumps into this test program.
#include "base/files/files.h"
#include "base/text/error.h"
#include "measure/commands/run.h"
#include "measure/devices/devices.h"
#include "measure/process/stopwatch.h"
#include "measure/vendor/cpu/vendor.h"
#include "tests/unit/measure/verified.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deepgen::verify_test {
namespace {

namespace fs = std::filesystem;
using namespace test_kernels;

/// The verdict on an entry, as the worker-driven verification has it.
Record verify_one(const std::string& code) { return verified({kernel_of(code)}); }
Record verify_one(Entry entry, double call_seconds = 10) {
  return verified({kernel_of(entry)}, call_seconds);
}

// --- verification
// -------------------------------------------------------------------------------------------------

TEST(Verify, AcceptsACorrectKernel) {
  const Record r = verify_one(good);
  EXPECT_EQ(r.status, "") << r.detail;
  EXPECT_GT(r.error, 0);
  EXPECT_LT(r.error, 1);
}

struct Bad {
  const char* name;
  Entry entry;
  const char *status, *detail;
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }
class VerifyBad : public testing::TestWithParam<Bad> {};
TEST_P(VerifyBad, IsFound) {
  const Record r = verify_one(GetParam().entry, 0.3);
  EXPECT_EQ(r.status, GetParam().status) << r.detail;
  EXPECT_NE(r.detail.find(GetParam().detail), std::string::npos) << r.detail;
}
INSTANTIATE_TEST_SUITE_P(Kernels, VerifyBad,
                         testing::Values(Bad{"term", drops_a_term, "wrong", "dense"},
                                         Bad{"c", reads_c, "wrong", "column"},
                                         Bad{"rows", ignores_m0, "wrong", "in place"},
                                         Bad{"columns", ignores_n0, "wrong", "in place by columns"},
                                         Bad{"entries", ignores_b0, "wrong", "alpha 0"},
                                         Bad{"ld", ignores_ld, "out_of_bounds", "between rows"},
                                         Bad{"row", writes_past_rows, "out_of_bounds", "behind the end of D"},
                                         Bad{"input", writes_a, "out_of_bounds", "write to the input A"},
                                         Bad{"read", reads_past_b, "out_of_bounds", "behind the end of B"},
                                         Bad{"unwritten", skips_last, "wrong", "not written"},
                                         Bad{"hang", hangs, "timeout", "0.3 s"},
                                         Bad{"exit", calls_exit, "crash", "ended"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Verify, CrashNamesTheSignal) {
  const Record r = verify_one(std::string("\x0f\x0b", 2)); // ud2
  EXPECT_EQ(r.status, "crash");
  EXPECT_NE(r.detail.find("SIGILL"), std::string::npos) << r.detail;
}

TEST(Verify, GoesOnAfterCrashes) {
  std::vector<Candidate> candidates(5);
  const Entry entries[] = {good, calls_exit, good, writes_a, good};
  std::vector<Candidate*> list;
  for (size_t i = 0; i < 5; ++i) {
    candidates[i].file.kernels = {kernel_of(entries[i])};
    candidates[i].record.status = "";
    list.push_back(&candidates[i]);
  }
  verify_small(list);
  for (size_t i : {0, 2, 4}) EXPECT_TRUE(candidates[i].open()) << candidates[i].record.detail;
  EXPECT_EQ(candidates[1].record.status, "crash");
  EXPECT_EQ(candidates[3].record.status, "out_of_bounds");
}

TEST(Verify, AnyExceptionIsTheCandidatesOwn) {
  std::vector<Candidate> candidates(2);
  candidates[0].file.kernels = {kernel_of(good)};
  candidates[0].file.kernels[0].args[0] = "no such argument"; // at which the loader throws
  candidates[1].file.kernels = {kernel_of(good)};
  std::vector<Candidate*> list;
  for (Candidate& c : candidates) c.record.status = "", list.push_back(&c);
  verify_small(list);
  EXPECT_EQ(candidates[0].record.status, "unsupported") << candidates[0].record.detail;
  EXPECT_TRUE(candidates[1].open()) << candidates[1].record.detail;
}

/// What verify_all() does with a good candidate in a process of its own in which `prepare` has gone before:
/// "verified", "recorded: <status>", or the HostFault.
std::string outcome_after(const std::function<bool()>& prepare, Entry entry = good) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    Candidate c;
    c.file.kernels = {kernel_of(entry)};
    c.record.status = "";
    GemmCases cases(small_problem(), 1);
    VerifyOptions options;
    options.deadline = wall_seconds() + 60;
    Progress progress("test");
    try {
      if (!prepare()) _exit(77);
      verify_all({&c}, cases, options, progress);
      text = c.open() ? "verified" : "recorded: " + c.record.status;
    } catch (const HostFault& e) {
      text = std::string(e.what()) + (c.open() ? "" : "; and recorded");
    }
    _exit(write(ends[1], text.data(), text.size()) < 0);
  }
  close(ends[1]);
  char text[4096];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 77 ? "skip" : std::string(text, size_t(std::max<ssize_t>(size, 0)));
}

/// A policy that no memory which was writable may become executable.
TEST(Verify, AHostThatRunsNoNewCodeIsNoVerdict) {
  constexpr int kSet = 65, kRefuseExecGain = 1; // PR_SET_MDWE, of Linux 6.3
  const std::string text = outcome_after([] { return prctl(kSet, kRefuseExecGain, 0, 0, 0) == 0; });
  if (text == "skip") GTEST_SKIP() << "the kernel has no such policy";
  for (const char* part :
       {"cannot make a kernel's memory executable", "Permission denied", "run the same command again"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("recorded"), std::string::npos) << text;
}

TEST(Verify, LackOfMemoryIsNoVerdict) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends a process that finds no memory";
#endif
  const std::string text = outcome_after([] {
    const rlimit none = {0, 0};
    return setrlimit(RLIMIT_AS, &none) == 0;
  });
  EXPECT_NE(text.find("not enough memory"), std::string::npos) << text;
  EXPECT_EQ(text.find("recorded"), std::string::npos) << text;
}

int* kills_left = nullptr; ///< in memory that workers share

void is_killed(const uint64_t* args) {
  if ((*kills_left)-- > 0) raise(SIGKILL);
  good(args);
}

TEST(Verify, AWorkerThatIsKilledIsNoVerdict) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  kills_left = static_cast<int*>(page);
  *kills_left = 1;
  EXPECT_EQ(outcome_after([] { return true; }, is_killed), "verified") << "it runs again";
  *kills_left = 2;
  const std::string text = outcome_after([] { return true; }, is_killed);
  for (const char* part : {"killed from elsewhere, twice", "SIGKILL in: main kernel",
                           "lack of memory, perhaps: it had", "dmesg"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("recorded"), std::string::npos) << text;
  munmap(page, 4096);
}

TEST(Verify, ChecksEveryKernelOfTheFile) {
  Candidate c;
  c.file.kernels = {kernel_of(good), kernel_of(jump_to(drops_a_term), "awkward")};
  c.record.status = "";
  verify_small({&c});
  EXPECT_EQ(c.record.status, "wrong");
  EXPECT_NE(c.record.detail.find("awkward"), std::string::npos);
}

TEST(Loader, RefusesWhatItDoesNotKnow) {
  Kernel k = kernel_of(good);
  k.args[0] = "tensor_map";
  EXPECT_THROW(LoadedKernel{k}, Error);
  k = kernel_of(good);
  k.entry = int64_t(k.code.size());
  EXPECT_THROW(LoadedKernel{k}, Error);
}

// --- commands
// -----------------------------------------------------------------------------------------------------

class Commands : public testing::Test {
protected:
  fs::path folder = fs::temp_directory_path() / ("deepgen-measure-test-" + std::to_string(getpid()));
  MeasureOptions options;

  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
    write_atomically(path("device.json"), find_device("cpu").to_json().dump());
    options.seconds = 3;
    options.call_seconds = 0.5;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) { return (folder / name).string(); }

  static Choice choice(int64_t i, int round = 0) {
    return {"test", Config::parse("x=" + std::to_string(100 * round + i))};
  }
  void write_slot(int round, int64_t slot, KernelFile file) {
    file.problem = small_problem();
    char name[32];
    std::snprintf(name, sizeof name, "r%d/s%02d.dgk", round, int(slot));
    write_atomically(path(name), file.serialize());
  }
  void write_kernel(int round, int64_t slot, Entry entry, int64_t isa = 1) {
    KernelFile file;
    file.choice = choice(slot, round);
    file.origin = slot == 0 && round == 0 ? "default" : "model";
    file.kernels = {kernel_of(entry)};
    file.kernels[0].isa = isa;
    write_slot(round, slot, file);
  }
  void write_plan(int round, int64_t slots) {
    Plan plan;
    plan.problem = small_problem();
    plan.round = round;
    for (int64_t i = 0; i < slots; ++i)
      plan.slots.push_back({choice(i, round), i == 0 && round == 0 ? "default" : "model"});
    write_atomically(path("r" + std::to_string(round) + "/plan.json"), plan.serialize());
  }
  RecordLog run_round(int round, int64_t slots, bool with_anchor = false) {
    const std::string r = "r" + std::to_string(round);
    RunCommand command;
    command.plan = path(r + "/plan.json"), command.kernels = path(r), command.device = path("device.json");
    command.anchor = with_anchor ? path("r0/s00.dgk") : "";
    command.output = path(r + "/records.jsonl");
    command.slots = slots, command.options = options;
    run(command);
    return RecordLog::read(path(r + "/records.jsonl"));
  }
  /// Another kernel in the first slot, and in the log the hash of it, or the file would be refused as
  /// changed.
  void replace_default(Entry entry) {
    KernelFile file = KernelFile::read(path("r0/s00.dgk"));
    const std::string before = file.kernels[0].sha256, log = path("r0/records.jsonl");
    file.kernels[0] = kernel_of(entry);
    write_slot(0, 0, file);
    const std::string after = KernelFile::read(path("r0/s00.dgk")).kernels[0].sha256;
    std::string text = read_file(log);
    for (size_t at = 0; (at = text.find(before, at)) != std::string::npos;)
      text.replace(at, before.size(), after);
    write_atomically(log, text);
  }
  RecordLog run_playoff(std::vector<std::string> logs) {
    for (std::string& log : logs) log = path(log);
    playoff({path("device.json"), path("final.jsonl"), logs, options, {}});
    return RecordLog::read(path("final.jsonl"));
  }
};

TEST_F(Commands, OneRecordForEachSlotWhateverItDoes) {
  write_plan(0, 9);
  write_kernel(0, 0, twice);
  write_kernel(0, 1, good);
  write_kernel(0, 2, drops_a_term);
  write_kernel(0, 3, hangs);
  write_kernel(0, 4, calls_exit);
  write_kernel(0, 5, good);
  write_kernel(0, 6, good_again, 9);
  write_kernel(0, 7, slow);
  KernelFile failed;
  failed.status = "failed", failed.detail = "no registers left", failed.choice = choice(8);
  write_slot(0, 8, failed);
  KernelFile empty;
  empty.status = "empty";
  write_slot(0, 9, empty);
  const RecordLog log = run_round(0, 10);
  const char* expected[] = {"ok",        "ok",          "wrong",   "timeout",      "crash",
                            "duplicate", "unsupported", "dropped", "compile_error"};
  ASSERT_EQ(log.records.size(), 9u);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(log.records[i].status, expected[i]) << i << ": " << log.records[i].detail;
    EXPECT_EQ(log.records[i].slot, int64_t(i));
    EXPECT_EQ(log.records[i].stage, "r0");
  }
  EXPECT_EQ(log.records[0].timing->ratio, 1);
  EXPECT_LT(log.records[1].timing->ratio, 0.8);
  EXPECT_EQ(log.records[1].kernel_file, "s01.dgk");
  EXPECT_EQ(log.records[5].detail, "the same code as r0/1");
  EXPECT_EQ(log.records[8].detail, "no registers left");
  EXPECT_EQ(log.environment["anchor"], "default");
  EXPECT_EQ(log.environment["profile"], "cpu-interleaved/3");
}

TEST_F(Commands, PlayoffTimesTheBestOfAllRounds) {
  write_plan(0, 2);
  write_kernel(0, 0, twice);
  write_kernel(0, 1, drops_a_term);
  run_round(0, 2);
  write_plan(1, 2);
  write_kernel(1, 0, good);
  write_kernel(1, 1, twice); // the default again: no finalist of its own
  const RecordLog second = run_round(1, 2, true);
  EXPECT_LT(second.records[0].timing->ratio, 0.8) << "against the anchor of round 0";
  const RecordLog final = run_playoff({"r0/records.jsonl", "r1/records.jsonl"});
  const bool vendor = Vendor::open().has_value();
  ASSERT_EQ(final.records.size(), vendor ? 6u : 4u) << "each in the finals and in the hold-out";
  for (size_t i = final.records.size() / 2; i < final.records.size(); ++i)
    EXPECT_EQ(final.records[i].stage, "holdout");
  EXPECT_EQ(final.records[0].origin, "default");
  EXPECT_EQ(final.records[0].stage, "final");
  EXPECT_EQ(final.records[1].kernel_file, "r1/s00.dgk");
  EXPECT_GT(final.records[1].timing->samples, 10);
  EXPECT_LT(final.records[1].timing->high, 0.9);
  EXPECT_GT(final.noise_floor, 0);
  if (vendor) {
    EXPECT_TRUE(final.records[2].is_vendor());
    EXPECT_EQ(final.records[2].origin.rfind("openblas", 0), 0u);
    EXPECT_GT(final.records[2].timing->seconds, 0);
  }
}

TEST_F(Commands, PlayoffWithoutAnyCorrectCandidate) {
  write_plan(0, 2);
  write_kernel(0, 0, drops_a_term);
  write_kernel(0, 1, writes_a);
  EXPECT_EQ(run_round(0, 2).environment["anchor"], "none");
  const RecordLog final = run_playoff({"r0/records.jsonl"});
  ASSERT_EQ(final.records.size(), 1u);
  EXPECT_EQ(final.records[0].status, "wrong");
  EXPECT_EQ(final.records[0].stage, "final");
}

TEST_F(Commands, AFailedDefaultLeavesTheOthersComparable) {
  write_plan(0, 3);
  write_kernel(0, 0, drops_a_term);
  write_kernel(0, 1, twice);
  write_kernel(0, 2, good);
  const RecordLog log = run_round(0, 3);
  EXPECT_EQ(log.environment["anchor"], "the default failed, instead: r0/1");
  EXPECT_LT(log.records[2].timing->ratio, 0.8);
  const RecordLog final = run_playoff({"r0/records.jsonl"});
  EXPECT_EQ(final.records[0].status, "wrong");
  EXPECT_TRUE(final.records[1].ok());
}

/// The default passes its round and then fails in the playoff: the noise is that of the finalist in its
/// place.
TEST_F(Commands, ADefaultThatFailsWhileTimedLeavesANoiseFloor) {
  write_plan(0, 3);
  write_kernel(0, 0, twice);
  write_kernel(0, 1, good);
  write_kernel(0, 2, good_again);
  run_round(0, 3);
  replace_default(calls_exit);
  const RecordLog final = run_playoff({"r0/records.jsonl"});
  EXPECT_EQ(final.records[0].origin, "default");
  EXPECT_EQ(final.records[0].status, "crash");
  EXPECT_EQ(final.environment["anchor"], "the default failed, instead: a finalist");
  EXPECT_TRUE(final.records[1].ok());
  EXPECT_EQ(final.records[1].timing->ratio, 1);
  EXPECT_GT(final.noise_floor, 0);
}

TEST_F(Commands, APlayoffThatTimesNothingIsUnstable) {
  write_plan(0, 1);
  write_kernel(0, 0, good);
  run_round(0, 1);
  replace_default(calls_exit);
  const RecordLog final = run_playoff({"r0/records.jsonl"});
  ASSERT_EQ(final.records.size(), 1u) << "no vendor: there is nothing to compare it with";
  EXPECT_EQ(final.records[0].status, "crash");
  EXPECT_EQ(final.noise_floor, 0);
  EXPECT_FALSE(final.stable);
}

TEST_F(Commands, BadInputIsAnErrorThatNamesTheFile) {
  write_plan(0, 2);
  write_kernel(0, 0, twice);
  try {
    run_round(0, 2);
    FAIL() << "slot 1 is missing";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("s01.dgk"), std::string::npos) << e.what();
  }
  write_kernel(0, 1, good);
  run_round(0, 2);
  KernelFile other;
  other.choice = choice(7);
  other.kernels = {kernel_of(good_again)};
  write_slot(0, 1, other);
  EXPECT_THROW(run_round(0, 2), Error) << "not what the plan says";
  EXPECT_THROW(run_playoff({"r0/records.jsonl"}), Error) << "not what was measured";
  write_kernel(0, 1, good);
  std::string damaged = read_file(path("r0/s01.dgk"));
  damaged.back() ^= 1;
  write_atomically(path("r0/s01.dgk"), damaged);
  EXPECT_THROW(run_round(0, 2), Error) << "not what was compiled";
  EXPECT_FALSE(file_exists(path("final.jsonl")));
}

} // namespace
} // namespace deepgen::verify_test
