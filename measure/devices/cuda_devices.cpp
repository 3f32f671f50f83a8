#include "measure/devices/cuda_devices.h"

#include "base/json/json.h"
#include "base/kernel/amd.h"
#include "base/text/error.h"
#include "measure/devices/hip_driver.h"
#include "measure/process/worker.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace deepgen::cuda {
namespace {

constexpr double kDriverSeconds = 60;

/// "GPU-01234567-89ab-cdef-0123-456789abcdef", as nvidia-smi prints it.
std::string uuid_of(const Driver& d, int device) {
  if (platform() == Platform::hip) return hip_uuid(device);
  unsigned char bytes[16];
  check(d.cuDeviceGetUuid(bytes, device), "asking for the UUID of the device");
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", bytes[i]);
    text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(hex);
  }
  return text;
}

/// "gfx942:sramecc+:xnack-" is the arch and the settings of the device.
void set_target(Device& x, const std::string& target) {
  std::istringstream words(target);
  std::getline(words, x.arch, ':');
  for (std::string setting; std::getline(words, setting, ':');) x.features.push_back(setting);
  std::sort(x.features.begin(), x.features.end());
}

/// Bytes of the last-level cache (AMD Infinity Cache) behind L2, which HIP does not tell; vendor data sheets.
int64_t infinity_cache(const std::string& arch) {
  constexpr std::pair<const char*, int64_t> kMib[] = {
      {"gfx942", 256}, {"gfx950", 256}, {"gfx1100", 96}, {"gfx1201", 64}};
  for (const auto& [name, mib] : kMib)
    if (arch == name) return mib << 20;
  return 0;
}

/// HIP tells the L2 of one of several dies, and a memory clock of which each kind of memory makes something
/// else: what the arch's usual board has is less wrong where it is more.
void correct_amd(Device& x) {
  x.l3 = infinity_cache(x.arch);
  const AmdArch* known = find_amd(x.arch);
  if (!known) return;
  const Device usual = generic_amd(*known);
  x.l2 = std::max(x.l2, usual.l2);
  x.memory_bandwidth = std::max(x.memory_bandwidth, usual.memory_bandwidth);
}

Device describe(const Driver& d, int ordinal) {
  int device = 0;
  check(d.cuDeviceGet(&device, ordinal), "opening a device");
  const auto ask = [&](Attribute a) {
    int value = 0;
    check(d.cuDeviceGetAttribute(&value, int(a), device), "asking for a fact about the device");
    return int64_t(value);
  };
  char name[128] = "";
  check(d.cuDeviceGetName(name, sizeof name, device), "asking for the name of the device");
  Device x;
  if (platform() == Platform::hip)
    set_target(x, hip_target(device));
  else
    x.arch = "sm_" + std::to_string(ask(Attribute::capability_major) * 10 + ask(Attribute::capability_minor));
  x.present = true, x.name = name, x.uuid = uuid_of(d, device);
  x.isa = 0, x.l1d = 0, x.l3 = 0;
  x.cores = ask(Attribute::multiprocessors);
  x.l2 = ask(Attribute::l2_bytes);
  x.shared_block = ask(Attribute::shared_per_block);
  x.shared_multiprocessor = ask(Attribute::shared_per_multiprocessor);
  x.clock_khz = ask(Attribute::clock_khz);
  x.memory_bandwidth = 2 * ask(Attribute::memory_clock_khz) * 1000 * ask(Attribute::memory_bus_bits) / 8;
  if (platform() == Platform::hip) correct_amd(x);
  return x;
}

void warn(Platform p, const std::string& why) {
  std::fprintf(stderr, "deepgen-measure: the %s driver failed, so its devices are not used: %s\n",
               p == Platform::hip ? "AMD" : "NVIDIA", why.c_str());
}

/// The worker's body.
void describe_all(Channel& channel) {
  channel.step("asking the driver for its devices", kDriverSeconds);
  const Driver* d = driver();
  if (why_no_driver().broken) warn(platform(), why_no_driver().why);
  int count = 0;
  if (!d || d->cuInit(0) != 0 || d->cuDeviceGetCount(&count) != 0)
    return; // no driver, or one without a device
  for (int i = 0; i < count; ++i) channel.send(describe(*d, i).to_json());
}

} // namespace

std::vector<Device> devices(Platform p) {
  std::vector<Device> found;
  const auto ask = [&](Channel& channel) {
    use(p);
    describe_all(channel);
  };
  const WorkerEnd end = run_worker(ask, [&](const Json& json) { found.push_back(Device::from_json(json)); });
  if (end.kind != WorkerEnd::done) warn(p, end.detail);
  return found;
}

Device find(const std::string& arch) {
  const int64_t capability = compute_capability(arch);
  for (Device& d : devices(platform_of(arch)))
    if (capability ? d.compute_capability() == capability : d.arch == arch) {
      d.arch = arch;
      return d;
    }
  return generic_gpu(arch);
}

int ordinal_of(const std::string& uuid) {
  const Driver* d = driver();
  int count = 0;
  if (d) {
    int code = d->cuInit(0);
    if (code == 0) code = d->cuDeviceGetCount(&count);
    if (DriverError(code, "", "").sticky()) check(code, "starting the driver"); // it may be back in a second
  }
  for (int i = 0; i < count; ++i) {
    int device = 0;
    check(d->cuDeviceGet(&device, i), "opening a device");
    if (uuid_of(*d, device) == uuid) return i;
  }
  throw Error(
      "the device is not attached", uuid, "none of the " + std::to_string(count) + " visible GPUs is it",
      "delete device.json to find the devices again, or look at CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES");
}

} // namespace deepgen::cuda
