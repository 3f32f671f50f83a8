#include "base/kernel/device.h"
#include "base/json/json.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

void run_device(const std::string& input) {
  fuzz::round_trip(
      input,
      [](const std::string& text) {
        const Device device = Device::from_json(parse_json(text, "device"));
        fuzz::require(device.is_cpu() || device.cores > 0, "a GPU without cores, by which estimates divide");
        return device;
      },
      [](const Device& device) { return dump_json(device.to_json()); });
}
const fuzz::Target device_target("device", run_device);

} // namespace
} // namespace deepgen
