#include "generator/cli/report/report_input.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/text/error.h"
#include "generator/cli/build_tree.h"
#include "generator/cli/inputs.h"
#include "generator/lock/exchange.h"
#include "workload/workload.h"

#include <CLI/CLI.hpp>

namespace deepgen {
namespace {

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

/// A problem of several workloads has the calls of all.
void add_calls(const std::string& path, std::map<std::string, double>& weights) {
  for (const WorkloadProblem& p : Workload::parse(read_file(path), path).problems)
    weights[p.problem.key()] += double(p.calls);
}

} // namespace

void add_report_sources(CLI::App& command, ReportSources& o) {
  command.add_option("--records", o.records, "record logs, any number");
  command.add_option("--build", o.build, "build folder, all of whose searches are reported");
  command.add_option("--lock", o.locks, "lock files: what of it is locked, and what else is");
  command.add_option("--weights", o.weights,
                     "JSON file of problem keys and weights, such as calls; for the weighted mean");
  command.add_option("--workload", o.workloads, "workload.json files, whose calls are the weights");
}

ReportInput report_input(const ReportSources& o, const std::string& command) {
  if (o.records.empty() && o.build.empty() && o.locks.empty())
    throw Error("nothing to report on", "deepgen " + command, "", "pass --records, --build or --lock");
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
  for (const std::string& path : o.workloads) add_calls(path, in.weights);
  if (!o.weights.empty()) in.weights = weights_of(o.weights);
  in.only_labelled = !o.build.empty() && !in.labels.empty() && o.records.empty();
  return in;
}

} // namespace deepgen
