#include "generator/search/overlap.h"

namespace deepgen {

std::optional<Choice> other_overlap(const Choice& choice) {
  Choice twin = choice;
  for (auto& [name, value] : twin.config.values)
    if (name == "pdl") {
      value = value == 0 ? 2 : 0;
      return twin;
    }
  return std::nullopt;
}

} // namespace deepgen
