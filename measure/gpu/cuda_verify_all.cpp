#include "measure/gpu/cuda_verify_all.h"

#include "base/json/json.h"
#include "base/kernel/kernel_call.h"
#include "base/text/error.h"
#include "measure/devices/cuda_devices.h"
#include "measure/gpu/cuda_attention_verify.h"
#include "measure/gpu/cuda_rows_verify.h"
#include "measure/process/stopwatch.h"
#include "measure/process/worker.h"
#include "measure/values/verdict_messages.h"
#include "measure/values/verified_sizes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace deepgen::cuda {
namespace {

/// Creating a context and compiling the measurement's own kernels may take long on a machine with many GPUs.
constexpr double kOpenSeconds = 120, kPrepareSeconds = 60;

std::unique_ptr<KernelVerifier> verifier_of(const Gemm&, const Toolbox& tools, const VerifyOptions& o) {
  return std::make_unique<Verifier>(tools.context(), tools, o.seed, o.zone);
}
std::unique_ptr<KernelVerifier> verifier_of(const Rows&, const Toolbox& tools, const VerifyOptions& o) {
  return std::make_unique<RowsVerifier>(tools.context(), tools, o.seed, o.zone);
}
std::unique_ptr<KernelVerifier> verifier_of(const Attention&, const Toolbox& tools, const VerifyOptions& o) {
  return std::make_unique<AttentionVerifier>(tools.context(), tools, o.seed, o.zone);
}

/// What is verified of a kernel: itself, or where the problem has ranges its calls of several sizes.
std::vector<Sizes> sizes_of_calls(const Problem& problem) {
  if (problem.op() != "gemm" || !problem.gemm().ranged()) return {Sizes()};
  return verified_sizes(problem.gemm());
}

std::string label(const Kernel& kernel, const Sizes& sizes) {
  if (kernel.problem.op() != "gemm" || !kernel.problem.gemm().ranged()) return kernel.role + " kernel";
  std::string text;
  for (size_t i = 0; i < size_count; ++i)
    if (kernel.problem.gemm().ranged(Size(i)))
      text += std::string(text.empty() ? "" : " ") + size_names[i] + "=" + std::to_string(sizes[Size(i)]);
  return kernel.role + " kernel at " + text;
}

using Verify = Verdict (KernelVerifier::*)(const Kernel&, const std::function<void(const std::string&)>&);

Verdict verify_by(Verify verify, const Kernel& kernel, const std::string& label, KernelVerifier& verifier,
                  double limit, Channel& channel) {
  const double call = call_limit(kernel.problem, limit);
  const auto before = [&](const std::string& name) {
    const bool calls = name != KernelVerifier::loading && name != KernelVerifier::reference;
    channel.step(label + ", " + (calls ? "case '" + name + "'" : name),
                 calls ? call : std::max(call, kPrepareSeconds));
  };
  try {
    return (verifier.*verify)(kernel, before);
  } catch (const DriverError& e) {
    e.check_host();
    return {e.sticky() ? "crash" : "unsupported", e.what(), 0};
  }
}

Verdict verify_call(const Kernel& kernel, const std::string& label, KernelVerifier& verifier, double limit,
                    Channel& channel) {
  return verify_by(&KernelVerifier::verify, kernel, label, verifier, limit, channel);
}

/// All its calls, of a kernel with ranges.
Verdict verify_rows(const Kernel& kernel, const std::string& label, KernelVerifier& verifier, double limit,
                    Channel& channel) {
  return verify_by(&KernelVerifier::verify_equal_rows, kernel, label, verifier, limit, channel);
}

Verdict verify_file(const KernelFile& file, KernelVerifier& verifier, double limit, Channel& channel) {
  Verdict worst;
  SameOrder same;
  for (const Kernel& kernel : file.kernels) {
    for (const Sizes& sizes : sizes_of_calls(kernel.problem)) {
      const std::string name = label(kernel, sizes);
      const Verdict one = verify_call(kernel_in_call(kernel, sizes), name, verifier, limit, channel);
      if (one.status != "ok") return {one.status, name + ": " + one.detail, one.error};
      worst.error = std::max(worst.error, one.error);
    }
    if (!kernel.problem.batch_invariant()) continue;
    const std::string name = kernel.role + " kernel";
    const Verdict rows = verify_rows(kernel, name, verifier, limit, channel);
    if (rows.status != "ok") return {rows.status, name + ": " + rows.detail, worst.error};
    if (std::string why = same.add(kernel, rows); !why.empty()) return {"varies", why, worst.error};
    if (&kernel == file.find("main")) worst.row_bits = rows.row_bits;
  }
  return worst;
}

/// A device that is reset is away for a second or two; the next process can use it.
constexpr int kMostOpenings = 5;
constexpr std::chrono::seconds kResetPause{1};

/// The worker's body: verdicts for files[from...], in order, until the deadline or a crash.
void verify_from(const std::vector<const KernelFile*>& files, size_t from, const VerifyOptions& o,
                 Channel& channel) {
  channel.step("opening the device", kOpenSeconds);
  std::optional<Context> opened;
  try {
    opened.emplace(o.uuid.empty() ? o.ordinal : ordinal_of(o.uuid));
  } catch (const DriverError& e) {
    if (!e.sticky()) throw;
    channel.send(to_json(NotOpened{e.what()})); // no candidate has run yet: the driver is being reset, say
    std::_Exit(0);
  }
  const Context& context = *opened;
  const std::unique_ptr<const Toolbox> tools = Toolbox::make(context);
  std::map<std::string, std::unique_ptr<KernelVerifier>> verifiers; // by operator
  for (size_t i = from; i < files.size(); ++i) {
    if (i > 0 && wall_seconds() > o.deadline) return; // the first one is the default: it is always verified
    Verdict v;
    try {
      std::unique_ptr<KernelVerifier>& verifier = verifiers[files[i]->problem.op()];
      if (!verifier)
        verifier =
            std::visit([&](const auto& p) { return verifier_of(p, *tools, o); }, files[i]->problem.which());
      v = verify_file(*files[i], *verifier, o.call_seconds, channel);
    } catch (const HostFault&) { // no verdict
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      v = {"unsupported", e.what(), 0};
    }
    channel.send(to_json(Verified{i, v}));
    if (v.status == "crash") std::_Exit(0); // the context is lost; destructors would only fail
  }
}

} // namespace

size_t verify_files(const std::vector<const KernelFile*>& files, VerifyOptions options,
                    const std::function<void(size_t, const Verdict&)>& on_verdict) {
  std::vector<std::shared_ptr<const AttentionTruth>> held; // ahead of workers, all of which read it
  if (!files.empty() && files.front()->problem.op() == "attention")
    held = attention_truths(*files.front(), options.seed);
  size_t next = 0, spared = files.size();
  double last = wall_seconds();
  int openings = 0;
  std::string unopened; ///< why the device could not be opened
  const auto on_message = [&](const Json& json) {
    const VerdictMessage message = verdict_message_from(json, next);
    if (const auto* not_opened = std::get_if<NotOpened>(&message)) {
      unopened = not_opened->why;
      return;
    }
    on_verdict(next, std::get<Verified>(message).verdict);
    ++next, last = wall_seconds();
  };
  while (next < files.size()) {
    const size_t before = next;
    WorkerEnd end;
    try {
      end = run_worker([&](Channel& channel) { verify_from(files, next, options, channel); }, on_message,
                       options.end);
    } catch (const HostFault&) {
      if (std::exchange(spared, next) == next) throw;
      continue; // a new worker has an empty device
    } catch (const ForeignMessage& e) {
      end = {WorkerEnd::crash, e.what(), "", false, 0};
    }
    if (end.kind == WorkerEnd::done || end.kind == WorkerEnd::late || next >= files.size()) break;
    if (const std::string why = std::exchange(unopened, ""); !why.empty()) {
      if (++openings == kMostOpenings)
        throw Error("the GPU cannot be opened", files[next]->problem.key(), why,
                    "see `nvidia-smi` and the kernel's log; then run the build again: it goes on here");
      std::this_thread::sleep_for(kResetPause);
      options.deadline += wall_seconds() - std::exchange(last, wall_seconds());
      continue;
    }
    openings = 0;
    if (end.killed && std::exchange(spared, next) == next) throw killed_twice(end);
    if (end.killed) continue;
    if (next > before && end.kind == WorkerEnd::crash)
      continue; // it ended itself after a crash that it reported
    const double lost = wall_seconds() - std::exchange(last, wall_seconds());
    if (end.kind == WorkerEnd::timeout)
      options.deadline += lost; // waiting for one that hangs is not at the others' expense
    on_verdict(next++, {end.kind == WorkerEnd::timeout ? "timeout" : "crash", end.detail, 0});
  }
  return next;
}

bool verify(const VerifyCommand& command) {
  std::vector<KernelFile> files;
  std::vector<const KernelFile*> good;
  std::vector<std::string> names;
  std::map<std::string, int> counts;
  for (const std::string& path : command.files) {
    KernelFile file = KernelFile::read(path);
    if (file.status == "empty") continue;
    if (file.arch == "cpu")
      throw Error("`verify` is for GPU kernels", path, "it is for the arch cpu",
                  "use `deepgen-measure run` for those");
    if (file.status != "ok") {
      counts["compile_error"]++;
      std::printf("compile_error %s %s\n", path.c_str(), file.detail.c_str());
      continue;
    }
    files.push_back(std::move(file)), names.push_back(path);
  }
  for (const KernelFile& file : files) good.push_back(&file);
  if (!files.empty()) use(platform_of(files.front().arch));
  const double start = wall_seconds();
  verify_files(good, command.options, [&](size_t i, const Verdict& v) {
    counts[v.status]++;
    std::printf("%-13s %s error %.3f%s%s\n", v.status.c_str(), names[i].c_str(), v.error,
                v.detail.empty() ? "" : ": ", v.detail.c_str());
    std::fflush(stdout);
  });
  std::string summary;
  for (const auto& [status, count] : counts)
    summary += (summary.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  std::printf("%zu files: %s in %.1f s\n", command.files.size(), summary.c_str(), wall_seconds() - start);
  return counts.size() == 1 && counts.count("ok");
}

} // namespace deepgen::cuda
