#include "base/kernel/config.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_config(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return Config::parse(text); },
      [](const Config& config) { return config.text(); });
}
const fuzz::Target config_target("config", run_config);

} // namespace
} // namespace deepgen
