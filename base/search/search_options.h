// SearchOptions: what one search may try, how it chooses, and how its candidates are measured. From CMake's
// keywords and a search file.
#pragma once

#include "base/kernel/config.h"
#include "base/problem/problem.h"

#include <map>
#include <optional>

namespace deepgen {

/// What a search may use of one template's parameters. A value that the template does not offer extends the
/// space: its constraints still decide whether a config is legal.
struct TemplateRule {
  std::map<std::string, std::vector<int64_t>>
      values; ///< parameter -> the values to try; others as the template offers
  std::map<std::string, std::vector<int64_t>>
      added; ///< parameter -> values to try beside those that it offers
  bool operator==(const TemplateRule&) const = default;
};

/// What CMake passes to the edges that compile and measure. Nothing: as the tools do by themselves.
struct MeasureRules {
  std::optional<double> seconds;                       ///< budget of a round or of the playoff
  std::optional<int64_t> warmup;                       ///< calls of each arm before its first sample
  std::optional<int64_t> samples;                      ///< of each arm in the playoff, at most
  std::optional<double> call_timeout, compile_timeout; ///< seconds
  std::string caches;               ///< on GPUs: "cold", "weights-cold", "warm"; empty: "cold"
  std::string baseline;             ///< "vendor": time its library too; "none"; empty: "vendor"
  std::vector<std::string> devices; ///< GPUs to measure on: index, UUID or name; empty: all of the arch
  bool operator==(const MeasureRules&) const = default;
};

struct SearchOptions {
  /// "auto", "grid", "random", "anneal", "genetic", "gbt" or "xgboost"
  std::string strategy = "auto";
  uint64_t seed = 1;
  /// Candidates in all rounds together; nothing: as many as the rounds have slots.
  std::optional<int64_t> trials;
  /// The search ends after so many candidates in a row that were not faster by half a percent, and two rounds
  /// of them at least, where round 0 does not count; 0: never before its end.
  int64_t patience = 64;
  /// Empty: all templates. Otherwise only these, with their rules.
  std::map<std::string, TemplateRule> templates;
  /// Regular expressions, RE2's, on Choice::text(), searched anywhere in it; empty: no condition.
  std::string include, exclude;
  /// Not empty: these configs alone, and of them what the rest allows. From the file `space`.
  std::vector<Choice> configs;

  /// Of a batch invariant problem, `of` which the space is a part: configs of this order of sums alone. A
  /// search chooses it; no file has it.
  struct SumOrder {
    Problem of;
    std::string order;
    bool operator==(const SumOrder&) const = default;
  };
  std::optional<SumOrder> sum_order = {};

  /// Bytes of workspace that a GPU kernel may ask its caller for.
  int64_t workspace = int64_t(1) << 30;

  std::string space;          ///< path of a saved space (deepgen.space/1), relative to the search file
  std::string budget;         ///< "quick", "default" or "thorough"; read by CMake, as `slots`
  std::vector<int64_t> slots; ///< candidates in each round
  std::string regime;         ///< what is tuned for on GPUs: regime_words(); read by CMake; empty: "balanced"
  MeasureRules measure;

  std::string file; ///< that this was read from, for messages

  bool operator==(const SearchOptions&) const = default;

  /// {"schema":"deepgen.search/1",...}: without what is as by default, and without `configs`.
  std::string serialize() const;
  /// Throws Error that names `where`, the key, its value and what is allowed, also for unknown keys. What
  /// templates and parameters there are is not known here: see Space.
  static SearchOptions parse(const std::string& text, const std::string& where);
  static SearchOptions read(const std::string& path);
};

/// The names that `strategy` may have.
const std::vector<std::string>& search_strategies();

/// One config of a saved space. A problem and an arch that are not empty limit it to these.
struct SpaceEntry {
  std::string problem, arch;
  Choice choice;
};

/// A saved space, deepgen.space/1: an explicit list of configs, one a line.
struct SavedSpace {
  std::vector<SpaceEntry> entries;

  std::string serialize() const;
  static SavedSpace parse(const std::string& text, const std::string& where);
  static SavedSpace read(const std::string& path);
  /// Those for the problem's key on the arch.
  std::vector<Choice> configs_for(const std::string& problem, const std::string& arch) const;
};

} // namespace deepgen
