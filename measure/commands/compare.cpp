#include "measure/commands/compare.h"

#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/json/json.h"
#include "base/kernel/cpu_isa.h"
#include "base/kernel/kernel_call.h"
#include "base/search/decide.h"
#include "base/text/error.h"
#include "measure/commands/environment.h"
#include "measure/commands/sized_field.h"
#include "measure/devices/cuda_take.h"
#include "measure/devices/devices.h"
#include "measure/race/candidates.h"
#include "measure/race/statistics.h"
#include "measure/values/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>

namespace deepgen {
namespace {

constexpr int kFewestRounds = 11, kMostRounds = 60;
constexpr int kRoundsOfTrial = 30, kTrialsOfProcess = 5, kMostTrials = 60, kFewestTrials = 10;

/// A field whose device is held, with compiles kept out, as long as it lives.
class Stand {
public:
  Stand(const Device& model, const Problem& problem, int64_t workspace, const MeasureOptions& o, bool vendor)
      : device_(model) {
    if (model.is_cpu())
      cpu_.emplace(timing_lock_path(), FileLock::kExclusive);
    else
      gpu_.emplace(cuda::take(model, o.devices)), device_ = gpu_->device;
    quiet_.emplace(Turn::quiet_turn(model.is_cpu() ? FileLock::kExclusive : FileLock::kShared));
    field_ = field_at(problem, device_, workspace, o, vendor);
    field_->complete(options_, Heat::full);
    options_.call_seconds = call_limit(problem, o.call_seconds);
    options_.seed = o.seed;
  }
  const Device& device() const { return device_; }
  SizedField& field() const { return *field_; }
  RaceOptions options(double seconds) const {
    RaceOptions o = options_;
    o.deadline = wall_seconds() + seconds;
    return o;
  }
  Arm read_arm() const {
    if (std::optional<Arm> arm = field_->read_arm()) return *arm;
    throw Error("nothing to time", device_.name, "the measurement has no kernel of its own for AMD's devices",
                "pass a kernel file");
  }

private:
  Device device_;
  std::optional<FileLock> cpu_;
  std::optional<cuda::Taken> gpu_;
  std::optional<Turn> quiet_;
  std::unique_ptr<SizedField> field_;
  RaceOptions options_;
};

/// The problem of the calls that are timed: itself, or of a problem with ranges that of the sizes `at`.
Problem problem_of_calls(const Problem& p, const std::string& at) {
  if (p.op() != "gemm" || !p.gemm().ranged()) return p;
  Sizes sizes = p.gemm().sizes();
  std::istringstream words(at);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const auto name = std::ranges::find(size_names, word.substr(0, equals));
    const std::string digits = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == size_names.end() || digits.empty() || digits.size() > 10 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      throw Error("these are no sizes of a call", word, "--at", "write for example: m=64 batch=2");
    sizes[Size(name - size_names.begin())] = std::stoll(digits);
  }
  return p.gemm().at(sizes);
}

/// Kernel files of one problem, in calls of the sizes `at`, and the device's arch, with a main kernel each.
std::vector<KernelFile> load(const std::vector<std::string>& paths, const Device& device,
                             const std::string& at = "") {
  std::vector<KernelFile> files;
  for (const std::string& path : paths) {
    KernelFile file = KernelFile::read(path);
    const Kernel* kernel = file.find("main");
    const Problem problem = problem_of_calls((files.empty() ? file : files.front()).problem, at);
    if (file.status != "ok" || !kernel)
      throw Error("there is no kernel to time", path, file.detail,
                  "pass kernel files that could be compiled");
    if (file.arch != device.arch || !runs_on(kernel->isa, runnable_isa(device)))
      throw Error("a kernel is for another device", path, file.arch + ", the device is " + device.arch);
    if (problem_of_calls(file.problem, at) != problem)
      throw Error("the kernels are of different problems", path,
                  file.problem.key() + " and " + problem.key());
    files.push_back(std::move(file));
  }
  return files;
}

/// Of calls of the problem, which has no ranges.
int64_t workspace_of(const std::vector<KernelFile>& files, const Problem& problem) {
  int64_t bytes = 0;
  for (const KernelFile& f : files) {
    const Kernel& k = *f.find("main");
    const bool gemm = problem.op() == "gemm";
    bytes = std::max(bytes, gemm ? kernel_in_call(k, problem.gemm().sizes()).workspace : k.workspace);
  }
  return bytes;
}

void write_json(const std::string& path, const Json& json) {
  if (!path.empty()) write_atomically(path, json.dump(1) + "\n");
}

double rounded(double x) { return std::round(finite(x) * 1e5) / 1e5; }

/// For noise without a kernel: a product of matrices that stay in the L1 cache. All arms have the same
/// memory, as kernels do: two blocks from the heap may lie differently in cache lines, and one of the arms is
/// then slower indeed.
Arm loop_arm() {
  return {"loop", []() -> std::function<void()> {
            constexpr int kSize = 48;
            alignas(4096) static float memory[3 * kSize * kSize];
            std::fill(std::begin(memory), std::end(memory), 0.5f);
            return [] {
              float *a = memory, *b = a + kSize * kSize, *c = b + kSize * kSize;
              for (int i = 0; i < kSize; ++i)
                for (int k = 0; k < kSize; ++k)
                  for (int j = 0; j < kSize; ++j)
                    c[i * kSize + j] = 0.5f * c[i * kSize + j] + a[i * kSize + k] * b[k * kSize + j];
              asm volatile("" : : "r"(c) : "memory");
            };
          }};
}

/// |median| of the log-ratios of each trial's rounds, over processes until time is up; and the samples for
/// the summary.
std::vector<double> trials(const std::function<Arm()>& arm, const Stand& stand, double seconds,
                           Progress& progress, std::vector<ArmResult>& samples) {
  std::vector<double> found;
  const double end = wall_seconds() + seconds;
  for (uint64_t process = 0; int(found.size()) < kMostTrials; ++process) {
    if (int(found.size()) >= kFewestTrials && wall_seconds() > end) break;
    RaceOptions options = stand.options(1e6);
    options.seed += process;
    const auto r = full_race({arm(), arm()}, 0, kTrialsOfProcess * kRoundsOfTrial, options, progress);
    if (!r[0].timed() || !r[1].timed())
      throw Error("the kernel could not be timed", r[0].timed() ? r[1].failure : r[0].failure,
                  r[0].timed() ? r[1].detail : r[0].detail);
    samples.insert(samples.end(), r.begin(), r.end());
    const std::vector<double> ratios = log_ratios(r[1], r[0]);
    for (size_t at = 0; at + kRoundsOfTrial / 2 <= ratios.size(); at += kRoundsOfTrial) {
      const auto begin = ratios.begin() + std::ptrdiff_t(at);
      const auto stop = ratios.begin() + std::ptrdiff_t(std::min(at + kRoundsOfTrial, ratios.size()));
      found.push_back(std::expm1(std::fabs(median({begin, stop}))));
    }
  }
  return found;
}

/// Of the results from `first` on, the fastest beside the first kernel; null: none was timed.
Json best_vendor(const std::vector<ArmResult>& results, size_t first, const std::string& name,
                 uint64_t seed) {
  std::optional<Timing> best;
  for (size_t i = first; i < results.size(); ++i) {
    if (!results[i].timed()) continue;
    const Timing t = summarize(results[i], results[0], seed);
    if (!best || t.ratio < best->ratio) best = t;
  }
  if (!best) return nullptr;
  std::printf("%.4f [%.4f, %.4f]      %.3f us  %s, the best of %zu\n", best->ratio, best->low, best->high,
              1e6 * best->seconds, name.c_str(), results.size() - first);
  return {{"name", name},
          {"algorithms", results.size() - first},
          {"seconds", best->seconds},
          {"ratio", {rounded(best->low), rounded(best->ratio), rounded(best->high)}}};
}

void check_regime(const Device& device, const CompareCommand& c) {
  if (!c.serial || (!device.is_cpu() && c.options.regime == TunedFor::sustained)) return;
  throw Error("--serial is a regime of its own, of GPUs", c.device,
              device.is_cpu() ? "calls on a CPU follow each other one by one anyway"
                              : "--regime " + to_string(c.options.regime) + " asks for another one",
              device.is_cpu() ? "leave --serial out" : "leave one of the two out");
}

} // namespace

void compare(const CompareCommand& command) {
  const Device model = Device::read(command.device);
  check_device(model, command.device, command.options.caches);
  check_regime(model, command);
  const std::vector<KernelFile> files = load(command.files, model, command.at);
  const Problem problem = problem_of_calls(files.front().problem, command.at);
  const Stand stand(model, problem, workspace_of(files, problem), command.options, command.vendor);
  SizedField& field = stand.field();
  std::vector<Arm> arms = {field.kernel_arm("the first again", *files.front().find("main"))};
  for (size_t i = 0; i < files.size(); ++i)
    arms.push_back(field.kernel_arm(command.files[i], *files[i].find("main")));
  std::swap(arms[0], arms[1]);
  Progress progress("compare");
  if (command.vendor) {
    for (Arm& arm : field.vendor_arms()) arms.push_back(std::move(arm));
    for (const std::string& note : field.vendor_notes()) progress.summary(note);
  }
  if (command.serial)
    for (Arm& arm : arms) arm = in_regime(arm, Regime::serial);
  const auto r =
      full_race(arms, kFewestRounds, kMostRounds, stand.options(command.options.seconds), progress);
  const std::vector<double> pairs = log_ratios(r[1], r[0]);
  const double floor = noise_floor(pairs),
               threshold = threshold_of(std::max(floor, model.is_cpu() ? least_noise_of_cpu() : 0));
  Json list = Json::array();
  char text[80];
  std::snprintf(text, sizeof text, "noise floor %.2f %%, %zu rounds", 100 * floor, pairs.size());
  progress.summary(text);
  for (size_t i = 0; i < files.size(); ++i) {
    const ArmResult& one = r[i == 0 ? 0 : i + 1];
    Json line = {{"file", command.files[i]}, {"config", files[i].choice.text()}};
    if (one.timed()) {
      const Timing t = summarize(one, r[0], command.options.seed);
      line["seconds"] = t.seconds;
      line["ratio"] = {rounded(t.low), rounded(t.ratio), rounded(t.high)};
      line["verdict"] = verdict(t.low, t.high, threshold);
      std::printf("%.4f [%.4f, %.4f] %-4s %.3f us  %s\n", t.ratio, t.low, t.high,
                  line["verdict"].get<std::string>().c_str(), 1e6 * t.seconds, command.files[i].c_str());
    } else {
      line["failure"] = one.failure + ": " + one.detail;
      std::printf("%s: %s  %s\n", one.failure.c_str(), one.detail.c_str(), command.files[i].c_str());
    }
    list.push_back(line);
  }
  Json json = {{"schema", "deepgen.compare/1"},
               {"device", stand.device().to_json()},
               {"problem", problem.key()},
               {"noise_floor", rounded(floor)},
               {"rounds", pairs.size()},
               {"clean", rounded(clean_share(r))},
               {"dropped", rounded(dropped_share(r))},
               {"kernels", list}};
  if (const Json best = best_vendor(r, files.size() + 1, field.vendor_name(), command.options.seed);
      !best.is_null())
    json["vendor"] = best;
  write_json(command.output, json);
}

void noise(const NoiseCommand& command) {
  const Device model = command.device.empty() ? find_device(command.arch) : Device::read(command.device);
  check_device(model, command.device.empty() ? command.arch : command.device, command.options.caches);
  const std::vector<KernelFile> files =
      load(command.file.empty() ? std::vector<std::string>() : std::vector{command.file}, model);
  Gemm read; // 64 MiB
  read.m = 1, read.n = read.k = files.empty() && !model.is_cpu() ? 4096 : 64;
  const Problem problem = files.empty() ? Problem(read) : problem_of_calls(files.front().problem, "");
  const Stand stand(model, problem, workspace_of(files, problem), command.options, false);
  const auto arm = [&] {
    if (!files.empty()) return stand.field().kernel_arm(command.file, *files.front().find("main"));
    return model.is_cpu() ? loop_arm() : stand.read_arm();
  };
  Progress progress("noise");
  std::vector<ArmResult> samples;
  const std::vector<double> found = trials(arm, stand, command.options.seconds, progress, samples);
  const double p95 = quantile(found, 0.95), clean = clean_share(samples);
  const std::string what = !files.empty()   ? files.front().choice.text()
                           : model.is_cpu() ? "a loop"
                                            : "reading memory";
  std::printf("noise floor %.2f %%: p95 of |A/A - 1| over %zu comparisons of %d rounds each (median %.2f %%, "
              "largest %.2f %%)\n"
              "of %s on %s; %.0f %% of the samples undisturbed, %.0f %% of the rounds dropped\n",
              100 * p95, found.size(), kRoundsOfTrial, 100 * median(found), 100 * quantile(found, 1),
              what.c_str(), stand.device().name.c_str(), 100 * clean, 100 * dropped_share(samples));
  write_json(command.output, {{"schema", "deepgen.noise/1"},
                              {"device", stand.device().to_json()},
                              {"of", what},
                              {"comparisons", found.size()},
                              {"rounds", kRoundsOfTrial},
                              {"p95", rounded(p95)},
                              {"median", rounded(median(found))},
                              {"largest", rounded(quantile(found, 1))},
                              {"clean", rounded(clean)},
                              {"dropped", rounded(dropped_share(samples))}});
}

} // namespace deepgen
