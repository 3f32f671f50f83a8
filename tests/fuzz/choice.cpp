#include "generator/lock/exchange.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_choice(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return ChoiceFile::parse(text, "choice"); },
      [](const ChoiceFile& file) { return file.serialize(); });
}
const fuzz::Target choice_target("choice", run_choice);

} // namespace
} // namespace deepgen
