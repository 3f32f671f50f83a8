// SpaceRules: what SearchOptions leave of the templates' parameters for one problem.
#pragma once

#include "base/search/search_options.h"
#include "templates/core/template.h"

#include <memory>
#include <optional>

namespace deepgen {

/// A parameter of a restricted or extended space.
struct RuledParameter {
  Parameter parameter;       ///< with all values that any config of the space has, in the template's order
  std::vector<bool> visited; ///< of these values, what an enumeration visits
};

class SpaceRules {
public:
  /// Throws Error for an unknown template and for a regular expression that is none.
  SpaceRules(const SearchOptions&, const Problem&, const std::string& arch, const Device&);
  ~SpaceRules();

  bool allows(const Template&) const;
  bool allows_all() const { return options_.templates.empty(); } ///< templates
  /// Throws Error when the options name a parameter that the template does not have. A parameter without
  /// values, when none of those that are asked for can be made: notes() says so.
  std::vector<RuledParameter> parameters(const Template&, const std::optional<Choice>& also);
  /// By the regular expressions and the workspace alone.
  bool passes(const Template&, const Config&) const;
  /// A legal config, by everything.
  bool allows(const Choice&) const;
  /// Of an explicit list; empty when there is none.
  const std::vector<Choice>& configs() const { return configs_; }
  bool has_configs() const { return !options_.configs.empty(); }

  /// What was asked for and cannot be, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  std::string where(const std::string& key) const; ///< for errors
  /// The keys that leave configs out, such as "templates, include"; empty: none does.
  std::string restrictions() const;

private:
  struct Patterns;
  std::vector<int64_t> wanted(const Template&, const Parameter&);

  const SearchOptions& options_;
  const Problem& problem_;
  const Device& device_;
  std::unique_ptr<Patterns> patterns_;
  std::vector<Choice> configs_;
  std::vector<std::string> notes_;
};

/// "1, 2, 4; beside them multiples of 8 from 8 to 64"
std::string values_text(const Parameter&);

} // namespace deepgen
