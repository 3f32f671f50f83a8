// libcuda.so.1 and libnvidia-ml.so.1 in one, for what measures: it has devices, and runs nothing on them. Put
// its folder into LD_LIBRARY_PATH. FAKE_CUDA_DEVICES="9.0 NVIDIA H100;9.0 NVIDIA H100;8.0 NVIDIA A100"; their
// UUIDs begin with the number FAKE_CUDA_MACHINE in eight hexadecimal digits, and end with 1, 2 and so on.
// FAKE_NVML_PROCESSES: how many processes compute on each of them. FAKE_NVML_INIT: with what NVML does not
// start.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Device {
  int major = 0, minor = 0;
  std::string name;
};

const std::vector<Device>& devices() {
  static const std::vector<Device> list = [] {
    std::vector<Device> found;
    const char* text = std::getenv("FAKE_CUDA_DEVICES");
    std::istringstream entries(text ? text : "");
    for (std::string entry; std::getline(entries, entry, ';');) {
      Device d;
      int length = 0;
      std::sscanf(entry.c_str(), "%d.%d %n", &d.major, &d.minor, &length);
      d.name = entry.substr(size_t(length));
      found.push_back(d);
    }
    return found;
  }();
  return list;
}

} // namespace

extern "C" {

int cuInit(unsigned) { return devices().empty() ? 100 : 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorName(int, const char** text) { return *text = "FAKE", 0; }
int cuGetErrorString(int, const char** text) { return *text = "this driver runs nothing", 0; }
int cuDeviceGetCount(int* count) { return *count = int(devices().size()), 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, size_t(size), "%s", devices().at(size_t(device)).name.c_str());
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  std::memset(bytes, 0, 16);
  const char* machine = std::getenv("FAKE_CUDA_MACHINE");
  const unsigned long number = machine ? std::strtoul(machine, nullptr, 10) : 0;
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<unsigned char>(number >> (24 - 8 * i));
  bytes[15] = static_cast<unsigned char>(device + 1);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  constexpr int kMajor = 75, kMinor = 76;
  const Device& d = devices().at(size_t(device));
  *value = attribute == kMajor ? d.major : attribute == kMinor ? d.minor : 100 + attribute;
  return 0;
}

int nvmlInit_v2() {
  const char* text = std::getenv("FAKE_NVML_INIT");
  return text ? std::atoi(text) : 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* bits) { return *bits = 0, 0; }
int nvmlDeviceGetHandleByUUID(const char*, void** device) { return *device = nullptr, 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  const char* text = std::getenv("FAKE_NVML_PROCESSES");
  return *count = text ? unsigned(std::atoi(text)) : 0, 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) { return *milliwatts = 350000, 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) { return std::snprintf(text, size, "600.1"), 0; }

#define NOT_SUPPORTED(name)                                                                                  \
  int name() { return 801; }
NOT_SUPPORTED(cuDevicePrimaryCtxRetain)
NOT_SUPPORTED(cuCtxSetCurrent)
NOT_SUPPORTED(cuMemGetInfo_v2)
NOT_SUPPORTED(cuMemAlloc_v2)
NOT_SUPPORTED(cuMemFree_v2)
NOT_SUPPORTED(cuMemcpyHtoD_v2)
NOT_SUPPORTED(cuMemcpyDtoH_v2)
NOT_SUPPORTED(cuMemsetD32Async)
NOT_SUPPORTED(cuModuleLoadDataEx)
NOT_SUPPORTED(cuModuleUnload)
NOT_SUPPORTED(cuModuleGetFunction)
NOT_SUPPORTED(cuFuncSetAttribute)
NOT_SUPPORTED(cuLaunchKernelEx)
NOT_SUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOT_SUPPORTED(cuStreamCreate)
NOT_SUPPORTED(cuStreamSynchronize)
NOT_SUPPORTED(cuStreamBeginCapture_v2)
NOT_SUPPORTED(cuStreamEndCapture)
NOT_SUPPORTED(cuGraphInstantiateWithFlags)
NOT_SUPPORTED(cuGraphUpload)
NOT_SUPPORTED(cuGraphLaunch)
NOT_SUPPORTED(cuGraphExecDestroy)
NOT_SUPPORTED(cuGraphDestroy)
NOT_SUPPORTED(cuEventCreate)
NOT_SUPPORTED(cuEventRecord)
NOT_SUPPORTED(cuEventElapsedTime)

} // extern "C"
