#include "generator/report/results.h"

#include "base/text/text.h"
#include "generator/lock/evidence_ratio.h"
#include "generator/report/csv.h"

#include <algorithm>
#include <cstdio>

namespace deepgen {
namespace {

ResultRow row_of(const Study& s) {
  ResultRow row;
  row.problem = s.problem.key(), row.name = s.label, row.arch = s.arch, row.device = s.device.name;
  row.calls = s.weight;
  if (s.vendor) row.reference = vendor_name(*s.vendor), row.reference_seconds = s.vendor->timing->seconds;
  row.verdict = s.decided() && s.decision.winner.timing ? "no reference" : s.outcome();
  if (!s.decided() || !s.decision.winner.timing) return row;
  row.regime = s.regime;
  for (const auto& [name, speed] : s.regimes)
    if (speed.against_vendor) row.regimes[name] = speed.against_vendor->value;
  row.tuned_seconds = s.decision.winner.timing->seconds;
  row.error = s.decision.winner.error;
  return row;
}

/// The reference's time is told by the ratio: that is of interleaved calls, where two medians are not.
void set_uplift(ResultRow& row, const Speed& uplift, const std::string& verdict) {
  row.uplift = uplift, row.verdict = verdict;
  if (row.tuned_seconds) row.reference_seconds = *row.tuned_seconds * uplift.value;
}

Speed speed_of(const EvidenceRatio& r) { return {1 / r.ratio, 1 / r.high, 1 / r.low}; }

/// The uplift stays the kernel's own: not every function has a fallback.
void note_fallback(const Study& s, ResultRow& row) {
  const bool locked =
      std::any_of(s.locked.begin(), s.locked.end(), [](const LockEntry& e) { return e.vendor; });
  if (locked) row.verdict += "; called with FALLBACK vendor"; // a loss, if in one regime alone
}

/// What was locked by an earlier search has no times here, but its evidence.
void compare_with_vendor(const Study& s, ResultRow& row) {
  if (row.tuned_seconds && s.against_vendor) {
    set_uplift(row, *s.against_vendor, s.vendor_verdict);
    return note_fallback(s, row);
  }
  if (row.tuned_seconds || s.locked.empty()) return;
  const std::optional<EvidenceRatio> ratio = ratio_to_vendor(s.locked.front());
  if (!ratio) return;
  row.reference = ratio->reference;
  set_uplift(row, speed_of(*ratio), verdict(ratio->low, ratio->high, ratio->noise));
  note_fallback(s, row);
}

/// The entry that this search's winner would be, or the lock's of an earlier search. Records do not say what
/// toolchain made their kernels; the lock does, where it has the winner.
std::optional<LockEntry> entry_of(const Study& s) {
  LockEntry e;
  if (!s.locked.empty()) e = s.locked.front();
  if (!s.decided() || !s.decision.winner.timing) return s.locked.empty() ? std::nullopt : std::optional(e);
  const Record& w = s.decision.winner;
  e.problem = s.problem.key(), e.arch = s.arch, e.device = s.device;
  if (!(w.choice == e.choice && w.sha256 == e.sha256)) e.toolchain = "this build's";
  e.choice = w.choice, e.revision = w.revision, e.sha256 = w.sha256;
  if (!s.evidence.empty()) e.evidence = s.evidence;
  return e;
}

void compare_with_lock(const Study& s, const ResultsInput& in, ResultRow& row) {
  row.reference.clear(), row.reference_seconds.reset();
  const std::optional<LockEntry> ours = entry_of(s);
  const LockEntry* theirs = nullptr;
  for (const LockEntry* e : in.reference->find_all(row.problem, row.arch))
    if (e->device.name == s.device.name && (is_gpu(s.arch) || e->device.isa == s.device.isa)) theirs = e;
  if (!theirs || !ours) {
    row.verdict = theirs ? s.outcome() : "not in the reference";
    return;
  }
  row.reference = in.reference_name + ": " + theirs->choice.text();
  if (ours->sha256 == theirs->sha256) return set_uplift(row, Speed{}, "same");
  const std::optional<EvidenceRatio> ratio = ratio_of(*ours, *theirs);
  if (!ratio) {
    row.verdict = "not comparable: " + why_no_ratio(*ours, *theirs);
    return;
  }
  set_uplift(row, speed_of(*ratio), verdict(ratio->low, ratio->high, ratio->noise));
}

/// A winner was verified before it was timed; `error` is what it was found to be.
bool is_kept(const ResultRow& row, const std::optional<double>& uplift) {
  if (!row.uplift || !(row.error <= 1)) return false;
  return uplift ? row.uplift->value >= *uplift : row.verdict.find("win") != std::string::npos;
}

void set_shares(std::vector<ResultRow>& rows) {
  std::map<std::pair<std::string, std::string>, double> totals;
  for (const ResultRow& row : rows)
    totals[{row.arch, row.device}] += row.calls * row.reference_seconds.value_or(0);
  for (ResultRow& row : rows)
    if (const double total = totals[{row.arch, row.device}]; total > 0)
      row.share = row.calls * row.reference_seconds.value_or(0) / total;
}

std::string optional_number(const std::optional<double>& value) { return value ? csv_number(*value) : ""; }

std::string percent_text(double share) {
  char text[40];
  std::snprintf(text, sizeof text, "%+.2f %%", 100 * share);
  return text;
}

} // namespace

std::vector<ResultRow> result_rows(const ResultsInput& in) {
  std::vector<ResultRow> rows;
  for (const Study& s : in.studies) {
    ResultRow row = row_of(s);
    in.reference ? compare_with_lock(s, in, row) : compare_with_vendor(s, row);
    row.kept = is_kept(row, in.uplift);
    rows.push_back(std::move(row));
  }
  set_shares(rows);
  return rows;
}

std::string results_csv(const std::vector<ResultRow>& rows, bool only_kept) {
  std::string text = csv_line({"problem", "name", "calls", "share", "arch", "device", "reference",
                               "reference_seconds", "tuned_seconds", "uplift", "low", "high", "error",
                               "verdict", "kept", "regime", "sustained", "bursts", "serial"});
  for (const ResultRow& r : rows) {
    if (only_kept && !r.kept) continue;
    const auto part = [&](double Speed::* p) { return r.uplift ? csv_number((*r.uplift).*p) : ""; };
    const auto in = [&](const char* regime) {
      const auto at = r.regimes.find(regime);
      return at == r.regimes.end() ? "" : csv_number(at->second);
    };
    text +=
        csv_line({r.problem, r.name, csv_number(r.calls), csv_number(r.share), r.arch, r.device, r.reference,
                  optional_number(r.reference_seconds), optional_number(r.tuned_seconds), part(&Speed::value),
                  part(&Speed::low), part(&Speed::high), csv_number(r.error), r.verdict,
                  r.kept ? "yes" : "no", r.regime, in("sustained"), in("bursts"), in("serial")});
  }
  return text;
}

ResultSums sums_of(const std::vector<ResultRow>& rows) {
  ResultSums s;
  double gains = 0, before = 0, after = 0;
  for (const ResultRow& r : rows) {
    ++s.rows;
    if (r.kept) ++s.kept, gains += r.uplift->value - 1;
    if (!r.reference_seconds) {
      ++s.without_times;
      continue;
    }
    const double seconds = r.calls * *r.reference_seconds;
    before += seconds;
    after += r.kept ? seconds / r.uplift->value : seconds;
  }
  if (s.kept) s.average_kept = gains / double(s.kept);
  if (s.rows) s.average = gains / double(s.rows);
  if (after > 0) s.weighted = before / after - 1;
  return s;
}

std::string results_text(const std::vector<ResultRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<ResultRow>> devices;
  for (const ResultRow& row : rows) devices[{row.arch, row.device}].push_back(row);
  std::string text;
  for (const auto& [device, own] : devices) {
    const ResultSums s = sums_of(own);
    text += device.first + ", " + visible(device.second) + ": " + std::to_string(s.kept) + " of " +
            std::to_string(s.rows) + " problems are faster than their reference\n" +
            "  average uplift            " + percent_text(s.average) + " (of the faster ones alone " +
            percent_text(s.average_kept) + ")\n" + "  uplift weighted by calls  " + percent_text(s.weighted) +
            " of the time of all problems\n";
    if (s.without_times)
      text += "  " + std::to_string(s.without_times) +
              " problems have no time of a reference, so that they weigh nothing\n";
  }
  return text.empty() ? "no problem was tuned\n" : text;
}

} // namespace deepgen
