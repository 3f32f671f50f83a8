// Checks of numbers on a command line, for CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

namespace deepgen {

/// CLI::Range, which NaN passes as it is not below or above anything. Seconds that are no number would never
/// end.
inline CLI::Validator within(double low, double high) {
  char range[80];
  std::snprintf(range, sizeof range, "%g to %g", low, high);
  return CLI::Validator(
      [low, high, allowed = std::string(range)](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high) return "";
        return "'" + text + "' is not a number from " + allowed;
      },
      std::string(range), "NUMBER");
}

} // namespace deepgen
