// Devices, code and launches.
#include "internal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <sstream>

namespace fake_hip {

thread_local int captures = 0;

namespace {

thread_local int current = 0;
thread_local int mode = 0;

struct Module {
  int device;
  std::string bytes;
  CodeObject object;
};
struct Function {
  const Module* module;
  const KernelInfo* info;
};
/// Handles stay good for ever, also behind hipModuleUnload: what is launched on them then is a complaint.
std::vector<std::unique_ptr<Module>> modules;
std::vector<std::unique_ptr<Function>> functions;

State* state_of_environment() {
  auto* s = new State;
  const auto entries = [](const char* variable, const auto& add) {
    const char* text = std::getenv(variable);
    std::istringstream list(text ? text : "");
    for (std::string entry; std::getline(list, entry, ';');) add(entry);
  };
  entries("FAKE_HIP_DEVICES", [&](const std::string& entry) {
    const size_t space = entry.find(' ');
    Device d;
    d.target = entry.substr(0, space), d.name = space == std::string::npos ? "" : entry.substr(space + 1);
    s->devices.push_back(d);
  });
  if (const char* text = std::getenv("HIP_VISIBLE_DEVICES"); text && *text) {
    std::vector<Device> visible;
    std::istringstream list(text);
    for (std::string number; std::getline(list, number, ',');)
      if (const size_t i = std::strtoul(number.c_str(), nullptr, 10); i < s->devices.size())
        visible.push_back(s->devices[i]);
    s->devices = visible;
  }
  entries("FAKE_HIP_RESULTS", [&](const std::string& entry) {
    s->results[entry.substr(0, entry.find('='))] = std::atoi(entry.c_str() + entry.find('=') + 1);
  });
  const char* replays = std::getenv("FAKE_HIP_REPLAYS");
  s->replays = !replays || *replays != '0';
  if (const char* hook = std::getenv("FAKE_HIP_HOOK")) {
    void* library = dlopen(hook, RTLD_NOW | RTLD_LOCAL);
    if (library) s->hook = reinterpret_cast<fake_hip_run_function>(dlsym(library, "fake_hip_run"));
    if (!s->hook) {
      std::fprintf(stderr, "fake HIP: FAKE_HIP_HOOK=%s has no fake_hip_run: %s\n", hook, dlerror());
      std::abort();
    }
  }
  return s;
}

int refuse(int result, const std::string& why) {
  state().complaints.push_back(why);
  if (std::getenv("FAKE_HIP_TRACE")) std::fprintf(stderr, "refused: %s\n", why.c_str());
  return result;
}

/// "gfx942" and its settings, of which the code names those that must be as they are.
bool runs(const std::string& code, const std::string& device) {
  std::istringstream wanted(code), has(device);
  std::vector<std::string> present;
  for (std::string word; std::getline(has, word, ':');) present.push_back(word);
  for (std::string word; std::getline(wanted, word, ':');)
    if (std::find(present.begin(), present.end(), word) == present.end()) return false;
  return true;
}

/// The argument segment from one pointer an argument, as kernelParams is read.
std::string pack(const KernelInfo& k, void** parameters, std::vector<std::string>& each) {
  std::string segment(k.kernarg_bytes, '\0');
  size_t next = 0;
  for (const KernelArgument& a : k.arguments) {
    if (a.kind.rfind("hidden_", 0) == 0) continue;
    each.emplace_back(static_cast<const char*>(parameters[next++]), a.size);
    segment.replace(a.offset, a.size, each.back());
  }
  return segment;
}

/// From a buffer that the caller laid out (HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END).
bool unpack(const KernelInfo& k, void** extra, std::string& segment, std::vector<std::string>& each) {
  const char* buffer = nullptr;
  size_t bytes = 0;
  for (; reinterpret_cast<uintptr_t>(extra[0]) != 3; extra += 2)
    if (reinterpret_cast<uintptr_t>(extra[0]) == 1)
      buffer = static_cast<const char*>(extra[1]);
    else
      bytes = *static_cast<const size_t*>(extra[1]);
  uint32_t end = 0;
  for (const KernelArgument& a : k.arguments)
    if (a.kind.rfind("hidden_", 0) != 0) end = std::max(end, a.offset + a.size);
  if (!buffer || bytes < end || bytes > k.kernarg_bytes) return false;
  segment = std::string(buffer, bytes), segment.resize(k.kernarg_bytes);
  for (const KernelArgument& a : k.arguments)
    if (a.kind.rfind("hidden_", 0) != 0) each.push_back(segment.substr(a.offset, a.size));
  return true;
}

/// What the hardware and the driver do not take.
std::string fault_of(const Launch& l, const KernelInfo& k, const Device& device) {
  uint64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (!l.grid[i] || !l.block[i]) return "a grid or block of 0";
    if (uint64_t(l.grid[i]) * l.block[i] > UINT32_MAX) return "2^32 threads or more along one side";
    threads *= l.block[i];
  }
  if (threads > k.most_threads)
    return std::to_string(threads) + " threads, more than .max_flat_workgroup_size";
  if (!k.required_block.empty() && !std::equal(l.block.begin(), l.block.end(), k.required_block.begin()))
    return "not the block of .reqd_workgroup_size";
  if (k.group_bytes + l.shared > device.group_bytes) return "more LDS than a workgroup has";
  return "";
}

int run(const Launch& l, const Module& module, const Device& device) {
  State& s = state();
  if (std::getenv("FAKE_HIP_TRACE"))
    std::fprintf(stderr, "launch of %s for %s on %s, grid %u %u %u, block %u %u %u, %zu parameters\n",
                 l.kernel.c_str(), module.object.target.c_str(), device.target.c_str(), l.grid[0], l.grid[1],
                 l.grid[2], l.block[0], l.block[1], l.block[2], l.parameters.size());
  if (s.recording) s.launches.push_back(l);
  if (!s.hook) return success;
  const fake_hip_launch launch = {device.target.c_str(),
                                  module.bytes.data(),
                                  module.bytes.size(),
                                  l.kernel.c_str(),
                                  {l.grid[0], l.grid[1], l.grid[2]},
                                  {l.block[0], l.block[1], l.block[2]},
                                  l.shared,
                                  l.kernarg.data(),
                                  l.kernarg.size(),
                                  allocation_of};
  return s.hook(&launch);
}

double seconds_of(const std::string& kernel) {
  const auto at = state().seconds.find(kernel);
  return at == state().seconds.end() ? 10e-6 : at->second;
}

int launch(Function* f, Launch l, void** parameters, void** extra) {
  const Module& module = *f->module;
  const Device& device = state().devices.at(size_t(current));
  l.device = current, l.code = module.bytes, l.kernel = f->info->name;
  if (module.device != current) return refuse(invalid_device_function, "a kernel of another device's module");
  if (const std::string why = fault_of(l, *f->info, device); !why.empty())
    return refuse(invalid_configuration, l.kernel + ": " + why);
  if (bool(parameters) == bool(extra) && !f->info->arguments.empty())
    return refuse(invalid_value, l.kernel + ": either parameters or a buffer");
  if (parameters)
    l.kernarg = pack(*f->info, parameters, l.parameters);
  else if (extra && !unpack(*f->info, extra, l.kernarg, l.parameters))
    return refuse(invalid_value, l.kernel + ": the buffer of arguments has another size");
  return enqueue(const_cast<void*>(l.stream), seconds_of(l.kernel),
                 [l, &module, device] { return run(l, module, device); });
}

int load(Module& module, const void* image) {
  const auto* data = static_cast<const char*>(image);
  const size_t bytes = code_object_bytes(data);
  if (!bytes) return refuse(invalid_image, "no ELF file");
  module.device = current, module.bytes = std::string(data, bytes);
  for (const auto& [part, result] : state().code_results)
    if (module.bytes.find(part) != std::string::npos) return result;
  try {
    module.object = parse_code_object(data, bytes);
  } catch (const std::exception& e) {
    return refuse(invalid_image, e.what());
  }
  if (!runs(module.object.target, state().devices.at(size_t(current)).target))
    return refuse(no_binary_for_gpu, "code for " + module.object.target);
  return success;
}

/// hipDeviceProp_t as ROCm `major` has it: the name in front, the arch far behind, the rest is not looked at.
int fill_properties(void* properties, int device, size_t bytes, size_t arch) {
  if (device < 0 || size_t(device) >= state().devices.size()) return invalid_device;
  const Device& d = state().devices[size_t(device)];
  auto* text = static_cast<char*>(properties);
  std::memset(text, 0x5a, bytes);
  std::memset(text + arch, 0, 256);
  std::snprintf(text, 256, "%s", d.name.c_str());
  std::snprintf(text + arch, 256, "%s", d.target.c_str());
  return success;
}

} // namespace

State& state() {
  static State* s = state_of_environment();
  return *s;
}

void reset(std::vector<Device> devices) {
  State& s = state();
  s.devices = std::move(devices);
  s.results.clear(), s.code_results.clear(), s.seconds.clear(), s.calls.clear(), s.launches.clear(),
      s.complaints.clear();
  s.capturing = false, s.recording = true, s.hook = nullptr, s.replays = true;
  mode = 0, current = 0;
}

int capture_mode() { return mode; }
int current_device() { return current; }

int enter(const char* name) {
  State& s = state();
  if (s.recording) {
    s.calls[name]++;
    if (const auto at = s.results.find(name); at != s.results.end()) return at->second;
  }
  return s.devices.empty() ? no_device : success;
}

int forbidden_in_capture() {
  return (state().capturing || captures) && mode != 2 ? capture_unsupported : success;
}

} // namespace fake_hip

using namespace fake_hip;

extern "C" {

int hipInit(unsigned) {
  ENTER(hipInit);
  return success;
}
int hipDriverGetVersion(int* version) {
  ENTER(hipDriverGetVersion);
  return *version = FAKE_HIP_ROCM * 10000000, success;
}
int hipRuntimeGetVersion(int* version) {
  ENTER(hipRuntimeGetVersion);
  return *version = FAKE_HIP_ROCM * 10000000, success;
}
const char* hipGetErrorName(int result) {
  return result == no_binary_for_gpu ? "hipErrorNoBinaryForGpu" : "hipErrorUnknown";
}
const char* hipGetErrorString(int result) {
  return result == no_binary_for_gpu ? "no kernel image is available for execution on the device"
                                     : "unknown error";
}
int hipGetDeviceCount(int* count) {
  *count = 0;
  ENTER(hipGetDeviceCount);
  return *count = int(state().devices.size()), success;
}
int hipGetDevice(int* device) {
  ENTER(hipGetDevice);
  return *device = current, success;
}
int hipSetDevice(int device) {
  ENTER(hipSetDevice);
  if (device < 0 || size_t(device) >= state().devices.size()) return invalid_device;
  return current = device, success;
}
int hipDeviceGet(int* device, int ordinal) {
  ENTER(hipDeviceGet);
  return *device = ordinal, success;
}
int hipDeviceGetName(char* name, int length, int device) {
  ENTER(hipDeviceGetName);
  std::snprintf(name, size_t(length), "%s", state().devices.at(size_t(device)).name.c_str());
  return success;
}
int hipDeviceGetUuid(unsigned char* bytes, int device) {
  ENTER(hipDeviceGetUuid);
  char text[17];
  std::snprintf(text, sizeof text, "fa4e00000000%04x", device);
  std::memcpy(bytes, text, 16); // HIP's are 16 characters
  return success;
}
int hipDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER(hipDeviceGetAttribute);
  const Device& d = state().devices.at(size_t(device));
  switch (attribute) {
  case 5: // of the clock, kHz
    return *value = 2100000, success;
  case 19: // bytes of L2
    return *value = 4 << 20, success;
  case 59: // bits of the memory's bus
    return *value = 8192, success;
  case 60: // of the memory's clock, kHz
    return *value = 1300000, success;
  case 63:
    return *value = d.compute_units, success;
  case 74:
  case 10002: // LDS of a workgroup, of a compute unit
    return *value = int(d.group_bytes), success;
  default:
    return invalid_value;
  }
}
#if FAKE_HIP_ROCM >= 6
int hipGetDevicePropertiesR0600(void* properties, int device) {
  ENTER(hipGetDevicePropertiesR0600);
  return fill_properties(properties, device, 1472, 1160);
}
int hipThreadExchangeStreamCaptureMode(int* other) {
  ENTER(hipThreadExchangeStreamCaptureMode);
  return std::swap(mode, *other), success;
}
#endif
int hipGetDeviceProperties(void* properties, int device) {
  ENTER(hipGetDeviceProperties);
  return fill_properties(properties, device, 792, 396);
}

int hipModuleLoadData(void** module, const void* image) {
  ENTER(hipModuleLoadData);
  if (int r = forbidden_in_capture()) return r;
  auto fresh = std::make_unique<Module>();
  if (int r = load(*fresh, image)) return r;
  *module = fresh.get();
  modules.push_back(std::move(fresh));
  return success;
}
int hipModuleUnload(void*) {
  ENTER(hipModuleUnload);
  return success;
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
  ENTER(hipModuleGetFunction);
  const auto* m = static_cast<const Module*>(module);
  const KernelInfo* info = m->object.find(name);
  if (!info) return not_found;
  functions.push_back(std::make_unique<Function>(Function{m, info}));
  *function = functions.back().get();
  return success;
}
int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int, size_t) {
  ENTER(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
  return *count = state().devices.at(size_t(current)).blocks_per_unit, success;
}
int hipModuleLaunchKernel(void* f, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                          uint32_t block_y, uint32_t block_z, uint32_t shared, void* stream,
                          void** parameters, void** extra) {
  ENTER(hipModuleLaunchKernel);
  if (!state().recording && !state().hook) return success;
  return launch(static_cast<Function*>(f),
                {0, "", "", {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, "", {}},
                parameters, extra);
}

} // extern "C"
