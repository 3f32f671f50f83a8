#include "base/finalists.h"

#include "base/error.h"

#include <algorithm>
#include <set>

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

std::vector<LoggedRecord> finalists_of(const std::vector<LoggedRecord>& records) {
  std::vector<LoggedRecord> finalists;
  std::set<std::string> seen;
  const LoggedRecord* standard = default_of(records);
  const bool has_default = standard && standard->record.ok();
  if (has_default) {
    finalists.push_back(*standard);
    seen.insert(standard->record.sha256);
  }
  std::vector<const LoggedRecord*> ranked;
  for (const LoggedRecord& r : records)
    if (r.record.ok() && r.record.timing && !r.record.is_vendor()) ranked.push_back(&r);
  std::stable_sort(ranked.begin(), ranked.end(), [](const LoggedRecord* x, const LoggedRecord* y) {
    return x->record.timing->ratio < y->record.timing->ratio;
  });
  for (const LoggedRecord* r : ranked)
    if (finalists.size() < kFinalists + has_default && seen.insert(r->record.sha256).second) finalists.push_back(*r);
  return finalists;
}

} // namespace deepgen
