// report
#include "base/files/files.h"
#include "base/json/json.h"
#include "base/text/error.h"
#include "generator/cli/build_tree.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/lock/exchange.h"
#include "generator/report/report.h"
#include "generator/report/report_page.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

struct ReportOptions {
  std::vector<std::string> records, locks;
  std::string build, weights, html, csv, candidates;
  bool dispatches = false;
};

/// {"<problem key>": <weight>, ...}
std::map<std::string, double> weights_of(const std::string& path) {
  std::map<std::string, double> weights;
  const Json json = read_json(path);
  if (!json.is_object())
    throw Error("the weights are no JSON object", path, "", "write {\"<problem key>\": <weight>, ...}");
  for (const auto& [key, value] : json.items()) {
    const double weight = get<double>(json, key, path);
    if (!(weight > 0))
      throw Error("a weight is not above 0", path, key + ": " + value.dump(),
                  "count the calls of the problem");
    weights[Problem::parse(key).key()] = weight;
  }
  return weights;
}

ReportInput input_of(const ReportOptions& o) {
  ReportInput in;
  std::vector<std::string> records = o.records;
  if (!o.build.empty()) {
    const BuildTree tree = search_build_tree(o.build);
    records.insert(records.end(), tree.records.begin(), tree.records.end());
    for (const std::string& path : tree.problems) {
      const ProblemFile file = ProblemFile::read(path);
      std::string& label = in.labels[file.problem.key()];
      if (!file.untuned) label += (label.empty() ? "" : ", ") + file.label();
    }
    if (records.empty())
      throw Error("no records in the build folder", o.build, "nothing has been tuned there",
                  "run `ninja tune` first");
  }
  in.logs = logs_of(records);
  for (const std::string& path : o.locks) in.locks.push_back(Lock::read(path));
  if (!o.weights.empty()) in.weights = weights_of(o.weights);
  return in;
}

void run_report(const ReportOptions& o) {
  if (o.records.empty() && o.build.empty() && o.locks.empty())
    throw Error("nothing to report on", "deepgen report", "", "pass --records, --build or --lock");
  ReportInput in = input_of(o);
  in.evidence = !o.html.empty();
  in.only_labelled = !o.build.empty() && !in.labels.empty() && o.records.empty();
  const std::vector<Study> studies = studies_of(in);
  if (o.html.empty() && o.csv.empty() && o.candidates.empty()) {
    std::cout << (o.dispatches ? dispatch_text(studies) : report(in.logs) + summary_text(studies));
    return;
  }
  auto write = [&](const std::string& path, auto text_of) {
    if (path == "-")
      std::cout << text_of(studies);
    else if (!path.empty())
      write_atomically(path, text_of(studies));
    if (path != "-" && !path.empty())
      std::cout << "deepgen: " << studies.size() << (studies.size() == 1 ? " problem in " : " problems in ")
                << path << "\n";
  };
  write(o.html, report_page);
  if (o.dispatches) std::cout << dispatch_text(studies);
  write(o.csv, o.dispatches ? dispatch_csv : summary_csv);
  write(o.candidates, candidates_csv);
}

} // namespace

void add_report_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<ReportOptions>();
  CLI::App* c = app.add_subcommand("report", "show searches: as tables here, as a page of HTML, as CSV");
  c->add_option("--records", o->records, "record logs, any number");
  c->add_option("--build", o->build, "build folder, all of whose searches are reported");
  c->add_option("--lock", o->locks, "lock files: what of it is locked, and what else is");
  c->add_option("--weights", o->weights,
                "JSON file of problem keys and weights, such as calls; for the weighted mean");
  c->add_option("--html", o->html, "page to write; it needs nothing but a browser");
  c->add_option("--csv", o->csv, "CSV to write, a row a problem; - for stdout");
  c->add_flag("--dispatches", o->dispatches,
              "candidate by candidate, as IREE's dispatch profiler prints them; --csv too");
  c->add_option("--candidates-csv", o->candidates, "CSV to write, a row a candidate; - for stdout");
  c->footer("Ratios are times as fast as the default config; 95 % is the confidence interval.\n"
            "Example:\n  deepgen report --records r0/records.jsonl r1/records.jsonl final.jsonl\n"
            "  deepgen report --build build --lock deepgen.lock.json --html report.html");
  c->callback([o] { run_report(*o); });
}

} // namespace deepgen
