// results
#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/numbers.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/cli/report/report_input.h"
#include "generator/report/results.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

namespace deepgen {
namespace {

struct ResultsOptions {
  ReportSources sources;
  std::string reference = "vendor", output;
  double uplift = 0;
};

void run_results(const ResultsOptions& o) {
  ReportInput in = report_input(o.sources, "results");
  ResultsInput results;
  in.evidence = o.reference != "vendor";
  if (in.evidence) {
    require_file(o.reference, "there is no reference lock", "pass a lock file, or vendor");
    results.reference = Lock::read(o.reference);
    results.reference_name = std::filesystem::path(o.reference).filename().string();
  }
  results.studies = studies_of(in);
  if (o.uplift > 0) results.uplift = o.uplift;
  const std::vector<ResultRow> rows = result_rows(results);
  const std::string raw = o.output + "/raw_results.csv", final = o.output + "/final_results.csv";
  write_if_changed(raw, results_csv(rows, false));
  write_if_changed(final, results_csv(rows, true));
  std::cout << results_text(rows) << "deepgen: " << raw << "\ndeepgen: " << final << "\n";
}

} // namespace

void add_results_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<ResultsOptions>();
  CLI::App* c =
      app.add_subcommand("results", "what tuning gained over a reference: two tables as CSV, and sums here");
  add_report_sources(*c, o->sources);
  c->add_option("--reference", o->reference, "vendor, for the vendor's library, or another lock file")
      ->capture_default_str();
  c->add_option("--uplift", o->uplift,
                "keep what is so many times as fast, such as 1.03; 0: what is faster beyond the noise")
      ->capture_default_str()
      ->check(within(0, 1000));
  c->add_option("-o", o->output, "folder of raw_results.csv and final_results.csv")->required();
  c->footer("What is not kept counts as the reference, in all sums.\n"
            "Example:\n  deepgen results --build build --lock deepgen.lock.json --workload workload.json "
            "-o build/results");
  c->callback([o] { run_results(*o); });
}

} // namespace deepgen
