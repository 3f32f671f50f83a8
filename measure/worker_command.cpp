#include "measure/worker_command.h"

#include "measure/commands/history.h"
#include "measure/devices/cuda_devices.h"
#include "measure/devices/devices.h"
#include "remote/worker.h"

#include <algorithm>
#include <cstdio>

namespace deepgen {
namespace {

std::vector<Device> attached(const std::string& arch) {
  if (!is_gpu(arch)) return {find_device(arch)};
  return cuda::devices(is_amd(arch) ? cuda::Platform::hip : cuda::Platform::cuda);
}

/// Ratios of one search are of one model of device.
std::string why_no_device(const Request& request) {
  if (request.device.empty()) return "";
  const std::vector<Device> devices = attached(request.arch);
  std::string names;
  for (const Device& d : devices) names += (names.empty() ? "" : ", ") + d.name;
  if (std::any_of(devices.begin(), devices.end(), [&](const Device& d) { return d.name == request.device; }))
    return "";
  return "there is " + (names.empty() ? "no device" : names) + ", and asked for is " + request.device;
}

} // namespace

int serve_measuring(bool print_id) {
  if (print_id) {
    std::puts(measure_id().c_str());
    return 0;
  }
  return serve({.version = measure_id(),
                .id = [](const std::string&) { return measure_id(); },
                .commands = {"devices", "run", "playoff", "verify"},
                .why_not = why_no_device});
}

} // namespace deepgen
