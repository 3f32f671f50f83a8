#include "measure/gpu/surroundings.h"

#include "base/json/json.h"
#include "measure/devices/cuda_devices.h"
#include "measure/devices/nvml.h"
#include "measure/devices/rocm_smi.h"
#include "measure/process/worker.h"
#include "runtime/amd/hip_driver.h"

namespace deepgen::cuda {

std::optional<RocmSmi> open_smi(const Device& device, std::string* why) {
  if (platform() != Platform::hip) return std::nullopt;
  return RocmSmi::open(reinterpret_cast<void*>(amd::driver()->launch), device.uuid, why);
}

namespace {

Surroundings amd_surroundings(const Device& device) {
  Surroundings s;
  int version = 0;
  std::string why = why_no_driver().why;
  if (driver() && driver()->cuDriverGetVersion(&version) == 0) s.driver = "HIP " + std::to_string(version);
  if (const auto smi = driver() ? open_smi(device, &why) : std::nullopt) {
    s.other_processes = int(smi->compute_processes().value_or(0));
    s.power_limit_watts = smi->power_limit_watts();
    if (!smi->driver_version().empty()) s.driver += ", driver " + smi->driver_version();
  } else {
    s.unwatched = why;
  }
  return s;
}

Surroundings nvidia_surroundings(const Device& device) {
  Surroundings s;
  const auto nvml = Nvml::open(device.uuid, &s.unwatched);
  if (!nvml) return s;
  s.other_processes = int(nvml->compute_processes().value_or(0));
  s.power_limit_watts = nvml->power_limit_watts();
  s.driver = nvml->driver_version();
  s.unwatched = nvml->untold();
  return s;
}

} // namespace

Surroundings surroundings(const Device& device) {
  Surroundings s;
  run_worker(
      [&](Channel& channel) {
        channel.step("asking about the device's surroundings", 30);
        channel.send(
            to_json(platform() == Platform::hip ? amd_surroundings(device) : nvidia_surroundings(device)));
      },
      [&](const Json& message) { s = surroundings_from(message); });
  return s;
}

} // namespace deepgen::cuda
