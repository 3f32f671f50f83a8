#include "generator/report/csv.h"

#include <cstdio>

namespace deepgen {

std::string csv_number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    std::string cell = cells[i];
    if (cell.find_first_of(",\"\n\r") != std::string::npos) {
      for (size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, 1, '"');
      cell = '"' + cell + '"';
    }
    text += (i ? "," : "") + cell;
  }
  return text + "\n";
}

} // namespace deepgen
