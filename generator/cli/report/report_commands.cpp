// report
#include "base/files/files.h"
#include "generator/cli/cli.h"
#include "generator/cli/report/report_input.h"
#include "generator/report/report.h"
#include "generator/report/report_page.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

struct ReportOptions {
  ReportSources sources;
  std::string html, csv, candidates;
  bool dispatches = false;
};

void run_report(const ReportOptions& o) {
  ReportInput in = report_input(o.sources, "report");
  in.evidence = !o.html.empty();
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
  add_report_sources(*c, o->sources);
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
