#include "base/finalists.h"

#include "base/error.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace deepgen {

std::vector<LoggedRecord> read_records(const std::vector<std::string>& logs) {
  std::vector<LoggedRecord> records;
  for (const std::string& path : logs)
    for (Record& r : RecordLog::read(path).records) records.push_back({std::move(r), path});
  for (const LoggedRecord& r : records)
    if (r.record.problem != records.front().record.problem)
      throw Error("the logs are of different problems", r.log,
                  records.front().record.problem + " and " + r.record.problem, "pass the logs of one search");
  return records;
}

const LoggedRecord* default_of(const std::vector<LoggedRecord>& records) {
  for (const LoggedRecord& r : records)
    if (r.record.origin == "default") return &r;
  return nullptr;
}

namespace {

struct Ranked {
  const LoggedRecord* record;
  double ratio; ///< at least that of whom the round preferred
};

/// What left a round's race early lost there to those which stayed, when all ran side by side. Its fewer samples are no
/// ground to put it before them after all, however well they turned out. A stage more than doubles an arm's samples.
std::vector<Ranked> ranked(const std::vector<LoggedRecord>& records) {
  std::vector<Ranked> out;
  for (const LoggedRecord& r : records) {
    if (!r.record.ok() || !r.record.timing || r.record.is_vendor()) continue;
    double ratio = r.record.timing->ratio;
    for (const LoggedRecord& other : records)
      if (other.log == r.log && other.record.ok() && other.record.timing && other.record.origin != "default" &&
          2 * other.record.timing->samples > 3 * r.record.timing->samples)
        ratio = std::max(ratio, other.record.timing->ratio);
    out.push_back({&r, ratio});
  }
  std::stable_sort(out.begin(), out.end(), [](const Ranked& x, const Ranked& y) {
    const Timing &a = *x.record->record.timing, &b = *y.record->record.timing;
    return std::tuple(x.ratio, -a.samples, a.ratio) < std::tuple(y.ratio, -b.samples, b.ratio);
  });
  return out;
}

} // namespace

std::vector<LoggedRecord> finalists_of(const std::vector<LoggedRecord>& records) {
  std::vector<LoggedRecord> finalists;
  std::set<std::string> seen;
  const LoggedRecord* standard = default_of(records);
  const bool has_default = standard && standard->record.ok();
  if (has_default) {
    finalists.push_back(*standard);
    seen.insert(standard->record.sha256);
  }
  for (const Ranked& r : ranked(records))
    if (finalists.size() < kFinalists + has_default && seen.insert(r.record->record.sha256).second)
      finalists.push_back(*r.record);
  return finalists;
}

} // namespace deepgen
