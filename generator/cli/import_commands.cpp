// import
#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/mlir_commands.h"
#include "workload/import.h"
#include "workload/ranges.h"
#include "workload/summary.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

namespace deepgen {
namespace {

struct ImportOptions {
  std::vector<std::string> logs;
  std::string output, csv, search;
  double threshold = 0;
  int64_t rows = 20;
  std::string ranges; ///< empty: none
  bool leave = false;
};

/// Says how many functions it saves.
void merge(Workload& workload, const std::string& size) {
  const auto name = std::find(std::begin(size_names), std::end(size_names), size);
  const size_t before = workload.problems.size(),
               parts = merge_ranges(workload, Size(name - std::begin(size_names)));
  std::cout << parts << " problems become " << parts - (before - workload.problems.size())
            << " with a range of " << size << "\n";
}

void run_import(const ImportOptions& o) {
  if (std::any_of(o.logs.begin(), o.logs.end(),
                  [](const auto& f) { return is_mlir_file(f) || is_scheduler_file(f); })) {
    if (o.logs.size() > 1)
      throw Error("a module of MLIR is imported by itself", o.logs.front(),
                  "there are " + std::to_string(o.logs.size()) + " files",
                  "one command and one -o for each module");
    const MlirImport one{o.logs.front(), o.output, o.leave};
    return is_mlir_file(one.module) ? import_mlir(one) : import_scheduler(one.module, one, o.search);
  }
  Importer importer;
  for (const std::string& log : o.logs) importer.read(log);
  Workload workload = importer.workload();
  if (!o.ranges.empty()) merge(workload, o.ranges);
  const std::vector<WorkloadProblem> below = workload.drop_below(o.threshold);
  if (workload.problems.size() > Workload::most_problems)
    throw Error("too many different problems for one workload", "deepgen import",
                "there are " + std::to_string(workload.problems.size()), "pass --threshold, such as 0.0001");
  const std::string text = workload.serialize();
  Workload::parse(text, o.output); // what is written can be read
  if (!o.csv.empty()) write_atomically(o.csv, workload_csv(workload, below));
  std::cout << workload_table(workload, size_t(o.rows));
  for (const std::string& note : importer.notes()) std::cout << note << "\n";
  if (workload.problems.empty())
    throw Error("no problem is left", o.logs.front(),
                "nothing was translated, or all of it is below the threshold",
                "see the table above; --threshold 0 keeps everything");
  write_if_changed(o.output, text);
}

/// NaN is neither.
std::string share_check(const std::string& text) {
  double value = 0;
  if (CLI::detail::lexical_cast(text, value) && value >= 0 && value < 1) return "";
  return "'" + text + "' is no share from 0 to below 1";
}

} // namespace

void add_import_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<ImportOptions>();
  CLI::App* c = app.add_subcommand(
      "import", "logs of a program's matrix products as a workload: its problems and their shares");
  c->add_option("logs", o->logs,
                "logs, plain, gzip or zstd: " + log_kinds() +
                    "; or one module of MLIR (x.mlir) or auto-scheduler.cfg")
      ->required();
  c->add_option("-o", o->output,
                "workload.json to write, for deepgen_add_workload(); of a module for deepgen_add_mlir()")
      ->required();
  c->add_option("--search", o->search,
                "of an auto-scheduler.cfg: search file to write; beside it unless given");
  c->add_flag("--leave", o->leave,
              "of a module: what looks like a product and is none of DeepGen's stays in it");
  c->add_option("--threshold", o->threshold,
                "leaves out problems with a smaller share of the time, such as 0.01")
      ->capture_default_str()
      ->check(CLI::Validator(share_check, "SHARE"));
  c->add_flag(
       "--ranges{m}", o->ranges,
       "problems that differ in M alone become one function with a range; --ranges=n, k, batch: in that size")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(size_names), std::end(size_names))));
  c->add_option("--csv", o->csv, "writes all problems and reasons as a table");
  c->add_option("--rows", o->rows, "problems in the table on the terminal")
      ->capture_default_str()
      ->check(CLI::Range(int64_t(0), int64_t(1000000)));
  c->footer(
      "Example:\n  deepgen import hipblaslt.log.gz -o workload.json --threshold 0.001 --csv workload.csv");
  c->callback([o] { run_import(*o); });
}

} // namespace deepgen
