// librocm_smi64.so for tests: two devices, fake HIP's in the other order. FAKE_ROCM_SMI="1890 0x10 3 2": the
// clock in MHz, reasons to throttle, the version of the metrics, and processes that compute on the device of
// HIP's number 0; without it the library does not start.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Settings {
  unsigned megahertz = 0, version = 3, processes = 0;
  unsigned long long reasons = 0;
};

bool read(Settings& s) {
  const char* text = std::getenv("FAKE_ROCM_SMI");
  return text && std::sscanf(text, "%u %llx %u %u", &s.megahertz, &s.reasons, &s.version, &s.processes) == 4;
}

constexpr int kFailed = 8, kOfHip0 = 1;

template <typename T>
void put(void* to, size_t offset, T value) {
  std::memcpy(static_cast<char*>(to) + offset, &value, sizeof value);
}

} // namespace

extern "C" {

int rsmi_init(uint64_t) {
  Settings s;
  return read(s) ? 0 : kFailed;
}
int rsmi_num_monitor_devices(uint32_t* count) { return *count = 2, 0; }
int rsmi_dev_unique_id_get(uint32_t device, uint64_t* id) {
  return *id = 0xfa4e000000000000 + (device == kOfHip0 ? 0 : 1), 0;
}
int rsmi_dev_pci_id_get(uint32_t device, uint64_t* bdf) {
  return *bdf = (uint64_t(2) << 32) | (3 + device) << 8 | 5 << 3 | 1, 0;
}
int rsmi_version_str_get(int, char* text, uint32_t size) { return std::snprintf(text, size, "6.10.5"), 0; }
int rsmi_dev_power_cap_get(uint32_t, uint32_t, uint64_t* microwatts) { return *microwatts = 750000000, 0; }

/// The offsets are those of rsmi_gpu_metrics_t; what follows them in newer versions is written too.
int rsmi_dev_gpu_metrics_info_get(uint32_t device, void* to) {
  Settings s;
  if (!read(s) || device != kOfHip0) return kFailed;
  std::memset(to, 0xff, 6000);
  put<uint8_t>(to, 2, 1), put<uint8_t>(to, 3, uint8_t(s.version));
  put<uint16_t>(to, 40, uint16_t(s.megahertz - 100)); // on average
  if (s.version < 4) put<uint16_t>(to, 54, uint16_t(s.megahertz));
  put<uint64_t>(to, 112, s.reasons);
  return 0;
}

int rsmi_compute_process_info_get(void* list, uint32_t* count) {
  Settings s;
  if (!read(s)) return kFailed;
  for (uint32_t i = 0; list && i < *count && i < s.processes; ++i) put<uint32_t>(list, 32 * i, 100 + i);
  return *count = s.processes, 0;
}
/// The first process computes on both devices.
int rsmi_compute_process_gpus_get(uint32_t process, uint32_t* devices, uint32_t* count) {
  if (*count < 2) return kFailed;
  devices[0] = kOfHip0, devices[1] = 0;
  return *count = process == 100 ? 2 : 1, 0;
}

} // extern "C"
