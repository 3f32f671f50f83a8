#include "generator/lock/failures.h"

#include "base/text/error.h"
#include "generator/codegen/compile.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace deepgen {
namespace {

/// The first line of why, without the numbers and the case, in which candidates differ.
std::string reason_of(const Record& r) {
  std::string text;
  for (char c : first_line(r.detail.substr(0, r.detail.find(" (case ")))) {
    if (!std::isdigit(static_cast<unsigned char>(c)))
      text += c;
    else if (text.empty() || text.back() != '#')
      text += '#';
  }
  return r.status + ": " + text;
}

bool counts(const Record& r) {
  const bool usual =
      r.ok() || r.status == "duplicate" || r.status == "dropped" || r.detail.starts_with(kRejected);
  return !usual || r.detail.starts_with("not verified");
}

} // namespace

std::string common_failure(const std::vector<RecordLog>& logs) {
  struct Group {
    size_t count = 0;
    std::string example;
  };
  std::map<std::string, Group> groups;
  size_t candidates = 0;
  for (const RecordLog& log : logs)
    for (const Record& r : log.records) {
      if (r.stage.empty() || r.stage[0] != 'r' || r.is_vendor())
        continue; // of a round: the finals repeat some
      ++candidates;
      if (!counts(r)) continue;
      Group& group = groups[reason_of(r)];
      if (group.count++ == 0) group.example = r.status + ": " + first_line(r.detail);
    }
  const auto most = std::max_element(groups.begin(), groups.end(), [](const auto& x, const auto& y) {
    return x.second.count < y.second.count;
  });
  if (most == groups.end() || most->second.count < 2 || 4 * most->second.count < candidates) return "";
  return std::to_string(most->second.count) + " of " + std::to_string(candidates) +
         " candidates failed alike: " + most->second.example;
}

} // namespace deepgen
