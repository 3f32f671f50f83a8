#include "base/search/search_options.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_search(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return SearchOptions::parse(text, "search"); },
      [](const SearchOptions& options) {
        fuzz::require(SearchOptions::parse(options.serialize(), "again") == options,
                      "the options are not what was written");
        return options.serialize();
      });
}
const fuzz::Target search_target("search", run_search);

void run_space(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return SavedSpace::parse(text, "space"); },
      [](const SavedSpace& space) { return space.serialize(); });
}
const fuzz::Target space_target("space", run_space);

} // namespace
} // namespace deepgen
