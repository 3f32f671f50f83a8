#include "base/problem/problem.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_key(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return Problem::parse(text); },
      [](const Problem& problem) { return problem.key(); });
}
const fuzz::Target key_target("key", run_key);

} // namespace
} // namespace deepgen
