#include "generator/report/report.h"

#include "base/problem/points.h"
#include "base/search/decide.h"
#include "base/search/names.h"
#include "base/search/ranged_decision.h"
#include "base/text/error.h"
#include "base/text/text.h"
#include "generator/lock/final_log.h"
#include "generator/report/report_study.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

namespace deepgen {
namespace {

using Row = std::vector<std::string>;

std::string format(const char* pattern, double x, double y = 0, double z = 0) {
  char buffer[120];
  std::snprintf(buffer, sizeof buffer, pattern, x, y, z);
  return buffer;
}

/// Columns as wide as their widest cell; the last one is not padded.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> width(rows.front().size(), 0);
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      line += " " + row[i];
      if (i + 1 < row.size()) line += std::string(width[i] - row[i].size(), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

/// In the unit of its problem.
/// With points, the geometric mean over them.
double rate(const Record& r) {
  const Problem p = Problem::parse(r.problem);
  if (r.points.empty()) return p.rate().of(r.timing->seconds);
  double sum = 0;
  for (const PointTiming& point : r.points) sum += std::log(p.at(point.at).rate().of(point.timing.seconds));
  return std::exp(sum / double(r.points.size()));
}

bool left_finals(const Record& r) { return r.stage == "final" && r.status == "dropped" && r.timing; }

Row row_of(const Record& r) {
  const bool vendor = r.is_vendor();
  const bool late = r.stage == "final" || r.stage == "holdout"; // where slots of all rounds meet
  Row row{r.stage, vendor ? "-" : late ? candidate_name(r) : std::to_string(r.slot), r.status, "", "", ""};
  row.push_back(vendor ? "vendor" : r.origin);
  row.push_back(vendor ? vendor_name(r) : r.choice.text());
  if (r.timing) {
    const Timing& t = *r.timing;
    if (!left_finals(r)) // its time is of other rounds than the others'; its ratio is by way of these
      row[3] = format("%.1f", rate(r));
    row[4] = format("%.3f", 1 / t.ratio);
    row[5] = format("[%.3f, %.3f]", 1 / t.high, 1 / t.low);
  }
  if (!r.ok() && !r.detail.empty()) row[7] += "  (" + first_line(r.detail) + ")";
  return row;
}

/// For each record of a stage that was timed, its place among those that ran as long, at least by a third: a
/// race times what is ahead again and again, so ratios of few rounds and of many are of other seconds of the
/// machine, and not comparable.
std::map<const Record*, int> heats(std::vector<const Record*> stage) {
  std::erase_if(stage,
                [](const Record* r) { return !r->timing || r->origin == "default" || r->is_vendor(); });
  const auto group = [](const Record* r) { return left_finals(*r); };
  std::sort(stage.begin(), stage.end(), [&](const Record* x, const Record* y) {
    return std::tuple(group(x), -x->timing->samples) < std::tuple(group(y), -y->timing->samples);
  });
  std::map<const Record*, int> heat;
  int at = 0;
  for (size_t i = 0, first = 0; i < stage.size(); ++i) {
    if (group(stage[i]) != group(stage[first]) ||
        3 * stage[i]->timing->samples < 2 * stage[first]->timing->samples)
      first = i, ++at;
    heat[stage[i]] = at;
  }
  return heat;
}

/// By stage as given, the finals and then the hold-out last; within a stage those that stayed longest in its
/// race first, the fastest of these first, and the failures at the end.
void sort_records(std::vector<const Record*>& records) {
  std::map<std::string, std::vector<const Record*>> stages;
  for (const Record* r : records) stages[r->stage].push_back(r);
  std::map<const Record*, int> heat;
  for (const auto& [name, stage] : stages) heat.merge(heats(stage));
  auto key = [&](const Record* r) {
    return std::tuple(!r->timing, r->timing ? heat[r] : 0, r->timing ? r->timing->ratio : 0);
  };
  std::stable_sort(records.begin(), records.end(), [&](const Record* x, const Record* y) {
    const auto late = [](const Record* r) { return r->stage == "holdout" ? 2 : r->stage == "final" ? 1 : 0; };
    if (late(x) != late(y)) return late(x) < late(y);
    return x->stage != y->stage ? x->stage < y->stage : key(x) < key(y);
  });
}

/// Which kernels share the calls, and what the hold-out says of each point.
std::string ranged_summary(const Problem& p, const RecordLog& final) {
  const RangedDecision d = decide_ranges(p, final);
  if (!d.found) return "  no winner: " + d.reason + "\n";
  std::string text = "  winners: " + d.reason + format("; noise floor %.1f %%", 100 * noise_of(final)) + "\n";
  if (!d.sum_order.empty())
    text += "  batch invariant: " + visible(d.sum_order) +
            format("; %.3f times as long as the best finalists of all orders", d.order_cost) + "\n";
  for (const RangedWinner& w : d.parts)
    text += "    " + span_text(p, w.taken) + ": " + w.record.choice.text() + "\n";
  for (const RangedHoldout& h : holdout_of(final.environment)) {
    text += "    " + sizes_text(p, h.at) + format(": %.1f ", p.at(h.at).flops() / h.first.seconds * 1e-9) +
            "GFLOP/s" + format(", %.3fx vs default", 1 / h.both().ratio);
    if (const double vendor = h.both().vendor; vendor > 0)
      text += format(", %.3fx vs ", vendor) + visible(final.environment.value("vendor_name", "the vendor"));
    text += "\n";
  }
  return text;
}

std::string summary(const std::vector<const Record*>& records, const RecordLog* final, bool searched) {
  std::map<std::string, int> counts;
  for (const Record* r : records)
    if (r->stage != "final" && r->stage != "holdout" && !r->is_vendor()) ++counts[r->status];
  std::string text = "  candidates:";
  for (const auto& [status, count] : counts) text += " " + std::to_string(count) + " " + status;
  text += counts.empty() ? " none\n" : "\n";
  if (!final) return text + (searched ? "  no finals: the search has not finished\n" : "");
  if (const Problem p = Problem::parse(final->records.front().problem); p.ranged())
    return text + ranged_summary(p, *final);
  const Decision decision = decide(*final);
  if (!decision.found) return text + "  no winner: " + decision.reason + "\n";
  text +=
      "  winner: " + decision.winner.choice.text() + "\n          " + decision.reason +
      format("; noise floor %.1f %%", 100 * noise_of(*final)) +
      (final->stable ? "" : "; unstable: " + final->environment.value("unstable", "too much interference")) +
      "\n";
  if (const Record* vendor = vendor_record(*final))
    text += "  vendor: " + vendor_name(*vendor) + format(", %.1f ", rate(*vendor)) +
            Problem::parse(vendor->problem).rate().unit +
            format("; the winner is %.3fx as fast\n",
                   over_regimes(*vendor->timing, vendor->bursts).ratio / decision.timing.ratio);
  return text;
}

std::string counts_text(const std::map<std::string, size_t>& counts) {
  std::string text;
  for (const auto& [word, count] : counts)
    text += (text.empty() ? " " : ", ") + std::to_string(count) + " " + word;
  return text;
}

std::string totals_text(const std::string& baseline, const Totals& t) {
  if (!t.count) return "";
  return "  x " + baseline +
         format(": geometric mean %.3f, worst %.3f, weighted %.3f;", t.geomean, t.worst, t.weighted) +
         counts_text(t.verdicts) + "\n";
}

} // namespace

std::string report(const std::vector<RecordLog>& logs, bool searched) {
  std::map<std::pair<std::string, std::string>, std::vector<const Record*>> groups;
  for (const RecordLog& log : logs)
    for (const Record& r : log.records) groups[{r.problem, r.arch}].push_back(&r);
  if (groups.empty()) return "no records\n";
  std::string text;
  for (auto& [group, records] : groups) {
    sort_records(records);
    std::vector<Row> rows{{"stage", "slot", "status", Problem::parse(group.first).rate().unit, "x default",
                           "95 %", "origin", "config"}};
    for (const Record* r : records) rows.push_back(row_of(*r));
    text += (text.empty() ? "" : "\n") + group.first + " on " + group.second + "\n" + table(rows) +
            summary(records, final_log(logs, group.first, group.second), searched);
  }
  return text;
}

std::string summary_text(const std::vector<Study>& studies) {
  std::string text;
  for (const Summary& s : summaries_of(studies)) {
    if (!s.against_default.count && !s.against_vendor.count) continue;
    text += "\n" + std::to_string(s.studies.size()) +
            (s.studies.size() == 1 ? " problem on " : " problems on ") + s.arch +
            (s.device.empty() ? "" : ", " + s.device) + ":" + counts_text(s.outcomes) + "\n";
    text += totals_text("default", s.against_default) + totals_text("vendor", s.against_vendor);
  }
  return text;
}

} // namespace deepgen
