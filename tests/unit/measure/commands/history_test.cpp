// What measuring takes from earlier runs, and what it does not.
#include "base/files/files.h"
#include "base/text/sha256.h"
#include "measure/commands/history.h"
#include "tests/unit/measure/test_kernels.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>

namespace deepgen::history_test {
namespace {

class HistoryTest : public testing::Test {
protected:
  HistoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "deepgen-history-XXXXXX").string();
    folder = mkdtemp(name.data());
    gpu.arch = "sm_90a", gpu.name = "a GPU", gpu.uuid = "GPU-1", gpu.isa = 0;
    around.driver = "580.1", around.power_limit_watts = 700;
  }
  ~HistoryTest() override { std::filesystem::remove_all(folder); }

  EarlierRuns history(const Device& device) const { return {{folder, 1 << 20}, device, around, options}; }
  EarlierRuns history() const { return history(cpu); }

  static Candidate candidate(int64_t slot, const std::string& code, const std::string& arch = "cpu") {
    Candidate c;
    c.file.problem = test_kernels::small_problem(), c.file.arch = arch;
    c.file.choice = {"test", Config::parse("x=1")};
    c.file.origin = "slot " + std::to_string(slot);
    c.file.kernels = {test_kernels::kernel_of(code), test_kernels::kernel_of(code + "awkward", "awkward")};
    if (arch != "cpu")
      for (Kernel& kernel : c.file.kernels) kernel.ptx = "ptx of " + code, kernel.launches.resize(1);
    c.record.status = "", c.record.slot = slot;
    return c;
  }
  static std::vector<Candidate*> pointers(std::vector<Candidate>& list) {
    std::vector<Candidate*> all;
    for (Candidate& c : list) all.push_back(&c);
    return all;
  }
  /// Verified with this outcome; "": good.
  void keep_verdict(const Candidate& c, const std::string& status, EarlierRuns from) const {
    Candidate verified = c;
    verified.record.error = 0.25;
    if (!status.empty()) verified.decide(status, "because");
    from.keep_verdicts({&verified});
  }
  void keep_verdict(const Candidate& c, const std::string& status = "") const {
    keep_verdict(c, status, history());
  }
  bool verdict_known(Candidate c, EarlierRuns now) const { return now.unverified({&c}).empty(); }
  bool verdict_known(const Candidate& c) const { return verdict_known(c, history()); }

  static Timing timing(double ratio, double clean = 1, int64_t samples = 5) {
    Timing t;
    t.seconds = 1e-6 * ratio, t.ratio = ratio, t.low = ratio - 0.01, t.high = ratio + 0.01;
    t.samples = samples, t.clean = clean;
    return t;
  }
  void keep_times(std::vector<Candidate> timed, EarlierRuns from) const {
    for (Candidate& c : timed) {
      if (!c.record.timing) c.record.timing = timing(1 + 0.1 * double(c.record.slot));
      if (c.open()) c.decide("ok", "");
    }
    from.keep_times(pointers(timed));
  }
  /// How many of the candidates behind the first one still have to be timed.
  size_t untimed(std::vector<Candidate> list, EarlierRuns now) const {
    const size_t rest = now.untimed(pointers(list)).size();
    return rest ? rest - 1 : 0;
  }

  /// Puts another value in the place of an entry's. Its first line has the sizes of key and value, and a
  /// hash.
  static void rewrite(const std::filesystem::path& file, const std::string& value) {
    const std::string text = read_file(file);
    const size_t line = text.find('\n') + 1;
    std::istringstream words(text);
    std::string schema;
    size_t key_size = 0;
    words >> schema >> key_size;
    const std::string body = text.substr(line, key_size) + value;
    write_atomically(file, schema + " " + std::to_string(key_size) + " " + std::to_string(value.size()) +
                               " " + sha256_hex(body) + "\n" + body);
  }

  std::string folder;
  Device cpu, gpu;
  cuda::Surroundings around;
  MeasureOptions options;
};

TEST_F(HistoryTest, VerdictsThatLastAreKept) {
  const Candidate good = candidate(0, "good"), wrong = candidate(1, "wrong"), stray = candidate(2, "stray");
  keep_verdict(good), keep_verdict(wrong, "wrong"), keep_verdict(stray, "out_of_bounds");
  std::vector<Candidate> now = {candidate(5, "stray"), candidate(6, "new"), candidate(7, "good"),
                                candidate(8, "wrong")};
  const std::vector<Candidate*> unknown = history().unverified(pointers(now));
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0], &now[1]);
  EXPECT_EQ(now[0].record.status, "out_of_bounds");
  EXPECT_EQ(now[0].record.detail, "because");
  EXPECT_TRUE(now[0].record.cached);
  EXPECT_TRUE(now[2].open()) << "to be timed";
  EXPECT_EQ(now[2].record.error, 0.25);
  EXPECT_FALSE(now[2].record.cached);
  EXPECT_EQ(now[3].record.status, "wrong");
  for (const char* passing : {"timeout", "crash", "unsupported", "dropped", "duplicate", "compile_error"}) {
    const Candidate c = candidate(0, passing);
    keep_verdict(c, passing);
    EXPECT_FALSE(verdict_known(c)) << passing;
  }
}

/// JSON has no infinity.
TEST_F(HistoryTest, VerdictsOfInfiniteErrorsAreKept) {
  Candidate c = candidate(0, "nan");
  c.record.error = INFINITY, c.decide("wrong", "D[0,0] is nan");
  history().keep_verdicts({&c});
  Candidate again = candidate(1, "nan");
  EXPECT_TRUE(history().unverified({&again}).empty());
  EXPECT_EQ(again.record.status, "wrong");
  EXPECT_GT(again.record.error, 1);
}

/// Such as of a version that nobody has any more.
TEST_F(HistoryTest, EntriesThatAreNoVerdictsAreForgotten) {
  for (const char* entry :
       {"", "{}", "null", "[1,2]", R"({"status":1,"detail":"","error":0})",
        R"({"status":"wrong","detail":{},"error":0})", R"({"status":"ok","detail":"","error":null})"}) {
    const Candidate c = candidate(0, "code");
    keep_verdict(c, "wrong");
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder + "/verdict"))
      if (file.is_regular_file()) rewrite(file.path(), entry);
    EXPECT_FALSE(verdict_known(c)) << entry;
  }
}

TEST_F(HistoryTest, VerdictsHoldForEqualKernelsAlone) {
  const Candidate c = candidate(0, "code");
  keep_verdict(c);
  EXPECT_TRUE(verdict_known(candidate(9, "code"))) << "whatever it was planned for";
  const auto differs = [&](const char* what, const std::function<void(Candidate&)>& change) {
    Candidate other = candidate(0, "code");
    change(other);
    EXPECT_FALSE(verdict_known(other)) << what;
  };
  differs("code", [](Candidate& x) { x.file.kernels[0].code += "x"; });
  differs("code of the awkward kernel", [](Candidate& x) { x.file.kernels[1].code += "x"; });
  differs("arguments", [](Candidate& x) { x.file.kernels[0].args.pop_back(); });
  differs("tiles", [](Candidate& x) { x.file.kernels[0].tiles_m--; });
  differs("workspace", [](Candidate& x) { x.file.kernels[0].workspace--; });
  differs("problem", [](Candidate& x) { x.file.problem.gemm().k++; });
  differs("config", [](Candidate& x) { x.file.choice.config.set("x", 2); });
  differs("revision", [](Candidate& x) { x.file.revision++; });
  cpu.name = "another CPU", cpu.l2 *= 2;
  EXPECT_TRUE(verdict_known(c)) << "of the same arch";
  options.seed = 2;
  EXPECT_FALSE(verdict_known(c)) << "on other data";
}

TEST_F(HistoryTest, TheDriverMattersForWhatItCompiles) {
  Candidate assembled = candidate(0, "code", "sm_90a"), ptx_alone = candidate(1, "ptx", "sm_90a");
  for (Kernel& k : ptx_alone.file.kernels) k.code.clear();
  keep_verdict(assembled, "", history(gpu)), keep_verdict(ptx_alone, "", history(gpu));
  EXPECT_TRUE(verdict_known(ptx_alone, history(gpu)));
  around.driver = "590.2";
  EXPECT_TRUE(verdict_known(assembled, history(gpu)));
  EXPECT_FALSE(verdict_known(ptx_alone, history(gpu)));
  gpu.arch = "sm_90";
  EXPECT_FALSE(verdict_known(assembled, history(gpu)));
}

TEST_F(HistoryTest, TimesAreKeptAgainstTheAnchor) {
  const std::vector<Candidate> three = {candidate(0, "default"), candidate(1, "one"), candidate(2, "two")};
  keep_times({three[0], three[1]}, history());
  std::vector<Candidate> now = three;
  EarlierRuns again = history();
  std::vector<Candidate*> rest = again.untimed(pointers(now));
  EXPECT_EQ(rest, (std::vector<Candidate*>{&now[0], &now[2]})) << "the anchor is timed with what is new";
  EXPECT_TRUE(now[0].open());
  EXPECT_EQ(now[1].record.status, "ok");
  EXPECT_TRUE(now[1].record.cached);
  ASSERT_TRUE(now[1].record.timing);
  EXPECT_EQ(now[1].record.timing->ratio, timing(1.1).ratio);
  EXPECT_EQ(now[1].record.timing->samples, 5);

  now = {three[0], three[1]};
  EXPECT_TRUE(history().untimed(pointers(now)).empty()) << "nothing is new";
  EXPECT_TRUE(now[0].record.cached);
  now = {candidate(-1, "default"), three[1]};
  EXPECT_TRUE(history().untimed(pointers(now)).empty());
  EXPECT_TRUE(now[0].open()) << "an anchor of another round has no record here";
  EXPECT_EQ(untimed({candidate(0, "another default"), three[1]}, history()), 1u);
}

TEST_F(HistoryTest, TimesHoldUnderEqualConditionsAlone) {
  const std::vector<Candidate> two = {candidate(0, "default", "sm_90a"), candidate(1, "one", "sm_90a")};
  keep_times(two, history(gpu));
  gpu.uuid = "GPU-2";
  EXPECT_EQ(untimed(two, history(gpu)), 0u) << "another GPU of the model";
  const auto differs = [&](const char* what, auto& place, auto value) {
    const auto old = place;
    place = value;
    EXPECT_EQ(untimed(two, history(gpu)), 1u) << what;
    place = old;
  };
  differs("model", gpu.name, "another GPU");
  differs("multiprocessors", gpu.cores, gpu.cores + 1);
  differs("driver", around.driver, "590.2");
  differs("power limit", around.power_limit_watts, 350.0);
  differs("seed", options.seed, 2u);
  differs("budget", options.seconds, 2.0);
  differs("regime", options.regime, TunedFor::balanced);
  differs("regime", options.regime, TunedFor::burst);
  EXPECT_EQ(untimed(two, history(gpu)), 0u);
}

TEST_F(HistoryTest, BalancedTimesKnowBothRegimes) {
  options.regime = TunedFor::balanced;
  std::vector<Candidate> two = {candidate(0, "default", "sm_90a"), candidate(1, "one", "sm_90a")};
  two[0].record.timing = two[0].record.bursts = timing(1);
  two[1].record.timing = timing(0.9), two[1].record.bursts = timing(0.7);
  for (Candidate& c : two) c.decide("ok", "");
  history(gpu).keep_times(pointers(two));
  for (Candidate& c : two) c.record.status = "", c.record.timing.reset(), c.record.bursts.reset();
  EXPECT_TRUE(history(gpu).untimed(pointers(two)).empty());
  EXPECT_EQ(two[1].record.timing->ratio, 0.9);
  EXPECT_EQ(two[1].record.bursts->ratio, 0.7);
}

TEST_F(HistoryTest, ACpuHasNoRegimes) {
  const std::vector<Candidate> two = {candidate(0, "default"), candidate(1, "one")};
  keep_times(two, history(cpu));
  options.regime = TunedFor::balanced;
  EXPECT_EQ(untimed(two, history(cpu)), 0u);
}

TEST_F(HistoryTest, DisturbedTimesAreNotKept) {
  std::vector<Candidate> list = {candidate(0, "default"), candidate(1, "few"),     candidate(2, "disturbed"),
                                 candidate(3, "dropped"), candidate(4, "crashed"), candidate(5, "good")};
  list[1].record.timing = timing(0.9, 1, 2);
  list[2].record.timing = timing(0.9, 0.4);
  list[3].decide("dropped", ""), list[4].decide("crash", "");
  keep_times(list, history());
  for (Candidate& c : list) c.record.status = "", c.record.timing.reset();
  EXPECT_EQ(history().untimed(pointers(list)).size(), 5u) << "the anchor and four";
  EXPECT_TRUE(list[5].record.cached);
}

TEST_F(HistoryTest, WithoutACacheNothingIsKnown) {
  std::vector<Candidate> two = {candidate(0, "default"), candidate(1, "one")};
  EarlierRuns off({}, cpu, around, options);
  off.keep_verdicts(pointers(two));
  EXPECT_EQ(off.unverified(pointers(two)).size(), 2u);
  EXPECT_EQ(off.untimed(pointers(two)).size(), 2u);
}

} // namespace
} // namespace deepgen::history_test
