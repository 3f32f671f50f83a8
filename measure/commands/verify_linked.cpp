#include "measure/commands/verify_linked.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/kernel/cpu_isa.h"
#include "base/kernel/vouched.h"
#include "base/text/error.h"
#include "measure/commands/environment.h"
#include "measure/commands/history.h"
#include "measure/cpu/subject.h"
#include "measure/cpu/verify_all.h"
#include "measure/devices/cuda_driver.h"
#include "measure/devices/cuda_take.h"
#include "measure/devices/devices.h"
#include "measure/values/verified_sizes.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace deepgen {
namespace {

/// A build verifies no kernel of more: a call of the slowest takes seconds.
constexpr double kMostFlops = 50e9;
constexpr double kLongTime = 3600;

/// Of the smallest call that verifies a kernel. With ranges, larger ones are left out where they take long.
double least_flops(const Problem& p) {
  if (p.op() != "gemm" || !p.gemm().ranged()) return p.flops();
  return p.gemm().at(verified_sizes(p.gemm()).front()).flops();
}

/// One file's kernels, by what becomes of them.
struct Parts {
  KernelFile checked;              ///< with the kernels to be verified alone
  std::vector<std::string> listed; ///< hashes of those that need not be
  std::string left_out;            ///< what cannot be, and why
};

Parts parts_of(const KernelFile& file, const VerifyCommand& command, int64_t isa) {
  Parts parts{file, {}, ""};
  parts.checked.kernels.clear();
  const auto leave_out = [&](const Kernel& k, const std::string& why) {
    parts.left_out += (parts.left_out.empty() ? "" : ", ") + k.choice.text() + " (" + why + ")";
  };
  for (const Kernel& k : file.kernels) {
    if (command.unproven && vouched_for(file, k))
      parts.listed.push_back(k.sha256);
    else if (!runs_on(k.isa, isa)) {
      leave_out(k, "it needs " + isa_text(k.isa) + ", which this host lacks");
      if (command.any_host) parts.listed.push_back(k.sha256);
    } else if (command.unproven && file.arch == "cpu" && least_flops(k.problem) > kMostFlops)
      leave_out(k, "a call is too long for a build: `deepgen-measure verify` it");
    else
      parts.checked.kernels.push_back(k);
  }
  return parts;
}

Verdict verdict_on_cpu(const KernelFile& file, const VerifyCommand& command) {
  Candidate c;
  c.file = file;
  c.record.status.clear();
  const Device device = find_device("cpu");
  MeasureOptions o;
  o.seed = command.gpu.options.seed, o.call_seconds = command.gpu.options.call_seconds;
  EarlierRuns history(command.no_cache ? CacheSettings() : CacheSettings::from_environment(command.cache),
                      device, {}, o);
  if (!history.unverified({&c}).empty()) {
    const std::unique_ptr<CaseSet> cases = subject_of(file.problem)->cases(o.seed);
    VerifyOptions options;
    options.device_isa = runnable_isa(device);
    options.call_seconds = o.call_seconds, options.seed = o.seed;
    options.deadline = wall_seconds() + kLongTime;
    const Turn turn = Turn::compile_turn(); // as compiles, it keeps out of finals
    Progress progress("verify");
    verify_all({&c}, *cases, options, progress);
    history.keep_verdicts({&c});
  }
  return {c.open() ? "ok" : c.record.status, c.record.detail, c.record.error};
}

/// On a free device of the model. A host without one verifies nothing.
Verdict verdict_on_gpu(const KernelFile& file, const VerifyCommand& command) {
  const Device model = Device::read(command.device);
  if (!model.present) return {"unsupported", "no device of " + file.arch + " is attached", 0};
  const cuda::Taken taken = cuda::take(model, command.devices);
  cuda::VerifyOptions options = command.gpu.options;
  options.uuid = taken.device.uuid;
  Verdict verdict{"unsupported", "no verdict", 0};
  cuda::verify_files({&file}, options, [&](size_t, const Verdict& v) { verdict = v; });
  return verdict;
}

/// What the host cannot do just now leaves the library unverified, which is told; it is no reason not to
/// build it.
Verdict verdict_on(const KernelFile& file, const VerifyCommand& command) {
  try {
    return file.arch == "cpu" ? verdict_on_cpu(file, command) : verdict_on_gpu(file, command);
  } catch (const HostFault& e) {
    return {"unsupported", e.what(), 0};
  }
}

bool is_wrong(const Verdict& v) {
  return v.status == "wrong" || v.status == "out_of_bounds" || v.status == "varies" || v.status == "crash";
}

/// For a build: verified.json of one winner.dgk.
void verify_for_library(const VerifyCommand& command) {
  const std::string& path = command.gpu.files.front();
  const KernelFile file = KernelFile::read(path);
  const std::string what = file.problem.key() + " on " + file.arch;
  Parts parts = parts_of(file, command, file.arch == "cpu" ? runnable_isa(find_device("cpu")) : INT64_MAX);
  if (!parts.checked.kernels.empty()) {
    const Verdict v = verdict_on(parts.checked, command);
    if (is_wrong(v))
      throw Error("a kernel that would be linked is not right", what + ", " + path,
                  v.status + ": " + v.detail,
                  "run `ninja tune` for another config; report the defect with the config, which `deepgen "
                  "lock show` has");
    if (v.status == "ok")
      for (const Kernel& k : parts.checked.kernels) parts.listed.push_back(k.sha256);
    else
      parts.left_out += (parts.left_out.empty() ? "" : ", ") + v.status + ": " + v.detail;
  }
  if (!parts.left_out.empty())
    std::fprintf(stderr, "deepgen-measure: %s: not verified: %s\n", what.c_str(), parts.left_out.c_str());
  std::sort(parts.listed.begin(), parts.listed.end());
  write_if_changed(command.output,
                   dump_json({{"schema", "deepgen.verified/1"}, {"sha256", parts.listed}}) + "\n");
}

bool verify_on_cpu(const std::string& path, const VerifyCommand& command) {
  const KernelFile file = KernelFile::read(path);
  Parts parts = parts_of(file, command, runnable_isa(find_device("cpu")));
  if (parts.checked.kernels.empty()) parts.left_out += parts.left_out.empty() ? "no kernel" : "";
  const Verdict v =
      parts.checked.kernels.empty() ? Verdict{"unsupported", "", 0} : verdict_on_cpu(parts.checked, command);
  std::printf("%-13s %s error %.3f%s%s%s%s\n", v.status.c_str(), path.c_str(), v.error,
              v.detail.empty() ? "" : " ", v.detail.c_str(),
              parts.left_out.empty() ? "" : "; not verified: ", parts.left_out.c_str());
  return v.status == "ok";
}

} // namespace

bool verify(const VerifyCommand& command) {
  if (!command.output.empty()) {
    if (command.gpu.files.size() != 1)
      throw Error("-o is for one kernel file", "deepgen-measure verify", "", "call it once a file");
    verify_for_library(command);
    return true;
  }
  cuda::VerifyCommand gpu = command.gpu;
  const auto on_cpu = std::stable_partition(gpu.files.begin(), gpu.files.end(), [](const std::string& path) {
    const KernelFile file = KernelFile::read(path);
    return file.arch != "cpu" || file.status != "ok";
  });
  const std::vector<std::string> cpu(on_cpu, gpu.files.end());
  gpu.files.erase(on_cpu, gpu.files.end());
  bool good = true;
  for (const std::string& path : cpu) good &= verify_on_cpu(path, command);
  return (gpu.files.empty() || cuda::verify(gpu)) && good;
}

} // namespace deepgen
