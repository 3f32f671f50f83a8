#include "base/search/plan.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_plan(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return Plan::parse(text, "plan"); },
      [](const Plan& plan) { return plan.serialize(); });
}
const fuzz::Target plan_target("plan", run_plan);

} // namespace
} // namespace deepgen
