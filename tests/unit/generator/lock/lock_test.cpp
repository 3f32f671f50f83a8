#include "base/json/json.h"
#include "generator/lock/lock.h"

#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/lock/evidence.h"
#include "tests/unit/generator/fake_template.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deepgen::lock_test {
namespace {

const std::string kHash(64, '5');
std::string hash_of(int mr) { return std::string(63, 'a') + std::to_string(mr); }

class LockTest : public testing::Test {
protected:
  void SetUp() override {
    register_fake_template();
    folder_ = testing::TempDir() + "lock_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/deepgen.lock.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  LockEntry entry(int64_t m, int64_t mr = 4, const std::string& device = "fake device") {
    Gemm p;
    p.m = m;
    return {p.key(), "fake",  fake_device(4, device), fake_choice(4, mr, 16, 0), 3,
            kHash,   "tools", {{"candidates", 1}}};
  }
  std::string error_of_merge() {
    try {
      merge_into_lock(path_, {entry(1)});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  std::string folder_, path_;
};

TEST_F(LockTest, RoundTripsSortedOneEntryALine) {
  EXPECT_TRUE(Lock::read(path_).entries().empty()) << "an absent lock is empty";
  EXPECT_TRUE(merge_into_lock(path_, {entry(3), entry(1), entry(2)}));
  const std::string text = read_file(path_);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
  const Lock lock = Lock::read(path_);
  ASSERT_EQ(lock.entries().size(), 3u);
  EXPECT_EQ(lock.serialize(), text);
  EXPECT_EQ(lock.entries()[0].problem, entry(1).problem);
  EXPECT_EQ(lock.entries()[2].problem, entry(3).problem);
  EXPECT_EQ(lock.entries()[0].choice, entry(1).choice);
}

TEST_F(LockTest, SameDecisionLeavesTheFileAlone) {
  merge_into_lock(path_, {entry(1), entry(2)});
  const std::string before = read_file(path_);
  LockEntry again = entry(1);
  again.evidence["candidates"] = 99;
  EXPECT_FALSE(merge_into_lock(path_, {again}));
  EXPECT_EQ(read_file(path_), before);
  EXPECT_TRUE(merge_into_lock(path_, {entry(1, 5)}));
  EXPECT_EQ(Lock::read(path_).entries()[0].choice.config["mr"], 5);
  EXPECT_EQ(Lock::read(path_).entries().size(), 2u);
}

TEST_F(LockTest, DevicesHaveEntriesOfTheirOwn) {
  merge_into_lock(path_, {entry(1, 4, "b"), entry(1, 5, "a")});
  const Lock lock = Lock::read(path_);
  ASSERT_EQ(lock.entries().size(), 2u);
  EXPECT_EQ(lock.find(entry(1).problem, "fake", fake_device(4, "b"))->choice.config["mr"], 4);
  EXPECT_EQ(lock.find(entry(1).problem, "fake", fake_device(4, "new"))->choice.config["mr"], 5) << "by name";
  EXPECT_EQ(lock.find(entry(1).problem, "cpu", fake_device()), nullptr);
  EXPECT_EQ(lock.find(entry(9).problem, "fake", fake_device()), nullptr);
}

TEST_F(LockTest, ConcurrentThreadsLoseNothing) {
  std::vector<std::thread> writers;
  for (int t = 0; t < 8; ++t)
    writers.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) merge_into_lock(path_, {entry(1 + t * 10 + i)});
    });
  for (std::thread& t : writers) t.join();
  EXPECT_EQ(Lock::read(path_).entries().size(), 80u);
}

TEST_F(LockTest, MergeWaitsForWhoeverHasTheFolder) {
  std::optional<FileLock> other = FileLock::of_folder(folder_);
  ASSERT_TRUE(other.has_value());
  std::atomic<bool> merged = false;
  std::thread writer([&] { merged = merge_into_lock(path_, {entry(1)}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(merged);
  EXPECT_FALSE(file_exists(path_));
  other.reset();
  writer.join();
  EXPECT_TRUE(merged);
}

TEST_F(LockTest, WrittenFilesHaveTheModeOfTheUmaskAndLeaveNothing) {
  const mode_t before = umask(027);
  write_atomically(path_, "x");
  umask(before);
  const auto mode = std::filesystem::status(path_).permissions();
  EXPECT_EQ(mode, std::filesystem::perms(0640));
  EXPECT_THROW(write_atomically(folder_ + "/no\nfolder/" + std::string(300, 'x'), "x"), Error);
  std::filesystem::create_directories(folder_ + "/taken/in");
  EXPECT_THROW(write_atomically(folder_ + "/taken", "x"), Error);
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_))
    EXPECT_EQ(file.path().string().find(".tmp"), std::string::npos) << file.path();
}

TEST_F(LockTest, AMergeKeepsTheModeAndTellsOfHardLinks) {
  merge_into_lock(path_, {entry(1)});
  std::filesystem::permissions(path_, std::filesystem::perms(0664));
  testing::internal::CaptureStderr();
  merge_into_lock(path_, {entry(2)});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0664));
  std::filesystem::create_hard_link(path_, folder_ + "/other");
  const std::string old = read_file(path_);
  testing::internal::CaptureStderr();
  merge_into_lock(path_, {entry(3)});
  EXPECT_NE(testing::internal::GetCapturedStderr().find(path_ + " had 2 names"), std::string::npos);
  EXPECT_EQ(read_file(folder_ + "/other"), old);
}

TEST_F(LockTest, ConcurrentProcessesLoseNothing) {
  std::filesystem::create_symlink(path_, folder_ + "/link"); // another name of the same file
  std::vector<pid_t> writers;
  for (int t = 0; t < 8; ++t) {
    const pid_t pid = fork();
    if (pid != 0) {
      writers.push_back(pid);
      continue;
    }
    try {
      for (int i = 0; i < 10; ++i)
        merge_into_lock(t % 2 ? path_ : folder_ + "/link", {entry(1 + t * 10 + i)});
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  for (pid_t pid : writers) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Lock::read(path_).entries().size(), 80u);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
}

TEST_F(LockTest, WritesThroughALinkWhoseFileDoesNotExistYet) {
  std::filesystem::create_symlink("deepgen.lock.json", folder_ + "/link");
  EXPECT_TRUE(merge_into_lock(folder_ + "/link", {entry(1)}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(Lock::read(path_).entries().size(), 1u);
}

TEST_F(LockTest, DamagedFilesAreReportedAndNeverOverwritten) {
  merge_into_lock(path_, {entry(1), entry(2)});
  const std::string good = read_file(path_);
  const std::string conflict = "<<<<<<< HEAD\n" + good;
  const std::string twice = good.substr(0, good.find("]\n}")) + "," + entry(2).line() + "\n]\n}\n";
  std::string lacking = good;
  lacking.replace(lacking.find("\"revision\""), 10, "\"revisiom\"");
  for (const std::string& bad : {good.substr(0, good.size() / 2), std::string(), conflict, twice, lacking}) {
    write_atomically(path_, bad);
    const std::string error = error_of_merge();
    EXPECT_NE(error.find(path_), std::string::npos) << "the file is named: " << error;
    EXPECT_EQ(read_file(path_), bad);
  }
}

TEST_F(LockTest, UnknownSchemaIsReportedAndNeverOverwritten) {
  const std::string newer = "{\n\"schema\":\"deepgen.lock/2\",\n\"entries\":[\n]\n}\n";
  write_atomically(path_, newer);
  EXPECT_NE(error_of_merge().find("unknown schema 'deepgen.lock/2'"), std::string::npos);
  EXPECT_EQ(read_file(path_), newer);
}

TEST_F(LockTest, StaleEntriesAreExplained) {
  LockEntry e = entry(1);
  EXPECT_EQ(why_stale(e), "");
  e.revision = 2;
  EXPECT_EQ(why_stale(e), "template fake_tile has revision 3, the entry was tuned with 2");
  e = entry(1);
  e.choice.template_name = "gone";
  EXPECT_NE(why_stale(e).find("unknown template 'gone'"), std::string::npos);
  e = entry(1);
  e.choice = fake_choice(4, 8, 64, 0);
  EXPECT_EQ(why_stale(e), "mr * nr = 512 > 128 accumulators");
  e = entry(1);
  e.problem = "conv m=1";
  EXPECT_NE(why_stale(e), "");
}

TEST_F(LockTest, AnEntryThatSaysNothingOfTheCodeIsStale) {
  const std::string hash(64, 'f');
  for (const std::string& bad :
       {std::string(), std::string("ab"), hash + "0", std::string(64, 'F'), std::string(64, 'g')}) {
    LockEntry e = entry(1);
    e.sha256 = bad;
    EXPECT_NE(why_stale(e).find("64 lower-case hex digits"), std::string::npos) << bad;
    Lock lock;
    lock.put(e);
    EXPECT_EQ(Lock::parse(lock.serialize(), "x").entries()[0].sha256, bad) << "the others can still be read";
  }
}

TEST_F(LockTest, NamesAreRefusedThatAreNone) {
  Lock lock;
  lock.put(entry(1));
  const std::string good = lock.serialize();
  for (const char* field : {"fake device", "fake_tile", "tools", "fake\""})
    for (const char* bad : {"\\u001b[2J", "a\\nb", "\\u202e", "\\u0085"}) {
      std::string text = good;
      text.replace(text.find(field), 1, bad);
      EXPECT_THROW(Lock::parse(text, "x"), Error) << field << bad;
    }
  std::string text = good;
  text.replace(text.find("fake device"), 4, std::string(300, 'x'));
  EXPECT_THROW(Lock::parse(text, "x"), Error) << "too long";
  text = good;
  text.replace(text.find("\"mr\""), 4, "\"m */ r\"");
  EXPECT_THROW(Lock::parse(text, "x"), Error) << "a parameter that is no word";
}

TEST_F(LockTest, EvidenceMayBeMissingOrAnything) {
  Lock lock;
  lock.put(entry(1));
  const std::string good = lock.serialize();
  const size_t at = good.find(",\"evidence\"");
  const std::string missing = good.substr(0, at) + "}\n]\n}\n";
  EXPECT_EQ(Lock::parse(missing, "x").entries()[0].choice, entry(1).choice);
  EXPECT_EQ(why_stale(Lock::parse(missing, "x").entries()[0]), "");
  for (const char* odd : {"5", "[]", "null", "\"x\"",
                          "{\"ratio\":7,\"vendor\":[1,2],\"rounds\":\"many\",\"clock_mhz\":[1],\"driver\":3}",
                          "{\"ratio\":[1,2],\"vendor\":{},\"legal\":1.5,\"complete\":1,\"noise_floor\":\"x\","
                          "\"verdict\":[]}"}) {
    const Lock read = Lock::parse(good.substr(0, at) + ",\"evidence\":" + odd + "}\n]\n}\n", "x");
    EXPECT_EQ(why_stale(read.entries()[0]), "");
    const std::string text = statement(read.entries()[0].evidence, fake_device());
    EXPECT_NE(text.find(odd[0] == '{' ? "unreadable:" : "the evidence is no object"), std::string::npos)
        << text;
    EXPECT_EQ(Lock::parse(read.serialize(), "x").serialize(), read.serialize());
  }
}

/// Runs the tool; its status, and in `output` what it printed.
int run_tool(std::vector<std::string> words, std::string& output) {
  words.insert(words.begin(), "deepgen");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = deepgen_main(int(argv.size()), argv.data());
  output = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  return status;
}

class LockCommandTest : public LockTest {
protected:
  std::string write_problem(int64_t m) {
    Gemm p;
    p.m = m;
    const std::string path = folder_ + "/build/_deepgen/kernels/f" + std::to_string(m) + "/problem.json";
    const Json json = {
        {"schema", "deepgen.problem/1"}, {"target", "kernels"}, {"name", "f" + std::to_string(m)},
        {"namespace", "kernels"},        {"problem", p.key()},  {"untuned", false}};
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_atomically(path, json.dump());
    return path;
  }
};

TEST_F(LockCommandTest, PruneListsAndThenRemovesWhatNoBuildHas) {
  std::string output;
  merge_into_lock(path_, {entry(1), entry(2), entry(2, 5, "b"), entry(3)});
  const std::string before = read_file(path_), kept = write_problem(3);
  const std::vector<std::string> dry = {
      "lock", "prune", "--lock", path_, "--build", folder_ + "/build", "--problem", write_problem(1)};
  EXPECT_EQ(run_tool(dry, output), 0);
  EXPECT_NE(output.find("would be removed: " + entry(2).problem + " on fake (b)"), std::string::npos)
      << output;
  EXPECT_NE(output.find("2 of 4 entries are of no problem given; --remove"), std::string::npos) << output;
  EXPECT_EQ(read_file(path_), before);
  std::vector<std::string> wet = dry;
  wet.push_back("--remove");
  EXPECT_EQ(run_tool(wet, output), 0);
  const Lock lock = Lock::read(path_);
  ASSERT_EQ(lock.entries().size(), 2u);
  EXPECT_EQ(lock.entries()[0].problem, entry(1).problem);
  EXPECT_EQ(lock.entries()[1].problem, entry(3).problem);
  EXPECT_EQ(run_tool({"lock", "prune", "--lock", path_}, output), 1);
  EXPECT_NE(output.find("no problem to keep"), std::string::npos) << output;
  EXPECT_EQ(Lock::read(path_).entries().size(), 2u);
}

TEST_F(LockCommandTest, CheckTakesTheProblemsOfAPattern) {
  std::string output;
  merge_into_lock(path_, {entry(1), entry(2)});
  const std::string one = write_problem(1), two = write_problem(2), three = write_problem(3);
  EXPECT_EQ(run_tool({"lock", "check", "--lock", path_, "--problem", one, two, "--arch", "fake"}, output), 0)
      << output;
  EXPECT_NE(output.find("2 entries, all good"), std::string::npos) << output;
  EXPECT_EQ(
      run_tool({"lock", "check", "--lock", path_, "--problem", one, three, two, "--arch", "fake"}, output),
      1);
  EXPECT_NE(output.find("missing: kernels f3"), std::string::npos) << output;
  EXPECT_EQ(output.find("missing: kernels f1"), std::string::npos) << output;
}

TEST_F(LockCommandTest, ShowAndCheckPrintNoControlCharacters) {
  std::string output;
  LockEntry e = entry(1);
  e.sha256 = "";
  e.evidence = {{"profile", "\x1b[2J\x1b]0;title\x07"},
                {"vendor",
                 {"\xc2\x9b"
                  "31m",
                  1}}};
  merge_into_lock(path_, {e});
  EXPECT_EQ(run_tool({"lock", "show", "--lock", path_}, output), 0);
  EXPECT_NE(output.find("\\u001b[2J"), std::string::npos) << output;
  EXPECT_NE(output.find("\\u009b31m"), std::string::npos) << output;
  EXPECT_EQ(output.find('\x1b'), std::string::npos);
  EXPECT_EQ(output.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(run_tool({"lock", "check", "--lock", path_}, output), 1) << "an entry without a hash is not good";
  EXPECT_NE(output.find("stale"), std::string::npos) << output;
}

class LockEntryTest : public LockTest {
protected:
  RecordLog log() {
    RecordLog log;
    log.noise_floor = 0.004123456;
    for (auto [origin, mr, ratio] : {std::tuple("default", 2, 1.0), {"model", 4, 0.923456}}) {
      Record r;
      r.stage = "final", r.problem = Gemm().key(), r.arch = "fake", r.origin = origin, r.revision = 3;
      r.choice = fake_choice(4, mr, 16, 0), r.sha256 = hash_of(mr);
      r.timing = Timing{1e-3, 1e-3, 1e-3, ratio, ratio - 0.01, ratio + 0.01, 40, 1};
      log.records.push_back(r);
    }
    Record vendor = log.records[0];
    vendor.choice = {"vendor", {}}, vendor.origin = "openblas 0.3.21", vendor.timing->ratio = 1.25;
    log.records.push_back(vendor);
    return log;
  }
  LockEntry make(const RecordLog& final) {
    return lock_entry(Gemm().key(), "fake", fake_device(), "tools", {final});
  }
};

TEST_F(LockEntryTest, HoldsTheWinnerAndItsEvidence) {
  const LockEntry e = make(log());
  EXPECT_EQ(e.choice, fake_choice(4, 4, 16, 0));
  EXPECT_EQ(e.sha256, hash_of(4));
  EXPECT_EQ(e.evidence.dump(), "{\"ratio\":[0.9135,0.9235,0.9335],\"noise_floor\":0.0041,"
                               "\"vendor\":[\"openblas 0.3.21\",0.7388],\"candidates\":2,\"legal\":132,"
                               "\"complete\":true}");
  Lock lock;
  lock.put(e);
  EXPECT_EQ(Lock::parse(lock.serialize(), "x").serialize(), lock.serialize());
  EXPECT_FALSE(lock.put(Lock::parse(lock.serialize(), "x").entries()[0])) << "read back, it agrees";
}

/// Of finals and a hold-out on a GPU.
RecordLog with_holdout(RecordLog log, double ratio, double high) {
  for (size_t i : {0, 1}) {
    log.records.push_back(log.records[i]);
    log.records.back().stage = "holdout";
  }
  log.records.back().timing->ratio = ratio, log.records.back().timing->high = high;
  log.environment = {{"profile", "cold-graph/1"},
                     {"driver", "570.86"},
                     {"holdout",
                      {{"rounds", 40},
                       {"dropped", 0.05},
                       {"noise_floor", 0.006},
                       {"verdict", "win"},
                       {"clock_mhz", {1620, 1610}},
                       {"power_capped", 0.9},
                       {"vendor",
                        {{"name", "cublaslt 13.1.0"},
                         {"algorithm", "cublaslt 13.1.0 algorithm 3"},
                         {"ratio", {0.97, 0.98, 0.985}},
                         {"verdict", "win"}}},
                       {"sha256", hash_of(4)}}}};
  return log;
}

TEST_F(LockEntryTest, TheHoldoutIsWhatIsReported) {
  RecordLog final = with_holdout(log(), 0.95, 0.96);
  final.records[2].origin = "cublaslt 13.1.0";
  LockEntry e = make(final);
  EXPECT_EQ(e.choice, fake_choice(4, 4, 16, 0));
  EXPECT_EQ(statement(e.evidence, e.device), "1.053x vs default [1.042, 1.095] (95 % CI, 40 paired rounds), "
                                             "noise floor 0.6 %, 5 % of the rounds dropped, "
                                             "cold-graph/1, fake device, driver 570.86, SM clock 1.62/1.61 "
                                             "GHz, at the power limit, 2 of 132 legal candidates, "
                                             "1.020x vs cublaslt 13.1.0 algorithm 3 [1.015, 1.031]: win");
  final.environment["cut"] = 12;
  e = make(final);
  EXPECT_FALSE(e.evidence["complete"].get<bool>());
  EXPECT_NE(statement(e.evidence, e.device).find("INCOMPLETE"), std::string::npos);
}

TEST_F(LockEntryTest, WhatTheHoldoutDoesNotConfirmIsNotLocked) {
  LockEntry e = make(with_holdout(log(), 0.99, 1.01));
  EXPECT_EQ(e.choice, fake_choice(4, 2, 16, 0)) << "the default";
  EXPECT_EQ(e.evidence["verdict"], "default");
  EXPECT_FALSE(e.evidence.contains("vendor_ratio")) << "that was the other's";
  RecordLog clocks = with_holdout(log(), 0.9, 0.91);
  clocks.environment["holdout"]["clocks"] = "ambiguous";
  EXPECT_EQ(make(clocks).choice, fake_choice(4, 2, 16, 0));
}

/// What earlier versions wrote, and what a later one might.
TEST_F(LockEntryTest, EvidenceDecidesNothing) {
  for (const char* text :
       {"{}", "{\"ratio\":[0.9,0.9,0.9],\"noise_floor\":0.01,\"vendor\":[\"openblas\",0.5],\"candidates\":9}",
        "{\"ratio\":[0.9,0.9,0.9],\"of_a_later_version\":{\"x\":[1]}}"}) {
    LockEntry e = make(log());
    e.evidence = Json::parse(text);
    Lock lock;
    lock.put(e);
    const Lock again = Lock::parse(lock.serialize(), "x");
    EXPECT_EQ(again.serialize(), lock.serialize());
    EXPECT_EQ(again.entries()[0].choice, e.choice);
    EXPECT_FALSE(lock.put(make(log()))) << "the decision is the same";
    EXPECT_FALSE(statement(e.evidence, e.device).empty());
  }
}

TEST_F(LockEntryTest, UnstableAndUnverifiedResultsAreRefused) {
  RecordLog unstable = log(), unverified = log(), wrong = log();
  unstable.stable = false;
  unverified.records[1].sha256 = "";
  wrong.records[1].error = 1.5;
  RecordLog no_hash = log();
  no_hash.records[1].sha256 = "ab";
  for (const RecordLog& bad : {unstable, unverified, wrong, no_hash, RecordLog()})
    EXPECT_THROW(make(bad), Error);
}

/// The command: what is unstable goes, so that the build measures it again; the others are merged.
TEST_F(LockEntryTest, MergeRemovesUnstableFinalsAndFails) {
  write_atomically(folder_ + "/device.json", fake_device().to_json().dump());
  for (int64_t m : {1, 2}) {
    Gemm p;
    p.m = m;
    RecordLog final = log();
    final.stable = m == 1;
    for (Record& r : final.records) r.problem = p.key();
    const std::string folder = folder_ + "/" + std::to_string(m);
    const Json problem = {{"schema", "deepgen.problem/1"}, {"target", "kernels"}, {"name", "f"},
                          {"namespace", "kernels"},        {"problem", p.key()},  {"untuned", false}};
    write_atomically(folder + "/problem.json", problem.dump());
    write_atomically(folder + "/final.jsonl", final.serialize());
  }
  const auto merge = [&](std::vector<std::string> folders) {
    std::vector<std::string> words = {
        "deepgen", "lock", "merge", "--lock", path_, "--device", folder_ + "/device.json"};
    for (const std::string& f : folders)
      words.insert(words.end(), {"--problem", folder_ + f + "/problem.json", "--arch", "fake", "--records",
                                 folder_ + f + "/final.jsonl"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return deepgen_main(int(argv.size()), argv.data());
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(merge({"/2", "/1"}), 1);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(folder_ + "/2/final.jsonl"), std::string::npos) << text;
  EXPECT_NE(text.find("was removed"), std::string::npos) << text;
  EXPECT_FALSE(file_exists(folder_ + "/2/final.jsonl"));
  EXPECT_TRUE(file_exists(folder_ + "/1/final.jsonl"));
  EXPECT_EQ(Lock::read(path_).entries().size(), 1u);
  EXPECT_EQ(merge({"/1"}), 0);
}

} // namespace
} // namespace deepgen::lock_test
