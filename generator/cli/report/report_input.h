// What searches, locks and calls a report is about, as its commands are told.
#pragma once

#include "generator/report/report_study.h"

namespace CLI {
class App;
}

namespace deepgen {

struct ReportSources {
  std::vector<std::string> records, locks, workloads;
  std::string build, weights;
};

void add_report_sources(CLI::App& command, ReportSources&);
/// Reads all of it; throws Error when there is nothing to report on. `command`: for messages.
ReportInput report_input(const ReportSources&, const std::string& command);

} // namespace deepgen
