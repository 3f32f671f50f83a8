#include "generator/report/csv.h"
#include "generator/report/report_page.h"

namespace deepgen {
namespace {

using Row = std::vector<std::string>;

void add(Row& row, const std::optional<Speed>& speed) {
  for (double Speed::* part : {&Speed::value, &Speed::low, &Speed::high})
    row.push_back(speed ? csv_number((*speed).*part) : "");
}

Row summary_row(const Study& s) {
  Row row{s.problem.key(), s.arch, s.device.name, s.label, csv_number(s.weight), s.outcome(), "", "", "", ""};
  if (s.decided()) {
    const Record& winner = s.decision.winner;
    row[6] = winner.choice.text();
    if (winner.timing) {
      row[7] = csv_number(winner.timing->seconds);
      row[8] = csv_number(s.problem.flops() / winner.timing->seconds * 1e-9);
    }
  }
  if (s.final) row[9] = csv_number(s.final->noise_floor);
  add(row, s.against_default);
  row.push_back(s.vendor ? vendor_name(*s.vendor) : "");
  row.push_back(s.vendor ? csv_number(s.vendor->timing->seconds) : "");
  add(row, s.against_vendor);
  row.push_back(s.vendor_verdict);
  row.push_back(std::to_string(s.trials.size()));
  size_t failed = 0;
  for (const StudyTrial& trial : s.trials)
    failed += !trial.record.ok() && trial.record.status != "dropped" && trial.record.status != "duplicate";
  row.push_back(std::to_string(failed));
  return row;
}

Row candidate_row(const Study& s, const Record& r, const std::optional<double>& estimate) {
  Row row{s.problem.key(),
          s.arch,
          s.device.name,
          r.stage,
          std::to_string(r.slot),
          r.status,
          r.origin,
          r.is_vendor() ? r.origin : r.choice.text(),
          r.detail,
          estimate ? csv_number(*estimate) : ""};
  for (double Timing::* part : {&Timing::seconds, &Timing::quartile1, &Timing::quartile3, &Timing::ratio,
                                &Timing::low, &Timing::high})
    row.push_back(r.timing ? csv_number((*r.timing).*part) : "");
  row.push_back(r.timing ? std::to_string(r.timing->samples) : "");
  row.push_back(r.timing ? csv_number(s.problem.flops() / r.timing->seconds * 1e-9) : "");
  row.push_back(std::to_string(r.code_bytes));
  row.push_back(std::to_string(r.workspace));
  row.push_back(csv_number(r.error));
  return row;
}

} // namespace

std::string summary_csv(const std::vector<Study>& studies) {
  std::string text = csv_line(
      {"problem",        "arch",       "device",         "name",        "weight",       "outcome",
       "winner",         "seconds",    "gflops",         "noise_floor", "x_default",    "x_default_low",
       "x_default_high", "vendor",     "vendor_seconds", "x_vendor",    "x_vendor_low", "x_vendor_high",
       "against_vendor", "candidates", "failed"});
  for (const Study& study : studies) text += csv_line(summary_row(study));
  return text;
}

std::string candidates_csv(const std::vector<Study>& studies) {
  std::string text =
      csv_line({"problem", "arch",   "device",   "stage",   "slot",       "status",    "origin",
                "config",  "detail", "estimate", "seconds", "quartile1",  "quartile3", "ratio",
                "low",     "high",   "samples",  "gflops",  "code_bytes", "workspace", "error"});
  for (const Study& study : studies) {
    for (const StudyTrial& trial : study.trials)
      text += csv_line(candidate_row(study, trial.record, trial.estimate));
    if (study.final)
      for (const Record& r : study.final->records) text += csv_line(candidate_row(study, r, {}));
  }
  return text;
}

} // namespace deepgen
