#include "measure/devices/rocm_smi.h"

#include "base/files/rocm.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

namespace deepgen {
namespace {

constexpr int kDriver = 0; ///< RSMI_SW_COMP_DRIVER

struct Process { ///< rsmi_process_info_t
  uint32_t id, pasid;
  uint64_t memory, copies;
  uint32_t occupancy;
};

/// The start of rsmi_gpu_metrics_t, which later versions of the library only made longer.
struct Metrics {
  uint16_t bytes;
  uint8_t format, content; ///< versions of what the device's firmware tells
  uint16_t temperatures[6], activities[3], watts;
  uint64_t energy, time;
  uint16_t average_clocks[7], clocks[7]; ///< MHz; the first is that of the compute units
  uint32_t throttle_status;              ///< whose bits depend on the chip
  uint16_t fan, link_width, link_speed;
  uint32_t activity_sums[2];
  uint16_t memory_temperatures[4];
  uint64_t firmware_time;
  uint16_t voltages[3];
  uint64_t reasons; ///< as SMU_THROTTLER_..._BIT of the kernel's driver; from content 3 on, or all ones
};
static_assert(offsetof(Metrics, clocks) == 54 && offsetof(Metrics, throttle_status) == 68 &&
              offsetof(Metrics, reasons) == 112);

/// 16 bits each: power, current, temperature, others.
constexpr uint64_t kPower = 0xff, kCurrent = 0xffull << 16, kHeat = 0xffffull << 32;

template <typename Function>
bool find_symbol(void* library, Function& slot, const char* symbol) {
  slot = reinterpret_cast<Function>(dlsym(library, symbol));
  return slot != nullptr;
}

/// hip_uuid()'s two forms, of a device of this library.
std::string unique_name(uint64_t id) {
  char text[32];
  std::snprintf(text, sizeof text, "GPU-%016llx", static_cast<unsigned long long>(id));
  return text;
}
std::string place_name(uint64_t bdf) {
  char text[32];
  std::snprintf(text, sizeof text, "PCI-%04x:%02x:%02x.%x", unsigned(bdf >> 32), unsigned(bdf >> 8 & 0xff),
                unsigned(bdf >> 3 & 0x1f), unsigned(bdf & 7));
  return text;
}

/// The number of the device; empty when no device has the name.
std::optional<uint32_t> find_device(void* library, const std::string& uuid) {
  int (*count)(uint32_t*) = nullptr;
  int (*unique)(uint32_t, uint64_t*) = nullptr;
  int (*place)(uint32_t, uint64_t*) = nullptr;
  uint32_t devices = 0;
  if (!find_symbol(library, count, "rsmi_num_monitor_devices") || count(&devices) != 0) return std::nullopt;
  find_symbol(library, unique, "rsmi_dev_unique_id_get"), find_symbol(library, place, "rsmi_dev_pci_id_get");
  for (uint32_t i = 0; i < devices; ++i) {
    uint64_t id = 0;
    if (unique && unique(i, &id) == 0 && unique_name(id) == uuid) return i;
    if (place && place(i, &id) == 0 && place_name(id) == uuid) return i;
  }
  return std::nullopt;
}

} // namespace

std::optional<RocmSmi> RocmSmi::open(const void* in_hip, const std::string& uuid, std::string* why) {
  const auto none = [&](const std::string& reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  const OpenedLibrary found = rocm::open(in_hip, rocm::smi);
  if (!found) return none(found.absence("ROCm SMI is not here (librocm_smi64.so)"));
  void* library = found.handle;
  int (*start)(uint64_t) = nullptr;
  if (!find_symbol(library, start, "rsmi_init") || start(0) != 0) return none("ROCm SMI does not start");
  const std::optional<uint32_t> device = find_device(library, uuid);
  if (!device) return none("ROCm SMI does not know the device");
  RocmSmi r;
  r.index_ = *device;
  find_symbol(library, r.metrics_, "rsmi_dev_gpu_metrics_info_get");
  find_symbol(library, r.power_cap_, "rsmi_dev_power_cap_get");
  find_symbol(library, r.processes_, "rsmi_compute_process_info_get");
  find_symbol(library, r.devices_of_, "rsmi_compute_process_gpus_get");
  int (*version)(int, char*, uint32_t) = nullptr;
  char text[80] = "";
  if (find_symbol(library, version, "rsmi_version_str_get") && version(kDriver, text, sizeof text) == 0)
    r.driver_version_ = text;
  return r;
}

RocmSmi::State RocmSmi::state() const {
  // Far more than any version's, as the library writes all of its own.
  alignas(Metrics) char room[32 << 10] = {};
  if (!metrics_ || metrics_(index_, room) != 0) return {};
  Metrics m;
  std::memcpy(&m, room, sizeof m);
  State s;
  const auto told = [](uint16_t clock) { return clock != 0 && clock != 0xffff; };
  if (m.format == 1)
    s.megahertz = told(m.clocks[0]) ? m.clocks[0] : told(m.average_clocks[0]) ? m.average_clocks[0] : 0;
  if (m.format == 1 && m.content >= 3 && m.reasons != ~uint64_t(0))
    s.throttled = m.reasons & kHeat, s.capped = m.reasons & (kPower | kCurrent);
  return s;
}

std::optional<int> RocmSmi::compute_processes() const {
  uint32_t count = 0;
  if (!processes_ || !devices_of_ || processes_(nullptr, &count) != 0) return std::nullopt;
  std::vector<Process> list(count + 16);
  count = uint32_t(list.size());
  if (processes_(list.data(), &count) != 0) return std::nullopt;
  list.resize(std::min<size_t>(count, list.size()));
  return int(std::count_if(list.begin(), list.end(), [&](const Process& p) {
    uint32_t devices[64], number = 64;
    return devices_of_(p.id, devices, &number) == 0 &&
           std::find(devices, devices + std::min(number, 64u), index_) != devices + std::min(number, 64u);
  }));
}

double RocmSmi::power_limit_watts() const {
  uint64_t microwatts = 0;
  return power_cap_ && power_cap_(index_, 0, &microwatts) == 0 ? double(microwatts) * 1e-6 : 0;
}

} // namespace deepgen
