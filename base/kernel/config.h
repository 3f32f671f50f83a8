// Config: a value for every parameter of one template.
#pragma once

#include "base/json/json_fwd.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace deepgen {

/// Parameter values in the template's own order; enumerations are small integers that the template documents.
struct Config {
  std::vector<std::pair<std::string, int64_t>> values;

  bool operator==(const Config&) const = default;
  /// Throws Error when the parameter is absent.
  int64_t operator[](const std::string& name) const;
  void set(const std::string& name, int64_t value);

  std::string text() const; ///< "isa=4 mr=14 nr=32 ...", also the deterministic tie-breaker
  static Config parse(const std::string& text);
  Json to_json() const;                 ///< {"isa":4,"mr":14,...}
  static Config from_json(const Json&); ///< keeps the order of the object
};

/// A template's name and a config of it: with a problem and an arch, a candidate.
struct Choice {
  std::string template_name;
  Config config;
  bool operator==(const Choice&) const = default;
  std::string text() const { return template_name + " " + config.text(); }
};

} // namespace deepgen
