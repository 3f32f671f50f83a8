#include "workload/summary.h"

#include "base/text/text.h"

#include <algorithm>
#include <cstdio>

namespace deepgen {
namespace {

std::string digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string duration(double seconds) {
  const char* const units[] = {"s", "ms", "us", "ns"};
  size_t unit = 0;
  for (; seconds < 1 && unit + 1 < std::size(units); ++unit) seconds *= 1000;
  char text[40];
  std::snprintf(text, sizeof text, "%.3g %s", seconds, units[unit]);
  return text;
}

/// RFC 4180, but lines end as everywhere on Linux.
std::string cell(const std::string& text) {
  std::string safe = visible(text);
  if (safe.find_first_of(",\"\n") == std::string::npos) return safe;
  for (size_t at = 0; (at = safe.find('"', at)) != std::string::npos; at += 2) safe.insert(at, 1, '"');
  return '"' + safe + '"';
}

/// An empty sum and time leave their columns blank.
std::string row(double share, const std::string& sum, int64_t calls, const std::string& time,
                const std::string& text) {
  char line[160];
  std::snprintf(line, sizeof line, "%5.1f%% %6s %11lld %11s  ", 100 * share, sum.c_str(),
                static_cast<long long>(calls), time.c_str());
  return line + text + "\n";
}

std::string percent(double share) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * share);
  return text;
}

std::string line_of(const std::vector<LogPlace>& places, const std::vector<WorkloadLog>& logs) {
  if (places.empty()) return "";
  const LogPlace& first = places.front();
  return logs[size_t(first.log)].name + ":" + std::to_string(first.line);
}

} // namespace

std::string workload_table(const Workload& w, size_t most_rows) {
  const double all = std::max(w.seconds(), 1e-300);
  std::string text;
  for (const WorkloadLog& log : w.logs) {
    text += visible(log.name) + ": " + std::to_string(log.lines) + " lines";
    for (const auto& [kind, lines] : log.kinds) text += ", " + std::to_string(lines) + " of " + kind;
    text += "\n";
  }
  text += " share    sum       calls   time each  problem\n";
  double sum = 0;
  const bool estimated =
      std::any_of(w.problems.begin(), w.problems.end(), [](const auto& p) { return !p.timed; });
  for (size_t i = 0; i < w.problems.size() && i < most_rows; ++i) {
    const WorkloadProblem& p = w.problems[i];
    sum += p.weight() / all;
    text += row(p.weight() / all, percent(sum), p.calls, (p.timed ? "" : "~") + duration(p.seconds), p.name);
  }
  if (w.problems.size() > most_rows)
    text += "  and " + std::to_string(w.problems.size() - most_rows) + " more problems\n";
  if (w.below.problems)
    text += row(w.below.seconds / all, "", w.below.calls, "",
                std::to_string(w.below.problems) + " problems below the threshold");
  for (const WorkloadSkipped& s : w.skipped)
    text += row(s.seconds / all, "", s.calls, "",
                "not translated: " + visible(s.why) +
                    (s.lines.empty() ? "" : " (" + line_of(s.lines, w.logs) + ")"));
  if (estimated) text += "~ no log has a time: a rough estimate\n";
  double served = 0;
  for (const WorkloadProblem& p : w.problems) served += p.weight();
  char line[160];
  std::snprintf(line, sizeof line,
                "%zu problems have %.1f%% of the time; %.1f%% is below the threshold, %.1f%% is lost\n",
                w.problems.size(), 100 * served / all, 100 * w.below.seconds / all,
                100 * w.skipped_seconds() / all);
  return text + line;
}

std::string workload_csv(const Workload& w, const std::vector<WorkloadProblem>& below) {
  const double all = std::max(w.seconds(), 1e-300);
  std::string text = "status,name,problem,calls,seconds,timed,total_seconds,share,line,why\n";
  const auto add = [&](const char* status, const WorkloadProblem& p) {
    text += std::string(status) + "," + p.name + "," + p.problem.key() + "," + std::to_string(p.calls) + "," +
            digits(p.seconds) + "," + (p.timed ? "true" : "false") + "," + digits(p.weight()) + "," +
            digits(p.weight() / all) + "," + cell(line_of(p.lines, w.logs)) + ",\n";
  };
  for (const WorkloadProblem& p : w.problems) add("kept", p);
  for (const WorkloadProblem& p : below) add("below threshold", p);
  for (const WorkloadSkipped& s : w.skipped)
    text += "skipped,,," + std::to_string(s.calls) + ",,," + digits(s.seconds) + "," +
            digits(s.seconds / all) + "," + cell(line_of(s.lines, w.logs)) + "," + cell(s.why) + "\n";
  return text;
}

} // namespace deepgen
