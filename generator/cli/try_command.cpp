#include "generator/cli/try_command.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/report/report.h"
#include "generator/space/space.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace deepgen {
namespace {

namespace fs = std::filesystem;

struct TryOptions {
  std::string problem, arch = "cpu", device, config, folder = "deepgen-try", timeout = "60", seconds;
};

fs::path own_path() { return own_program(); }

/// The default and, unless it is the same, the candidate.
Plan plan_of(const TryOptions& o, const Problem& problem, const Device& device) {
  const Choice choice = choice_of(o.config, problem, o.arch);
  if (const std::string why = why_illegal(problem, o.arch, device, choice); !why.empty())
    throw Error("the config is not legal", choice.text(), why, "see `deepgen space explain --help`");
  Plan plan;
  plan.problem = problem, plan.arch = o.arch;
  plan.slots.push_back({Space(problem, o.arch, device).default_choice(), "default"});
  if (plan.slots[0].choice != choice) plan.slots.push_back({choice, "named"});
  return plan;
}

void start(const std::vector<std::string>& words) {
  if (const int status = run_program(words); status != 0)
    throw Error("a step failed", words[0] + " " + words[1], "wait status " + std::to_string(status),
                "its own message is above");
}

void run_try(const TryOptions& o) {
  const Problem problem = problem_of(o.problem);
  const fs::path folder = o.folder;
  fs::create_directories(folder);
  std::string device = o.device;
  if (device.empty()) {
    device = folder / "device.json";
    write_if_changed(device, probe_device(o.arch).to_json().dump(1) + "\n");
  }
  const Plan plan = plan_of(o, problem, device_of(device, o.arch));
  const std::string plan_file = folder / "plan.json", records = folder / "records.jsonl";
  write_if_changed(plan_file, plan.serialize());
  setenv("DEEPGEN_CACHE", "off", 1); // who asks for a measurement wants one, and not what an earlier one said
  for (size_t i = 0; i < plan.slots.size(); ++i)
    start({own_path(), "compile", "--plan", plan_file, "--slot", std::to_string(i), "--timeout", o.timeout,
           "-o", folder / ("s0" + std::to_string(i) + ".dgk")});
  std::vector<std::string> measure = {own_path().replace_filename("deepgen-measure"),
                                      "run",
                                      "--plan",
                                      plan_file,
                                      "--kernels",
                                      folder,
                                      "--slots",
                                      std::to_string(plan.slots.size()),
                                      "--device",
                                      device,
                                      "-o",
                                      records};
  if (!o.seconds.empty()) measure.insert(measure.end(), {"--seconds", o.seconds});
  start(measure);
  std::cout << report(logs_of({records}), false);
}

/// For a shell: one word, whatever is in it.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

} // namespace

std::string candidate_commands(const Plan& plan, const std::string& problem_file,
                               const std::string& device_file) {
  std::string text =
      "# Each line rebuilds one candidate of this round and times it against the default config.\n";
  std::string command =
      quoted(own_path()) + " try --problem " + quoted(fs::absolute(problem_file)) + " --arch " + plan.arch;
  if (!device_file.empty()) command += " --device " + quoted(fs::absolute(device_file));
  for (const PlanSlot& slot : plan.slots) text += command + " --config " + quoted(slot.choice.text()) + "\n";
  return text;
}

void add_try_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<TryOptions>();
  CLI::App* c =
      app.add_subcommand("try", "rebuild one candidate by name and time it against the default config");
  c->add_option("--problem", o->problem, "problem key or problem.json")->required();
  c->add_option("--arch", o->arch, "arch of the candidate")->capture_default_str();
  c->add_option("--device", o->device, "device.json; this host's device if absent");
  c->add_option("--config", o->config, "\"template parameter=value ...\"")->required();
  c->add_option("--seconds", o->seconds, "time budget of the measurement (default: that of deepgen-measure)");
  c->add_option("--timeout", o->timeout, "seconds for the compiler")->capture_default_str();
  c->add_option("-o", o->folder, "folder for plan, kernels and records")->capture_default_str();
  c->footer("Example:\n  deepgen try --problem problem.json --config \"cpu_tile isa=4 form=0 mr=6 ...\"");
  c->callback([o] { run_try(*o); });
}

} // namespace deepgen
