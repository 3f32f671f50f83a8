#include "workload/log/tally.h"

#include "base/text/error.h"
#include "workload/log/fields.h"

#include <algorithm>

namespace deepgen {

void Count::add(int64_t more, double each, double work, const LogPlace& place) {
  calls = std::min(calls + more, kMostCalls);
  if (each > 0) {
    timed = std::min(timed + more, kMostCalls);
    seconds += double(more) * std::min(each, kMostSeconds);
  } else {
    flops += double(more) * work;
  }
  if (places.size() < Tally::most_places && place.line > 0) places.push_back(place);
}

void Count::add(const Count& other) {
  calls = std::min(calls + other.calls, kMostCalls), timed = std::min(timed + other.timed, kMostCalls);
  seconds += other.seconds, flops += other.flops;
  for (const LogPlace& place : other.places)
    if (places.size() < Tally::most_places) places.push_back(place);
}

Count& Tally::count(const std::string& key) {
  Count& found = problems_[key];
  if (problems_.size() > most_problems)
    throw Error("too many different problems", "deepgen import",
                "there are more than " + std::to_string(most_problems),
                "import parts of the logs, each with --threshold");
  return found;
}

void Tally::add(const Call& call, const LogPlace& place) {
  count(call.problem.key()).add(call.calls, call.seconds, call.flops, place);
}

Count& Tally::lost_count(const std::string& why, std::string_view line) {
  auto found = lost_.find(why);
  if (found == lost_.end()) {
    constexpr size_t kExample = 200;
    found = lost_.try_emplace(lost_.size() < most_reasons ? why : "other reasons").first;
    if (found->second.example.empty()) found->second.example = line.substr(0, kExample);
  }
  return found->second.count;
}

void Tally::lose(const std::string& why, const Call& call, std::string_view line, const LogPlace& place) {
  lost_count(why, line).add(call.calls, call.seconds, call.flops, place);
}

void Tally::take(Tally& other) {
  if (empty()) {
    std::swap(*this, other);
    return;
  }
  for (const auto& [key, count_of] : other.problems_) count(key).add(count_of);
  for (const auto& [why, lost] : other.lost_) lost_count(why, lost.example).add(lost.count);
  other = Tally();
}

} // namespace deepgen
