// check-ptxas: compiles a random sample of candidates for GPU archs, as a build would, and says what became
// of them.
#include "base/files/files.h"
#include "base/json/json.h"
#include "base/kernel/device.h"
#include "base/text/error.h"
#include "base/text/numbers.h"
#include "generator/cli/cli.h"
#include "generator/cli/isolate.h"
#include "generator/codegen/compile.h"
#include "generator/codegen/ptxas.h"
#include "generator/space/sample.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deepgen {
namespace {

struct CheckOptions {
  SampleSpec spec;
  size_t jobs = std::max(1u, std::thread::hardware_concurrency());
  double largest_share = 0.25, timeout = 120;
  bool verbose = false, no_awkward = false, list = false;
  std::string keep; ///< folder for the kernel files of what compiles
};

struct Outcome {
  std::string status, detail; ///< "ok", "rejected" by the gate, "failed"; why, or what the kernel takes
  double seconds = 0;         ///< CPU time of the kernels, ptxas or lld included
};

double cpu_seconds() {
  double total = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      total += double(t.tv_sec) + double(t.tv_usec) * 1e-6;
  }
  return total;
}

std::string resources(const Kernel& kernel) {
  std::string text = std::to_string(kernel.code.size()) + " bytes of code";
  for (const Launch& l : kernel.launches) {
    text += ", " + l.entry + " " + std::to_string(l.registers) + " registers";
    if (l.waves) text += ", " + std::to_string(l.waves) + " waves";
  }
  for (const std::string& warning : kernel.warnings) text += ", " + warning;
  return text;
}

/// Of A, B and D, of X and D, or of Q, K and out.
std::string types_text(const Problem& problem, const std::string& between) {
  std::string text;
  for (const char* field : {"a", "b", "x", "q", "kv", "d", "out"})
    for (const auto& [name, value] : problem.fields())
      if (name == field) text += (text.empty() ? "" : between) + value;
  return text;
}

/// "00012-mma_sync+reduce-f16.f16.f32.dgk": what is known of a file, for those who count.
std::string file_name(size_t index, const KernelFile& file, const Kernel& main) {
  char number[32];
  std::snprintf(number, sizeof number, "%05zu-", index);
  return number + file.choice.template_name + (main.launches.size() > 1 ? "+reduce-" : "-") +
         types_text(file.problem, ".") + ".dgk";
}

Outcome compile_sample(const RandomCandidate& s, size_t index, const CheckOptions& o) {
  const Isolated isolated = run_isolated(
      [&] {
        const KernelFile file = compile_candidate(s.problem, s.arch, s.choice, !o.no_awkward, false);
        const double seconds = cpu_seconds();
        const Kernel* main = file.find("main");
        if (main && !o.keep.empty())
          write_if_changed(o.keep + "/" + file_name(index, file, *main), file.serialize());
        return Json{file.status, main ? resources(*main) : file.detail, seconds}.dump();
      },
      o.timeout);
  if (!isolated.failure.empty()) return {"failed", isolated.failure + ": " + isolated.errors};
  const Json json = Json::parse(isolated.result);
  Outcome outcome{json[0], json[1], json[2]};
  if (outcome.detail.rfind(kRejected, 0) == 0) outcome.status = "rejected";
  return outcome;
}

struct Worker {
  pid_t process;
  FILE* results; ///< a line per sample; an unnamed file, so that no worker waits for a reader
};

std::vector<Outcome> collect(const std::vector<Worker>& workers, size_t count) {
  std::vector<Outcome> outcomes(count, {"failed", "no result: its worker process died"});
  for (const Worker& worker : workers) {
    while (waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) {
    }
    std::rewind(worker.results);
    char* text = nullptr;
    size_t room = 0;
    while (getline(&text, &room, worker.results) > 0) {
      const Json json = Json::parse(text);
      outcomes.at(json[0]) = {json[1], json[2], json[3]};
    }
    std::free(text);
    std::fclose(worker.results);
  }
  return outcomes;
}

/// Worker w of `jobs` takes the samples w, w + jobs, ... Each worker is a process, as each compilation is.
std::vector<Outcome> compile_all(const std::vector<RandomCandidate>& samples, const CheckOptions& o) {
  std::vector<Worker> workers;
  const pid_t parent = getpid();
  for (size_t w = 0; w < std::min(o.jobs, samples.size()); ++w) {
    FILE* results = std::tmpfile();
    const pid_t child = results ? fork() : -1;
    if (child < 0) throw Error("cannot start a worker process", "check-ptxas", std::strerror(errno));
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      for (size_t i = w; i < samples.size(); i += o.jobs) {
        const Outcome r = compile_sample(samples[i], i, o);
        std::fprintf(results, "%s\n", Json{i, r.status, r.detail, r.seconds}.dump().c_str());
      }
      std::fflush(results);
      _exit(0);
    }
    workers.push_back({child, results});
  }
  return collect(workers, samples.size());
}

struct Row {
  size_t ok = 0, rejected = 0, failed = 0;
  std::vector<double> seconds; ///< without those that failed

  void add(const Outcome& outcome) {
    ++(outcome.status == "ok" ? ok : outcome.status == "rejected" ? rejected : failed);
    if (outcome.status != "failed") seconds.push_back(outcome.seconds);
  }
  size_t count() const { return ok + rejected + failed; }
  double quantile(double share) const {
    if (seconds.empty()) return 0;
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[size_t(share * double(sorted.size() - 1) + 0.5)];
  }
  double rejected_share() const { return double(rejected) / double(count()); }
};

void print_rows(const char* first, const std::map<std::string, Row>& rows) {
  std::printf("%-12s %8s %8s %8s %8s  %s\n", first, "samples", "compiled", "rejected", "failed",
              "CPU s: median, 95 %, longest");
  for (const auto& [name, row] : rows)
    std::printf("%-12s %8zu %8zu %8zu %8zu  %.2f %.2f %.2f\n", name.c_str(), row.count(), row.ok,
                row.rejected, row.failed, row.quantile(0.5), row.quantile(0.95), row.quantile(1));
}

std::string arguments(const RandomCandidate& s) {
  return "--arch " + s.arch + " --problem \"" + s.problem.key() + "\" --config \"" + s.choice.text() + "\"";
}

void print_sample(const RandomCandidate& s, const Outcome& outcome) {
  std::printf("%s in %.2f s: %s\n  %s\n", outcome.status.c_str(), outcome.seconds, arguments(s).c_str(),
              outcome.detail.c_str());
}

int list(const CheckOptions& o) {
  for (const RandomCandidate& s : draw_samples(o.spec)) std::printf("%s\n", arguments(s).c_str());
  return 0;
}

int check(const CheckOptions& o) {
  const bool for_ptx = std::any_of(o.spec.archs.begin(), o.spec.archs.end(),
                                   [](const std::string& arch) { return compute_capability(arch) != 0; });
  if (for_ptx && find_ptxas().empty())
    throw Error("check-ptxas needs ptxas", "", "none was found",
                "install the CUDA Toolkit, or set DEEPGEN_PTXAS");
  const std::vector<RandomCandidate> samples = draw_samples(o.spec);
  if (samples.empty()) throw Error("no template serves any of these archs", "check-ptxas");
  const std::vector<Outcome> outcomes = compile_all(samples, o);
  std::map<std::string, Row> by_template, by_arch, by_types;
  for (size_t i = 0; i < samples.size(); ++i) {
    by_template[samples[i].choice.template_name].add(outcomes[i]);
    by_arch[samples[i].arch].add(outcomes[i]);
    by_types[types_text(samples[i].problem, " ")].add(outcomes[i]);
    if (outcomes[i].status == "failed" || o.verbose) print_sample(samples[i], outcomes[i]);
  }
  std::printf("%s, seed %llu\n", for_ptx ? ptxas_version().c_str() : "without ptxas",
              static_cast<unsigned long long>(o.spec.seed));
  print_rows("template", by_template);
  print_rows("arch", by_arch);
  print_rows("types", by_types);
  bool good = true;
  for (const auto& [name, row] : by_template) {
    good &= row.failed == 0;
    if (row.rejected_share() <= o.largest_share) continue;
    std::printf("%s: %.0f %% are rejected, more than %.0f %%\n", name.c_str(), 100 * row.rejected_share(),
                100 * o.largest_share);
    good = false;
  }
  return good ? 0 : 1;
}

} // namespace

void add_check_ptxas_command(CLI::App& app, CliContext& context) {
  auto o = std::make_shared<CheckOptions>();
  o->spec.archs = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"};
  CLI::App* c = app.add_subcommand("check-ptxas",
                                   "compile a random sample of GPU candidates, and say what became of them");
  c->add_option("--op", o->spec.op, "operator: gemm, rows or attention")
      ->capture_default_str()
      ->check(CLI::IsMember(operator_names()));
  c->add_option("--arch", o->spec.archs, "archs")->capture_default_str();
  c->add_option("--template", o->spec.templates, "templates; all if absent");
  c->add_option(
       "--count", o->spec.count,
       "samples, spread over templates, archs and types of A or X; 0: one for each with each layout or kind")
      ->capture_default_str();
  c->add_option("--each", o->spec.each, "samples for each template, arch, types and layout")
      ->capture_default_str();
  c->add_option("--seed", o->spec.seed, "of the sample")->capture_default_str();
  c->add_option("--largest", o->spec.largest,
                "largest size of M, N and K; of rows: an eighth of the largest N")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--most-flops", o->spec.most_flops,
                "operations of one problem: for those who run what is kept")
      ->check(CLI::PositiveNumber);
  c->add_option("--keep", o->keep,
                "write a kernel file of each sample that compiles here, for `deepgen-measure verify`");
  c->add_option("--jobs", o->jobs, "compilations at a time")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--max-rejected", o->largest_share, "share of a template's samples that may spill")
      ->capture_default_str()
      ->check(within(0, 1));
  c->add_option("--timeout", o->timeout, "seconds for one candidate")
      ->capture_default_str()
      ->check(within(0.001, 86400));
  c->add_flag("--ranges", o->spec.ranges,
              "with ranges of sizes: `deepgen-measure verify` makes calls of several sizes with a kernel");
  c->add_flag("--defaults", o->spec.defaults, "compile default configs instead of random ones");
  c->add_flag("--no-awkward", o->no_awkward,
              "without the kernel for an awkward shape, as the rounds of a search compile");
  c->add_flag("--list", o->list, "print the sample as arguments of `deepgen dump`, and compile nothing");
  c->add_flag("--verbose", o->verbose, "print every sample, not only those that fail");
  c->footer("Fails when a config that its template calls legal does not compile, or too many are rejected.\n"
            "Example:\n  deepgen check-ptxas --count 100 --arch sm_90a --template gemv\n"
            "  scripts/gpu/gpu-verify.sh checks on a GPU what --keep writes.");
  c->callback([o, &context] { context.status = o->list ? list(*o) : check(*o); });
}

} // namespace deepgen
