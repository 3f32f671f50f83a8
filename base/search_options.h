// SearchOptions: what one search may try, and how it chooses. From CMake's keywords or a search file.
#pragma once

#include "base/config.h"

#include <map>
#include <optional>

namespace deepgen {

/// What a search may use of one template's parameters. A value that the template does not offer extends the space: its
/// constraints still decide whether a config is legal.
struct TemplateRule {
  std::map<std::string, std::vector<int64_t>> values; ///< parameter -> the values to try; others as the template offers
};

struct SearchOptions {
  /// "auto", "grid", "random", "anneal", "genetic", "gbt" or "xgboost"
  std::string strategy = "auto";
  uint64_t seed = 1;
  /// Candidates in all rounds together; nothing: as many as the rounds have slots.
  std::optional<int64_t> trials;
  /// The search ends after so many candidates in a row that were not faster by half a percent; 0: never before its end.
  int64_t patience = 64;
  /// Empty: all templates. Otherwise only these, with their rules.
  std::map<std::string, TemplateRule> templates;
  /// ECMAScript regular expressions on Choice::text(), searched anywhere in it; empty: no condition.
  std::string include, exclude;
};

} // namespace deepgen
