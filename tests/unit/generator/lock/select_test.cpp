#include "generator/lock/select.h"

#include "base/search/decide.h"
#include "base/text/error.h"
#include "generator/lock/failures.h"
#include "generator/lock/lock.h"
#include "generator/report/report.h"
#include "templates/core/cheapest.h"
#include "tests/unit/generator/fake_template.h"

#include <gtest/gtest.h>

namespace deepgen::select_test {
namespace {

Record arm(const std::string& origin, const Choice& choice, double ratio, double half_width) {
  Record r;
  r.stage = "final", r.problem = Gemm().key(), r.arch = "fake", r.revision = 3;
  r.origin = origin, r.choice = choice, r.sha256 = "sha of " + choice.text();
  r.timing =
      Timing{1e-3 * ratio, 1e-3 * ratio, 1e-3 * ratio, ratio, ratio - half_width, ratio + half_width, 40, 1};
  return r;
}

const Choice kDefault = fake_choice(4, 2, 64, 0), kFast = fake_choice(4, 4, 32, 0),
             kOther = fake_choice(4, 8, 16, 0);

RecordLog finals(std::vector<Record> records, double floor = 0.004) {
  RecordLog log;
  log.records = std::move(records);
  log.noise_floor = floor;
  return log;
}

TEST(Decide, FasterByMoreThanTheNoiseWins) {
  const Decision d = decide(finals({arm("default", kDefault, 1, 0.002), arm("model", kFast, 0.92, 0.01)}));
  ASSERT_TRUE(d.found);
  EXPECT_TRUE(d.improved);
  EXPECT_EQ(d.winner.choice, kFast);
  EXPECT_EQ(d.reason, "1.087x vs default [1.075, 1.099]");
}

TEST(Decide, DefaultStaysWithinTheNoise) {
  auto winner = [](double ratio, double width, double floor) {
    return decide(finals({arm("default", kDefault, 1, 0.002), arm("model", kFast, ratio, width)}, floor))
        .winner.choice;
  };
  EXPECT_EQ(winner(0.98, 0.03, 0), kDefault) << "the interval reaches above 1";
  EXPECT_EQ(winner(0.993, 0.001, 0), kFast) << "upper bound 0.994 < 1 - 0.005";
  EXPECT_EQ(winner(0.996, 0.0005, 0), kDefault) << "less than half a percent is no gain";
  EXPECT_EQ(winner(0.95, 0.01, 0.06), kDefault) << "the noise floor is 6 %";
  EXPECT_EQ(winner(1.2, 0.01, 0), kDefault);
}

TEST(Decide, UnstableLogKeepsTheDefault) {
  RecordLog log = finals({arm("default", kDefault, 1, 0), arm("model", kFast, 0.5, 0.01)});
  log.stable = false;
  EXPECT_EQ(decide(log).winner.choice, kDefault);
}

TEST(Decide, TiesGoToLessWorkspaceThenLessCodeThenText) {
  Record base = arm("default", kDefault, 1, 0), fast = arm("model", kFast, 0.900, 0.001),
         other = arm("model", kOther, 0.903, 0.001);
  auto winner = [&] {
    const Choice forward = decide(finals({base, fast, other})).winner.choice;
    EXPECT_EQ(decide(finals({other, fast, base})).winner.choice, forward)
        << "the order of records does not matter";
    return forward;
  };
  EXPECT_EQ(winner(), kFast) << "by text";
  fast.code_bytes = 10;
  EXPECT_EQ(winner(), kOther);
  other.workspace = 64;
  EXPECT_EQ(winner(), kFast);
  fast.workspace = 4096;
  EXPECT_EQ(winner(), kOther);
  EXPECT_EQ(decide(finals({base, fast, other}, 0.001)).winner.choice, kFast)
      << "0.3 % are no tie where the noise is 0.1 %";
  other.timing->ratio = 0.91; // now slower than the best by more than the noise
  EXPECT_EQ(winner(), kFast);
}

TEST(Decide, WrongFinalistsAndVendorsNeverWin) {
  Record wrong = arm("model", kFast, 0.1, 0.01), vendor = arm("", {"vendor", {}}, 0.2, 0.01);
  wrong.status = "wrong";
  const Decision d = decide(finals({arm("default", kDefault, 1, 0), wrong, vendor}));
  EXPECT_EQ(d.winner.choice, kDefault);
  EXPECT_EQ(vendor_record(finals({vendor}))->timing->ratio, 0.2);
  EXPECT_EQ(vendor_record(finals({wrong})), nullptr);
}

TEST(Decide, WrongDefaultLosesToTheFastestCorrectOne) {
  Record base = arm("default", kDefault, 1, 0);
  base.status = "wrong";
  const Decision d = decide(finals({base, arm("model", kFast, 1.2, 0), arm("model", kOther, 1.1, 0)}));
  EXPECT_EQ(d.winner.choice, kOther);
  EXPECT_TRUE(d.improved);
  EXPECT_EQ(d.reason, "the default config failed: wrong");
  const Decision none = decide(finals({base}));
  EXPECT_FALSE(none.found);
  EXPECT_NE(none.reason.find("1 wrong"), std::string::npos) << none.reason;
}

TEST(Report, ShowsEveryCandidateAndTheWinner) {
  Record crash = arm("random", kOther, 1, 0), vendor = arm("", {"vendor", {}}, 1.25, 0.01);
  crash.stage = "r0", crash.status = "crash", crash.detail = "signal 11", crash.timing.reset();
  vendor.origin = "openblas 0.3.21";
  const std::string text =
      report({finals({crash, arm("default", kDefault, 1, 0.002), arm("model", kFast, 0.8, 0.01), vendor})});
  for (const char* part : {"signal 11", "1 crash", "winner: fake_tile isa=4 mr=4 nr=32 pack=0",
                           "1.250x vs default", "vendor: openblas 0.3.21", "the winner is 1.562x as fast"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(report({}), "no records\n");
}

const std::string kKernelHash(64, '5');

class SelectTest : public testing::Test {
protected:
  void SetUp() override { register_fake_template(); }

  SelectRequest request(std::vector<RecordLog> logs = {}) {
    SelectRequest r;
    r.file.target = "kernels", r.file.name = "f", r.file.ns = "kernels";
    r.arch = "fake";
    r.logs = std::move(logs);
    return r;
  }
  LockEntry entry(const Choice& choice, const std::string& device = "fake device", int64_t isa = 4) {
    return {Gemm().key(), "fake", fake_device(isa, device), choice, 3, kKernelHash, "tools", {}};
  }
  Lock lock_of(const std::vector<LockEntry>& entries) {
    Lock lock;
    for (const LockEntry& e : entries) lock.put(e);
    return lock;
  }
  Selected one(Mode mode, const Lock& lock, SelectRequest r, const Device& device = fake_device()) {
    r.device = device;
    return select(mode, lock, "deepgen.lock.json", {r}).at(0);
  }
  const RecordLog search_ = finals({arm("default", kDefault, 1, 0), arm("model", kFast, 0.5, 0.01)});
};

TEST_F(SelectTest, LadderExactThenSameArchThenRecordsThenDefault) {
  const Lock both = lock_of({entry(kOther), entry(kFast, "another device")});
  const Lock another = lock_of({entry(kFast, "another device")});
  const Selected exact = one(Mode::automatic, both, request({search_}));
  EXPECT_EQ(exact.choice.main.choice, kOther);
  EXPECT_EQ(exact.choice.origin, "lock");
  EXPECT_EQ(exact.choice.main.expect_sha256, kKernelHash);
  EXPECT_EQ(ChoiceFile::parse(exact.choice.serialize(), "x").serialize(), exact.choice.serialize());
  EXPECT_EQ(exact.note, "");
  EXPECT_EQ(one(Mode::automatic, another, request({search_})).choice.main.choice, kFast);
  const Selected found = one(Mode::automatic, Lock(), request({search_}));
  EXPECT_EQ(found.choice.main.choice, kFast);
  EXPECT_EQ(found.choice.origin, "search");
  EXPECT_EQ(found.choice.main.expect_sha256, "");
  const Selected none = one(Mode::automatic, Lock(), request());
  EXPECT_EQ(none.choice.main.choice, kDefault);
  EXPECT_EQ(none.choice.origin, "default");
  EXPECT_EQ(none.note, "deepgen: kernels f: untuned for fake; run `ninja tune`");
}

TEST_F(SelectTest, SameArchPrefersTheHighestLevelThatTheDeviceHas) {
  const Lock lock = lock_of({entry(fake_choice(1, 2, 8, 0), "a", 1), entry(fake_choice(3, 2, 8, 0), "b", 3),
                             entry(fake_choice(4, 2, 8, 0), "c", 4)});
  EXPECT_EQ(one(Mode::lock, lock, request(), fake_device(3, "new")).choice.main.choice.config["isa"], 3);
  EXPECT_EQ(one(Mode::lock, lock, request(), fake_device(4, "new")).choice.main.choice.config["isa"], 4);
}

TEST_F(SelectTest, LockModeDefaultDoesNotDependOnTheHost) {
  const Selected here = one(Mode::lock, Lock(), request({search_}), fake_device(4));
  const Selected there = one(Mode::lock, Lock(), request(), fake_device(1, "elsewhere"));
  EXPECT_EQ(here.choice.serialize(), there.choice.serialize());
  EXPECT_EQ(here.choice.main.choice.config["isa"], 3) << "generic x86-64-v3";
}

TEST_F(SelectTest, StaleEntriesFallBackAndSayWhy) {
  LockEntry revised = entry(kFast), gone = entry(kFast), illegal = entry(fake_choice(4, 8, 64, 0));
  revised.revision = 2;
  gone.choice.template_name = "removed";
  for (const LockEntry& e : {revised, gone, illegal}) {
    const Selected s = one(Mode::lock, lock_of({e}), request());
    EXPECT_EQ(s.choice.origin, "default");
    EXPECT_NE(s.note.find("stale"), std::string::npos) << s.note;
    EXPECT_EQ(s.note.find('\n'), std::string::npos) << "one line";
    EXPECT_EQ(one(Mode::automatic, lock_of({e}), request({search_})).choice.origin, "search");
  }
}

TEST_F(SelectTest, AnEntryWithoutAHashIsStaleAndAnErrorInFrozen) {
  LockEntry e = entry(kFast);
  e.sha256 = "";
  EXPECT_EQ(one(Mode::lock, lock_of({e}), request()).choice.origin, "default");
  const Selected searched = one(Mode::automatic, lock_of({e}), request({search_}));
  EXPECT_EQ(searched.choice.origin, "search");
  EXPECT_NE(searched.note.find("64 lower-case hex digits"), std::string::npos) << searched.note;
  EXPECT_THROW(one(Mode::frozen, lock_of({e}), request()), Error);
}

TEST_F(SelectTest, AChoiceOfTheLockHasItsHash) {
  const std::string good = one(Mode::frozen, lock_of({entry(kFast)}), request()).choice.serialize();
  std::string bad = good;
  bad.replace(bad.find(kKernelHash), kKernelHash.size(), "");
  EXPECT_THROW(ChoiceFile::parse(bad, "x"), Error);
  bad = good;
  bad.replace(bad.find("\"origin\":\"lock\""), 15, "\"origin\":\"search\"");
  EXPECT_THROW(ChoiceFile::parse(bad, "x"), Error);
}

TEST_F(SelectTest, LegalityIsThatOfTheEntrysDevice) {
  const Selected s = one(Mode::frozen, lock_of({entry(kFast)}), request(), fake_device(1, "a lesser host"));
  EXPECT_EQ(s.choice.main.choice, kFast) << "a level 4 config is good on a level 1 build host";
  EXPECT_NE(why_stale(entry(kFast, "level 1 device", 1)), "");
}

TEST_F(SelectTest, FrozenTakesTheHighestLevelThenTheName) {
  const LockEntry v3 = entry(fake_choice(3, 2, 8, 0), "a", 3), v4 = entry(fake_choice(4, 2, 8, 0), "c", 4),
                  same = entry(fake_choice(4, 4, 8, 0), "b", 4);
  const auto frozen = [&](const std::vector<LockEntry>& entries, const Device& host) {
    return one(Mode::frozen, lock_of(entries), request(), host).choice.main.choice;
  };
  for (const Device& host : {fake_device(1, "new"), fake_device(3, "a"), fake_device(4, "c")}) {
    EXPECT_EQ(frozen({v3, v4}, host), v4.choice) << "whatever the build host is";
    EXPECT_EQ(frozen({v3, v4, same}, host), same.choice);
    EXPECT_EQ(frozen({v3}, host), v3.choice);
  }
}

TEST_F(SelectTest, AStaleEntryHidesNoGoodOne) {
  LockEntry stale = entry(kFast);
  stale.revision = 2;
  const LockEntry good = entry(fake_choice(3, 2, 8, 0), "another device", 3);
  for (Mode mode : {Mode::automatic, Mode::lock, Mode::frozen}) {
    const Selected s = one(mode, lock_of({stale, good}), request({search_}));
    EXPECT_EQ(s.choice.main.choice, good.choice);
    EXPECT_EQ(s.choice.origin, "lock");
    EXPECT_EQ(s.note, "");
  }
}

TEST_F(SelectTest, FrozenReportsAllMissingAndStaleAtOnce) {
  SelectRequest good = request(), missing = request(), stale = request();
  good.file.name = "good", missing.file.name = "missing", stale.file.name = "stale";
  missing.file.problem.gemm().m = 7;
  stale.file.problem.gemm().m = 8;
  LockEntry old = entry(kFast);
  old.problem = stale.file.problem.key();
  old.revision = 1;
  try {
    select(Mode::frozen, lock_of({entry(kFast), old}), "path.lock", {missing, good, stale});
    FAIL() << "two bad entries";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("kernels missing: missing"), std::string::npos) << text;
    EXPECT_NE(text.find("kernels stale: stale: template fake_tile has revision 3"), std::string::npos)
        << text;
    EXPECT_EQ(text.find("kernels good"), std::string::npos) << text;
    EXPECT_NE(text.find("path.lock"), std::string::npos) << text;
  }
}

TEST_F(SelectTest, UntunedProblemsAlwaysTakeTheDefault) {
  SelectRequest r = request({search_});
  r.file.untuned = true;
  for (Mode mode : {Mode::automatic, Mode::lock, Mode::frozen}) {
    const Selected s = one(mode, lock_of({entry(kOther)}), r);
    EXPECT_EQ(s.choice.origin, "default");
    EXPECT_EQ(s.note, "");
  }
}

TEST_F(SelectTest, SearchWithoutACorrectKernelIsAnError) {
  Record wrong = arm("default", kDefault, 1, 0);
  wrong.status = "wrong";
  EXPECT_THROW(one(Mode::automatic, Lock(), request({finals({wrong})})), Error);
}

TEST_F(SelectTest, ChoiceHoldsNoTimings) {
  RecordLog slower = search_;
  for (Record& r : slower.records) r.timing->seconds *= 3;
  EXPECT_EQ(one(Mode::automatic, Lock(), request({search_})).choice.serialize(),
            one(Mode::automatic, Lock(), request({slower})).choice.serialize());
}

Record failed(int64_t slot, const std::string& status, const std::string& detail) {
  Record r = arm("model", kFast, 1, 0);
  r.stage = "r0", r.slot = slot, r.status = status, r.detail = detail;
  r.timing.reset();
  return r;
}

/// A result over a search in which many failed for one reason says so: it may be the reason that is to be
/// removed.
TEST(Failures, AReasonThatManyHaveIsTold) {
  RecordLog round;
  for (int64_t slot = 0; slot < 9; ++slot) round.records.push_back(failed(slot, "ok", ""));
  EXPECT_EQ(common_failure({round}), "");
  for (int64_t slot = 9; slot < 12; ++slot)
    round.records.push_back(
        failed(slot, "unsupported",
               "no room for " + std::to_string(slot) + " bytes (case 'dense' of x)\n  where:  C"));
  RecordLog last = finals({arm("default", kDefault, 1, 0.002), arm("model", kFast, 0.92, 0.01)});
  EXPECT_EQ(common_failure({round, last}),
            "3 of 12 candidates failed alike: unsupported: no room for 9 bytes (case 'dense' of x)");
  SelectRequest request;
  request.file.target = "t", request.file.name = "f";
  request.arch = "fake", request.device = fake_device(), request.logs = {round, last};
  const auto selected = select(Mode::automatic, Lock(), "lock.json", {request});
  EXPECT_NE(selected.at(0).note.find("3 of 12 candidates failed alike"), std::string::npos)
      << selected.at(0).note;
  round.records.push_back(failed(12, "ok", "")), round.records.push_back(failed(13, "crash", "SIGSEGV"));
  EXPECT_EQ(common_failure({round, last}), "") << "less than a quarter";
  RecordLog usual;
  for (int64_t slot = 0; slot < 4; ++slot)
    for (const auto& [status, detail] :
         {std::pair<const char*, const char*>{"duplicate", "the same code as slot 1"},
          {"dropped", "more than 3 times slower"},
          {"compile_error", "the assembled kernel is rejected: it spills"}})
      usual.records.push_back(failed(slot, status, detail));
  EXPECT_EQ(common_failure({usual}), "");
}

// The file does not have a CPU's features, so that these entries were stale as soon as they were read.
TEST_F(SelectTest, EntriesOfKernelsThatNeedExtensionsAreGoodWhenTheyAreRead) {
  const char* const of_bf16 =
      "gemm m=64 n=64 k=64 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nn epilogue=none align=2";
  const char* const of_i8 =
      "gemm m=64 n=64 k=64 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nn epilogue=none align=1";
  Lock lock;
  LockEntry e;
  e.arch = "cpu", e.device = modest_cpu(4), e.device.name = "a CPU";
  e.device.features = {"avx512bf16", "avx512vnni"};
  e.sha256 = std::string(64, '5'), e.toolchain = "tools";
  e.choice.template_name = "cpu_dot", e.revision = find_template("cpu_dot").revision();
  for (const auto& [problem, config] :
       {std::pair{of_bf16, "isa=4 dot=2 form=0 mr=4 nv=4 kc=64 ku=1 pack=0 mc=64 nc=64 loops=0"},
        {of_i8, "isa=4 dot=3 form=0 mr=2 nv=4 kc=64 ku=2 pack=0 mc=64 nc=64 loops=0"}}) {
    e.problem = problem, e.choice.config = Config::parse(config);
    EXPECT_EQ(why_stale(e), "");
    lock.put(e);
  }
  const Lock read = Lock::parse(lock.serialize(), "a lock");
  ASSERT_EQ(read.entries().size(), 2u);
  for (const LockEntry& entry : read.entries()) EXPECT_EQ(why_stale(entry), "");
}

} // namespace
} // namespace deepgen::select_test
