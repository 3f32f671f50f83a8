#include "measure/devices/nvml.h"

#include "base/files/library.h"

#include <dlfcn.h>

namespace deepgen {
namespace {

constexpr int kInsufficientSize = 7;

struct ProcessInfo { ///< nvmlProcessInfo_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

template <typename Function>
bool find(void* library, Function& slot, const char* symbol) {
  slot = reinterpret_cast<Function>(dlsym(library, symbol));
  return slot != nullptr;
}

} // namespace

std::optional<Nvml> Nvml::open(const std::string& uuid, std::string* why) {
  const auto none = [&](const std::string& reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  const OpenedLibrary found = open_library({"libnvidia-ml.so.1"});
  if (!found)
    return none(found.absence(
        "no NVML here (libnvidia-ml.so.1): a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
  void* library = found.handle;
  int (*start)() = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  int (*version)(char*, unsigned) = nullptr;
  Nvml n;
  if (!find(library, start, "nvmlInit_v2") || !find(library, by_uuid, "nvmlDeviceGetHandleByUUID"))
    return none("libnvidia-ml.so.1 lacks what is asked of it");
  if (const int code = start(); code != 0) return none("NVML does not start: error " + std::to_string(code));
  if (const int code = by_uuid(uuid.c_str(), &n.device_); code != 0)
    return none("NVML does not know the device " + uuid + ": error " + std::to_string(code));
  if (!find(library, n.reasons_, "nvmlDeviceGetCurrentClocksEventReasons"))
    find(library, n.reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons"); // its name before driver 535
  find(library, n.processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(library, n.power_limit_, "nvmlDeviceGetEnforcedPowerLimit");
  char text[80] = "";
  if (find(library, version, "nvmlSystemGetDriverVersion") && version(text, sizeof text) == 0)
    n.driver_version_ = text;
  return n;
}

std::string Nvml::untold() const {
  const char* throttling = clock_reasons() ? "" : "why a clock is low";
  const char* others = compute_processes() ? "" : "who computes on the device";
  if (!*throttling && !*others) return "";
  return std::string("NVML does not tell ") + throttling + (*throttling && *others ? ", and " : "") + others;
}

std::optional<uint64_t> Nvml::clock_reasons() const {
  unsigned long long bits = 0;
  if (!reasons_ || reasons_(device_, &bits) != 0) return std::nullopt;
  return bits;
}

std::optional<int> Nvml::compute_processes() const {
  ProcessInfo list[64];
  unsigned count = 64;
  if (!processes_) return std::nullopt;
  const int code = processes_(device_, &count, list);
  if (code != 0 && code != kInsufficientSize) return std::nullopt;
  return int(count);
}

double Nvml::power_limit_watts() const {
  unsigned milliwatts = 0;
  return power_limit_ && power_limit_(device_, &milliwatts) == 0 ? milliwatts / 1000.0 : 0;
}

} // namespace deepgen
