#include "generator/replay/recorded_space.h"
#include "tests/fuzz/target.h"

#include <cmath>

namespace deepgen {
namespace {

void run_recorded(const std::string& input) {
  fuzz::round_trip(
      input,
      [](const std::string& text) {
        const RecordedSpace space = RecordedSpace::parse(text, "recorded space");
        for (const RecordedConfig& c : space.configs)
          fuzz::require(std::isfinite(c.ratio) && c.ratio >= 0 && c.timed() == (c.samples > 0),
                        "a time that cannot be");
        return space;
      },
      [](const RecordedSpace& space) { return space.serialize(); });
}
const fuzz::Target recorded_target("recorded", run_recorded);

} // namespace
} // namespace deepgen
