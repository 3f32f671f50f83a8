// Races of sizes on a device that is made up (tests/fake_cuda/lossy_driver.cpp): what a worker of several
// opens once, and what it frees in between.
#include "base/json/json.h"
#include "base/search/ranged_decision.h"
#include "measure/commands/ranged_final.h"
#include "measure/commands/ranged_round.h"
#include "measure/devices/cuda_devices.h"
#include "measure/devices/cuda_driver.h"
#include "measure/race/series.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int lossy_contexts();

namespace deepgen::gpu_series_test {
namespace {

Gemm rows_to(int64_t most) {
  Gemm p;
  p.m = most, p.n = 512, p.k = 256, p.least[0] = 1;
  complete(p);
  return p;
}

Sizes of_rows(int64_t m) { return {m, 512, 256, 1}; }

/// The driver takes any code.
Kernel kernel(const std::string& name) {
  Kernel k;
  k.role = "main", k.problem = rows_to(4096), k.sha256 = name, k.choice = {name, {}};
  k.target = "sm_90", k.code = "code of " + name;
  k.args = {"a", "b", "d", "m"};
  Launch l;
  l.entry = name, l.grid = {32, 1, 1}, l.block = {128, 1, 1};
  l.grid_rules[0].factor = 1, l.grid_rules[0].steps[0] = 128;
  k.launches = {l};
  return k;
}

/// The n-th call of the driver, and all after it in its process, find the device lost.
class LostAt {
public:
  explicit LostAt(int call)
      : folder_(std::filesystem::temp_directory_path() / ("deepgen-series-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    const std::string plan = (folder_ / "calls").string() + " " + std::to_string(call) + " 700";
    setenv("FAKE_DRIVER_FAILS", plan.c_str(), 1);
  }
  LostAt(const LostAt&) = delete;
  ~LostAt() {
    unsetenv("FAKE_DRIVER_FAILS");
    std::filesystem::remove_all(folder_);
  }

private:
  std::filesystem::path folder_;
};

class GpuSeries : public ::testing::Test {
protected:
  void SetUp() override {
    for (const Device& d : cuda::devices(cuda::Platform::cuda)) device_ = d;
    ASSERT_EQ(device_.name, "a GPU without silicon");
    options_.vendor = false;
  }
  std::shared_ptr<SizedField> field(const Sizes& at) {
    return field_at(Problem(kernels_[0].problem).at(at), device_, 0, options_, false);
  }
  Race race(int64_t rows) {
    const std::shared_ptr<SizedField> f = field(of_rows(rows));
    RaceOptions o;
    f->complete(o, Heat::kept);
    o.settle_seconds = 0.01;
    Race r = plan_full({f->kernel_arm("a", kernels_[0]), f->kernel_arm("b", kernels_[1])}, 5, 5, o);
    r.field = f, r.seconds = 60;
    return r;
  }

  Device device_;
  MeasureOptions options_;
  const std::vector<Kernel> kernels_ = {kernel("first"), kernel("second")};
  Progress progress_{"test"};
};

/// What the worker of a series sees when a race has begun.
struct Seen {
  int races = 0, contexts[8] = {};
  size_t free[8] = {};
};

TEST_F(GpuSeries, OneContextAndTheOperandsOfOneSizeAtATime) {
  void* page = mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Seen* const seen = new (page) Seen();
  const std::vector<int64_t> rows = {4096, 1, 4096, 64, 4096};
  const auto look = [&](size_t i) {
    Race r = race(rows[i]);
    r.strategy = [seen, run = r.strategy](race::Track& track, const std::vector<size_t>& entered,
                                          const RaceOptions& o) {
      size_t total = 0;
      cuda::check(cuda::driver()->cuMemGetInfo(&seen->free[seen->races], &total), "a test");
      seen->contexts[seen->races++] = lossy_contexts();
      run(track, entered, o);
    };
    return r;
  };
  size_t told = 0;
  const auto done = [&](size_t i, const std::vector<ArmResult>& results) {
    for (const ArmResult& r : results) EXPECT_EQ(r.rounds.size(), 5u) << i << ": " << r.detail;
    return ++told > 0;
  };
  EXPECT_EQ(run_series({rows.size(), look, done}, progress_), rows.size());
  ASSERT_EQ(seen->races, 5) << "in one process";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(seen->contexts[i], 1);
  EXPECT_EQ(seen->free[0], seen->free[2]) << "of a size nothing is left";
  EXPECT_EQ(seen->free[0], seen->free[4]);
  EXPECT_NE(seen->free[1], seen->free[0]);
  munmap(page, sizeof(Seen));
}

/// The device's clock is made up, so that samples are the same.
TEST_F(GpuSeries, ResultsAreThoseOfSingleRaces) {
  const std::vector<int64_t> rows = {1, 64, 4096};
  std::vector<std::vector<ArmResult>> all;
  const auto keep = [&](size_t, const std::vector<ArmResult>& results) {
    all.push_back(results);
    return true;
  };
  run_series({rows.size(), [&](size_t i) { return race(rows[i]); }, keep}, progress_);
  ASSERT_EQ(all.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<ArmResult> single = run_alone(race(rows[i]), progress_);
    for (size_t arm : {0, 1}) {
      ASSERT_EQ(single[arm].rounds.size(), all[i][arm].rounds.size()) << single[arm].detail;
      for (const auto& [round, sample] : single[arm].rounds)
        EXPECT_NEAR(sample.seconds, all[i][arm].rounds.at(round).seconds, 1e-10);
    }
  }
}

class GpuContest : public GpuSeries {
protected:
  RangedContest contest() {
    RangedContest c;
    c.problem = kernels_[0].problem, c.arch = "sm_90";
    c.points = tune_points(c.problem, {"1", "64", "1024", "4096"}, {}, 4, "test");
    for (const Kernel& k : kernels_) {
      Record r;
      r.stage = "final", r.slot = int64_t(c.finalists.size()), r.problem = c.problem.key(), r.arch = "sm_90";
      r.choice = {"template", Config({{"n", r.slot}})};
      r.sha256 = k.sha256, r.origin = r.slot ? "model" : "default";
      c.finalists.push_back(r), c.kernels.push_back(&k);
    }
    c.field = [this](const Sizes& at, bool) {
      return field_at(Problem(kernels_[0].problem).at(at), device_, 0, options_, false);
    };
    c.seconds = 4, c.options.most_rounds = 7, c.options.spent = &spent_;
    return c;
  }
  Spent spent_;
};

TEST_F(GpuContest, FinalsStartTwoWorkers) {
  const RangedContest c = contest();
  std::vector<ArmResult> samples;
  const RecordLog log = run_ranged_contest(c, progress_, samples);
  const size_t races = log.records[0].points.size() + holdout_of(log.environment).size();
  EXPECT_GE(races, 10u) << log.serialize();
  EXPECT_EQ(holdout_of(log.environment).size(), 4u);
  EXPECT_EQ(spent_.starts.count, 2) << "finals and hold-out";
  EXPECT_EQ(size_t(spent_.starts.count + spent_.further.count), races);
  const Json told = spent_.to_json()["starts"];
  EXPECT_EQ(told["workers"], 2);
  EXPECT_EQ(told["further_races"], races - 2);
}

/// The device is lost at some call of the driver in the middle: one kernel is out, and its finals begin anew.
TEST_F(GpuContest, ALostDeviceTakesOneFinalist) {
  const LostAt at(700);
  const RangedContest c = contest();
  std::vector<ArmResult> samples;
  const RecordLog log = run_ranged_contest(c, progress_, samples);
  const auto failed = [](const Record& r) { return r.status == "crash"; };
  EXPECT_EQ(std::count_if(log.records.begin(), log.records.end(), failed), 1) << log.serialize();
  EXPECT_EQ(spent_.starts.count, 4) << "lost, its race again, all finals anew, hold-out";
  for (const Record& r : log.records)
    if (r.ok()) {
      EXPECT_EQ(r.points.size(), final_points(c.points).at.size());
    }
}

class GpuRound : public GpuSeries {
protected:
  void run() {
    for (const Kernel& k : kernels_) {
      Candidate c;
      c.file.kernels = {k};
      c.record.slot = int64_t(all_.size()), c.record.status = "", c.record.sha256 = k.sha256,
      c.record.stage = "r0";
      all_.push_back(std::move(c));
    }
    RaceOptions options;
    options.spent = &spent_;
    const std::vector<Sizes> sizes = {of_rows(1), of_rows(64), of_rows(1024), of_rows(4096)};
    const auto at = [&](const Sizes& s) {
      return field_at(Problem(kernels_[0].problem).at(s), device_, 0, options_, false);
    };
    time_at_points(sizes, {&all_[0], &all_[1]}, at, options, 8, progress_);
  }
  std::vector<Candidate> all_;
  Spent spent_;
};

TEST_F(GpuRound, StartsOneWorker) {
  run();
  EXPECT_EQ(spent_.starts.count, 1);
  EXPECT_EQ(spent_.further.count, 3);
  for (const Candidate& c : all_) {
    EXPECT_EQ(c.record.status, "ok") << c.record.detail;
    EXPECT_EQ(c.record.points.size(), 4u);
  }
}

/// In the first race, while the graphs of the anchor are made, and while those of the other one are.
TEST_F(GpuRound, ALostDeviceTakesOneCandidate) {
  constexpr int kCalls[] = {1000, 3000};
  for (size_t lost : {0, 1}) {
    all_.clear();
    const LostAt at(kCalls[lost]);
    run();
    EXPECT_EQ(all_[lost].record.status, "crash");
    EXPECT_EQ(all_[1 - lost].record.status, "ok") << all_[1 - lost].record.detail;
    EXPECT_EQ(all_[1 - lost].record.points.size(), 4u);
  }
}

} // namespace
} // namespace deepgen::gpu_series_test
