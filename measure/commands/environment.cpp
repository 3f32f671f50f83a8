#include "measure/commands/environment.h"

#include "base/files/lock_folder.h"
#include "base/json/json.h"
#include "base/kernel/cpu_isa.h"
#include "base/text/error.h"
#include "measure/devices/cuda_driver.h"
#include "measure/devices/devices.h"
#include "measure/gpu/cuda_bench.h"

#include <algorithm>
#include <cpuid.h>
#include <limits>

namespace deepgen {

double least_noise_of_cpu() {
  constexpr double kOfVirtualMachine = 0.02;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool is_virtual = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx >> 31; // the bit that hypervisors set
  return is_virtual ? kOfVirtualMachine : 0;
}

std::string timing_lock_path() { return machine_lock_dir() + "/device-cpu"; }

std::string surroundings_text(const Device& device) {
  Json json = Json::object();
  if (!device.is_cpu() && device.present) {
    cuda::use(cuda::platform_of(device.arch));
    const cuda::Surroundings around = cuda::surroundings(device);
    json = {{"driver", around.driver}, {"power_limit_watts", around.power_limit_watts}};
  }
  return dump_json(json) + "\n";
}

Json environment(const Device& device, const std::string& anchor, int threads) {
  return {{"device", device.to_json()},
          {"profile", threads > 1 ? "cpu-wall-interleaved/3" : "cpu-interleaved/3"},
          {"threads", threads},
          {"tool", "deepgen-measure " DEEPGEN_VERSION},
          {"least_noise", least_noise_of_cpu()},
          {"anchor", anchor}};
}

TunedFor regime_on(const Device& device, const MeasureOptions& o) {
  return device.is_cpu() ? TunedFor::sustained : o.regime;
}

int64_t runnable_isa(const Device& device) {
  if (!device.is_cpu()) return std::numeric_limits<int64_t>::max();
  return common_isa(isa_of(device), isa_of_this_cpu());
}

void check_device(const Device& device, const std::string& where, Caches caches) {
  if (device.is_cpu() && caches != Caches::cold)
    throw Error("CPU kernels are not timed with " + to_string(caches) + " caches", where,
                "their calls have one set of operands, of which the caches keep what they can hold",
                "leave --caches (measure.caches) to GPUs");
  if (!device.is_cpu() && !device.compute_capability() &&
      cuda::platform_of(device.arch) != cuda::Platform::hip)
    throw Error("measuring on arch '" + device.arch + "' is not supported", where, "",
                "tune for cpu, sm_<number> or gfx<number>");
  if (!device.present)
    throw Error("the device is not attached", where, "",
                "measure on a host that has it, or build from a lock");
}

} // namespace deepgen
