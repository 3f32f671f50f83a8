// CSV as RFC 4180 has it, but lines end as everywhere on Linux.
#pragma once

#include <string>
#include <vector>

namespace deepgen {

/// Quotes what needs it.
std::string csv_line(const std::vector<std::string>& cells);
/// Nine digits.
std::string csv_number(double);

} // namespace deepgen
