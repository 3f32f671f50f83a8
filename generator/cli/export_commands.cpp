// export
#include "base/files/files.h"
#include "base/json/json.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/report/export.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

struct ExportOptions {
  std::string t4, t1, problem, arch = "cpu", device, template_name;
  std::vector<std::string> records;
  int64_t trials = 200;
};

/// The study of --problem, or the only one.
Study one_study(const ExportOptions& o, bool arch_given) {
  ReportInput in;
  in.logs = logs_of(o.records);
  in.evidence = false;
  const std::string key = o.problem.empty() ? "" : problem_of(o.problem).key();
  std::vector<Study> found;
  std::string names;
  for (Study& study : studies_of(in)) {
    names += "\n    " + study.problem.key() + " on " + study.arch + ", " + study.device.name;
    if ((key.empty() || study.problem.key() == key) && (!arch_given || study.arch == o.arch))
      found.push_back(std::move(study));
  }
  if (found.size() != 1)
    throw Error("T4 holds one search", "deepgen export --t4",
                found.empty() ? "the records hold none of it; they have:" + names
                              : "the records hold several:" + names,
                "choose one with --problem and --arch, or pass its records alone");
  return std::move(found.front());
}

Json one_space(const ExportOptions& o) {
  if (o.problem.empty())
    throw Error("T1 describes a space", "deepgen export --t1", "--problem is missing",
                "pass a problem key or problem.json");
  const Problem problem = problem_of(o.problem);
  SearchOptions options;
  if (!o.template_name.empty()) options.templates[find_template(o.template_name).name()] = {};
  return t1_json(problem, o.arch, Space(problem, o.arch, device_of(o.device, o.arch), options), o.trials);
}

void run_export(const ExportOptions& o, bool arch_given) {
  if (o.t4.empty() && o.t1.empty())
    throw Error("nothing to export", "deepgen export", "", "pass --t4 or --t1");
  const auto write = [](const std::string& path, const Json& json) {
    const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    if (path == "-")
      std::cout << text;
    else
      write_atomically(path, text);
  };
  if (!o.t4.empty()) write(o.t4, t4_json(one_study(o, arch_given)));
  if (!o.t1.empty()) write(o.t1, one_space(o));
}

} // namespace

void add_export_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<ExportOptions>();
  CLI::App* c =
      app.add_subcommand("export", "searches and spaces in the autotuning community's formats T4 and T1");
  c->add_option("--t4", o->t4, "results of one search, as Kernel Tuner writes them; - for stdout");
  c->add_option("--records", o->records, "record logs of that search");
  c->add_option("--t1", o->t1, "space of one template for one problem; - for stdout");
  c->add_option("--problem", o->problem, "problem key or problem.json");
  CLI::Option* arch = c->add_option("--arch", o->arch, "arch")->capture_default_str();
  c->add_option("--device", o->device, "device.json; this host's device if absent");
  c->add_option("--template", o->template_name, "template of the T1 space, where several serve the problem");
  c->add_option("--trials", o->trials, "budget of the T1 description, in configs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->footer(
      "Example:\n  deepgen export --records r0/records.jsonl r1/records.jsonl final.jsonl --t4 results.json\n"
      "  deepgen export --problem problem.json --arch sm_90a --template gemv --t1 space.json");
  c->callback([o, arch] { run_export(*o, arch->count() > 0); });
}

} // namespace deepgen
