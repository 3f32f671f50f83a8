// Calls counted: equal problems together, and what cannot be translated by its reason.
#pragma once

#include "workload/log/call.h"

#include <compare>
#include <map>
#include <unordered_map>
#include <vector>

namespace deepgen {

/// A line of one of the logs.
struct LogPlace {
  int64_t log = 0, line = 0;
  auto operator<=>(const LogPlace&) const = default;
};

struct Count {
  int64_t calls = 0, timed = 0; ///< the latter: calls whose time is known
  double seconds = 0;           ///< of those, together
  double flops = 0;             ///< of calls without a time, as far as it is known
  std::vector<LogPlace> places; ///< the first few

  /// So many calls of `seconds` each; 0: not known.
  void add(int64_t calls, double seconds, double flops, const LogPlace&);
  void add(const Count&);
};

class Tally {
public:
  struct Lost {
    Count count;
    std::string example; ///< the beginning of the first such line
  };
  static constexpr size_t most_problems = 1'000'000, most_reasons = 1000, most_places = 8;

  /// Of a problem, by its key. Throws Error when there are too many different ones. The count stays where it
  /// is.
  Count& count(const std::string& key);
  /// Of a reason; the first line of each is its example.
  Count& lost_count(const std::string& why, std::string_view line);
  void add(const Call&, const LogPlace&);
  void lose(const std::string& why, const Call&, std::string_view line, const LogPlace&);
  /// All of another one, which is empty then.
  void take(Tally& other);

  const std::unordered_map<std::string, Count>& problems() const { return problems_; }
  const std::map<std::string, Lost>& lost() const { return lost_; }
  bool empty() const { return problems_.empty() && lost_.empty(); }

private:
  std::unordered_map<std::string, Count> problems_;
  std::map<std::string, Lost> lost_;
};

constexpr int64_t kMostCalls = int64_t(1) << 50;
constexpr double kMostSeconds = 1e9; ///< of one call, and 2^50 times that of all

} // namespace deepgen
