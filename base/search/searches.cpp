#include "base/search/searches.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <sys/stat.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr size_t kGaps = 9;        ///< the latest ones
constexpr size_t kFewestEnded = 3; ///< a night may lie between two

std::optional<double> written_at(const fs::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return double(info.st_mtim.tv_sec) + double(info.st_mtim.tv_nsec) * 1e-9;
}

/// When the search ended; nothing while it has not, or is repeated: then its first round is newer.
std::optional<double> ended_at(const PlannedSearch& search) {
  const std::optional<double> end = written_at(search.log);
  const std::optional<double> round = written_at(fs::path(search.log).parent_path() / "r0" / "records.jsonl");
  if (end && round && *round > *end) return std::nullopt;
  return end;
}

std::string duration(double seconds) {
  if (seconds < 90) return std::to_string(std::max(1L, std::lround(seconds))) + " s";
  return std::to_string(std::lround(seconds / 60)) + " min";
}

} // namespace

std::vector<PlannedSearch> parse_searches(const std::string& text) {
  std::vector<PlannedSearch> searches;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.find(' ');
    if (blank != std::string::npos)
      searches.push_back({line.substr(0, blank) == "build", line.substr(blank + 1)});
  }
  return searches;
}

double seconds_left(std::vector<double> ended, size_t missing) {
  if (missing == 0) return 0;
  if (ended.size() < kFewestEnded) return -1;
  std::sort(ended.begin(), ended.end());
  std::vector<double> gaps;
  for (size_t i = ended.size() - 1; i > 0 && gaps.size() < kGaps; --i)
    gaps.push_back(ended[i] - ended[i - 1]);
  const auto middle = gaps.begin() + std::ptrdiff_t((gaps.size() - 1) / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle * double(missing);
}

SearchProgress progress_of(const std::vector<PlannedSearch>& searches) {
  SearchProgress p;
  std::vector<double> ended;
  for (const PlannedSearch& search : searches) {
    if (const auto plan = written_at(fs::path(search.log).parent_path() / "r0" / "plan.json"))
      p.began = p.began ? std::min(p.began, int64_t(*plan)) : int64_t(*plan);
    if (const auto end = ended_at(search)) ended.push_back(*end), p.last = std::max(p.last, int64_t(*end));
  }
  p.ended = ended.size();
  p.seconds_left = seconds_left(ended, searches.size() - ended.size());
  return p;
}

std::string searches_done(const std::vector<PlannedSearch>& searches, const std::string& own) {
  const fs::path path = fs::absolute(own).lexically_normal();
  const auto found =
      std::find_if(searches.begin(), searches.end(), [&](const PlannedSearch& s) { return s.log == path; });
  if (found == searches.end()) return "";
  const bool tuning = !found->by_build; // a plain build does without these
  std::vector<double> ended;
  size_t all = 0;
  for (const PlannedSearch& search : searches) {
    if (!tuning && !search.by_build) continue;
    ++all;
    if (const std::optional<double> end = ended_at(search)) ended.push_back(*end);
  }
  std::string text = "; " + std::to_string(ended.size()) + " of " + std::to_string(all) +
                     (all == 1 ? " problem" : " problems") + " searched";
  const double left = seconds_left(ended, all - ended.size());
  if (left > 0) text += ", about " + duration(left) + " left";
  return text;
}

} // namespace deepgen
