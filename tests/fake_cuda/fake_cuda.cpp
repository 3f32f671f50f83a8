#include "fake_cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <memory>
#include <regex>
#include <sstream>

using namespace deepgen::nvidia;

namespace fake_cuda {
namespace {

constexpr int kStreamCaptureUnsupported = 900, kAlignmentOfMaps = 64;
const char* device_of_environment() { return std::getenv("FAKE_CUDA_DEVICE"); }
thread_local int current = device_of_environment() ? 0 : -1;
thread_local int mode = 0;

struct Code {
  bool is_ptx = false;
  int capability = 0;
  char suffix = 0;
  std::string text;
  std::map<std::string, std::vector<int>> entries;
};
/// A CUkernel and, as the driver allows it, a CUfunction.
struct Entry {
  const Code* code = nullptr;
  std::string name;
  std::vector<int> sizes;
  std::map<int, std::map<int, int>> attributes; ///< by device
};
/// Handles stay good for ever, as nothing is unloaded.
std::vector<std::unique_ptr<Code>> codes;
std::vector<std::unique_ptr<Entry>> entries;

/// Its entries are the functions that have a section of code.
Code parse_cubin(const char* image) {
  Elf64_Ehdr head;
  std::memcpy(&head, image, sizeof head);
  Code code;
  code.text = "a cubin";
  code.capability = int(head.e_ident[EI_ABIVERSION] >= 8 ? head.e_flags >> 8 & 0xff : head.e_flags & 0xff);
  const auto section = [&](size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, image + head.e_shoff + i * head.e_shentsize, sizeof s);
    return s;
  };
  const char* names = image + section(head.e_shstrndx).sh_offset;
  for (size_t i = 0; i < head.e_shnum; ++i)
    if (const std::string name = names + section(i).sh_name; name.rfind(".text.", 0) == 0)
      code.entries[name.substr(6)];
  return code;
}

Code parse_ptx(const std::string& text) {
  static const std::regex target("\\.target sm_([0-9]+)([af]?)"), entry("\\.entry ([^(]+)\\(([^)]*)\\)"),
      parameter("\\.param [^,]*(8 [^,]*\\[([0-9]+)\\]|32 |64 )[^,]*");
  Code code;
  code.text = "PTX", code.is_ptx = true;
  std::smatch match;
  if (std::regex_search(text, match, target))
    code.capability = std::stoi(match[1]), code.suffix = match[2].str()[0];
  for (std::sregex_iterator at(text.begin(), text.end(), entry), end; at != end; ++at) {
    const std::string list = (*at)[2];
    auto& sizes = code.entries[(*at)[1]];
    for (std::sregex_iterator p(list.begin(), list.end(), parameter), last; p != last; ++p)
      sizes.push_back((*p)[2].matched ? std::stoi((*p)[2]) : std::stoi((*p)[1]) / 8);
  }
  return code;
}

Code parse(const std::string& text) {
  Code code;
  code.text = text;
  std::istringstream words(text);
  std::string kind, arch, entry;
  words >> kind >> arch;
  code.is_ptx = kind == "ptx";
  code.capability = std::stoi(arch.substr(3));
  if (!std::isdigit(static_cast<unsigned char>(arch.back()))) code.suffix = arch.back();
  while (words >> entry) {
    if (entry.find('=') == std::string::npos) continue; // a comment
    std::istringstream sizes(entry.substr(entry.find('=') + 1));
    auto& list = code.entries[entry.substr(0, entry.find('='))];
    for (std::string size; std::getline(sizes, size, ',');) list.push_back(std::stoi(size));
  }
  return code;
}

/// Records the call and says how it was told to fail. With the mutex held.
Result enter(const char* name) {
  State& s = state();
  if (!s.recording) return success;
  s.calls[name]++;
  const auto at = s.results.find(name);
  return at == s.results.end() ? success : at->second;
}

Result forbidden_in_capture() {
  return state().capturing && mode != capture_mode_relaxed ? kStreamCaptureUnsupported : success;
}

bool runs(const Code& code, const Device& device) {
  const int capability = device.major * 10 + device.minor;
  if (code.suffix == 'a') return capability == code.capability;
  if (code.is_ptx) return capability >= code.capability;
  return capability / 10 == code.capability / 10 && capability >= code.capability;
}

#define ENTER(name)                                                                                          \
  std::lock_guard lock(state().mutex);                                                                       \
  if (Result told = enter(name)) return told;

Result get_error_string(Result r, const char** text) {
  *text = r == no_binary_for_gpu ? "no kernel image is available for execution on the device" : nullptr;
  return *text ? success : invalid_value;
}

Result context_device(int* device) {
  ENTER("cuCtxGetDevice");
  if (current < 0) return invalid_context;
  *device = current;
  return success;
}

Result device_count(int* count) {
  ENTER("cuDeviceGetCount");
  *count = int(state().devices.size());
  return success;
}

Result device_name(char* name, int length, int device) {
  ENTER("cuDeviceGetName");
  std::snprintf(name, size_t(length), "%s", state().devices.at(size_t(device)).name.c_str());
  return success;
}

Result device_attribute(int* value, int attribute, int device) {
  ENTER("cuDeviceGetAttribute");
  const Device& d = state().devices.at(size_t(device));
  switch (attribute) {
  case capability_major:
    *value = d.major;
    return success;
  case capability_minor:
    *value = d.minor;
    return success;
  case multiprocessors:
    *value = d.multiprocessors;
    return success;
  default:
    return invalid_value;
  }
}

Result library_load(Library* library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
  ENTER("cuLibraryLoadData");
  if (Result r = forbidden_in_capture()) return r;
  const bool cubin = std::memcmp(image, ELFMAG, SELFMAG) == 0;
  const std::string text = static_cast<const char*>(image);
  const bool ptx = text.find(".version ") != std::string::npos;
  if (!cubin && !ptx && text.rfind("cubin ", 0) != 0 && text.rfind("ptx ", 0) != 0) return invalid_image;
  for (const auto& [part, result] : state().image_results)
    if (text.find(part) != std::string::npos) return result;
  codes.push_back(std::make_unique<Code>(cubin ? parse_cubin(static_cast<const char*>(image))
                                         : ptx ? parse_ptx(text)
                                               : parse(text)));
  *library = reinterpret_cast<Library>(codes.back().get());
  return success;
}

Result library_unload(Library) {
  ENTER("cuLibraryUnload");
  return success;
}

Result library_kernel(Kernel* kernel, Library library, const char* name) {
  ENTER("cuLibraryGetKernel");
  const auto* code = reinterpret_cast<const Code*>(library);
  const auto at = code->entries.find(name);
  if (at == code->entries.end()) return not_found;
  for (const auto& known : entries)
    if (known->code == code && known->name == name) {
      *kernel = reinterpret_cast<Kernel>(known.get());
      return success;
    }
  entries.push_back(std::make_unique<Entry>(Entry{code, name, at->second, {}}));
  *kernel = reinterpret_cast<Kernel>(entries.back().get());
  return success;
}

Result kernel_attribute(int* value, int attribute, Kernel kernel, int device) {
  ENTER("cuKernelGetAttribute");
  *value = reinterpret_cast<Entry*>(kernel)->attributes[device][attribute];
  return success;
}

Result kernel_set_attribute(int attribute, int value, Kernel kernel, int device) {
  ENTER("cuKernelSetAttribute");
  if (attribute == max_dynamic_shared && value > state().devices.at(size_t(device)).max_dynamic_shared)
    return invalid_value;
  reinterpret_cast<Entry*>(kernel)->attributes[device][attribute] = value;
  return success;
}

Result kernel_function(Function* function, Kernel kernel) {
  ENTER("cuKernelGetFunction");
  if (Result r = forbidden_in_capture()) return r;
  if (current < 0) return invalid_context;
  const auto* entry = reinterpret_cast<const Entry*>(kernel);
  if (!runs(*entry->code, state().devices.at(size_t(current)))) return no_binary_for_gpu;
  *function = reinterpret_cast<Function>(kernel);
  return success;
}

Result function_load(Function) {
  ENTER("cuFuncLoad");
  return forbidden_in_capture();
}

Result blocks_that_fit(int* count, Function, int, size_t) {
  ENTER("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *count = state().devices.at(size_t(current)).blocks_per_multiprocessor;
  return success;
}

Result clusters_that_fit(int* count, Function, const LaunchConfig* config) {
  ENTER("cuOccupancyMaxActiveClusters");
  if (config->attribute_count != 1 || config->attributes[0].id != cluster_dimension) return invalid_value;
  *count = state().devices.at(size_t(current)).clusters;
  return success;
}

Result exchange_capture_mode(int* other) {
  ENTER("cuThreadExchangeStreamCaptureMode");
  std::swap(mode, *other);
  return success;
}

/// The rules of the hardware that a wrong description would break.
Result encode_tiled(TensorMap* map, int type, uint32_t rank, void* address, const uint64_t* sizes,
                    const uint64_t* strides, const uint32_t* box, const uint32_t*, int interleave,
                    int swizzle, int promotion, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(map) % kAlignmentOfMaps || !address ||
      reinterpret_cast<uintptr_t>(address) % 16)
    return invalid_value;
  for (uint32_t i = 0; i + 1 < rank; ++i)
    if (strides[i] % 16 || strides[i] >= uint64_t(1) << 40) return invalid_value;
  for (uint32_t i = 0; i < rank; ++i)
    if (!box[i] || box[i] > 256) return invalid_value;
  std::memset(map, 0, sizeof *map);
  map->words[0] = state().maps.size();
  if (state().recording)
    state().maps.push_back({type,
                            interleave,
                            swizzle,
                            promotion,
                            fill,
                            reinterpret_cast<uint64_t>(address),
                            {sizes, sizes + rank},
                            {strides, strides + rank - 1},
                            {box, box + rank}});
  return success;
}

Result launch(const LaunchConfig* config, Function function, void** parameters, void** extra) {
  ENTER("cuLaunchKernelEx");
  if (extra || current < 0) return invalid_context;
  const auto* entry = reinterpret_cast<const Entry*>(function);
  if (!runs(*entry->code, state().devices.at(size_t(current)))) return no_binary_for_gpu;
  if (device_of_environment())
    std::fprintf(stderr, "launch of %s, %s for %d, %zu parameters\n", entry->name.c_str(),
                 entry->code->text.c_str(), entry->code->capability, entry->sizes.size());
  if (!state().recording) return success;
  Launch l{entry->code->text, entry->name, {}, {}, config->shared, config->stream, {}, {}};
  for (size_t i = 0; i < 3; ++i) l.grid[i] = config->grid[i], l.block[i] = config->block[i];
  l.attributes.assign(config->attributes, config->attributes + config->attribute_count);
  for (size_t i = 0; i < entry->sizes.size(); ++i)
    l.parameters.emplace_back(static_cast<const char*>(parameters[i]), size_t(entry->sizes[i]));
  state().launches.push_back(std::move(l));
  return success;
}

struct Symbol {
  const char* name;
  int since, before; ///< versions whose form this is
  void* address;
};
const Symbol symbols[] = {
    {"cuGetErrorString", 6000, 99999, reinterpret_cast<void*>(&get_error_string)},
    {"cuCtxGetDevice", 2000, 13000, reinterpret_cast<void*>(&context_device)},
    {"cuDeviceGetCount", 2000, 99999, reinterpret_cast<void*>(&device_count)},
    {"cuDeviceGetName", 2000, 99999, reinterpret_cast<void*>(&device_name)},
    {"cuDeviceGetAttribute", 2000, 99999, reinterpret_cast<void*>(&device_attribute)},
    {"cuLibraryLoadData", 12000, 99999, reinterpret_cast<void*>(&library_load)},
    {"cuLibraryUnload", 12000, 99999, reinterpret_cast<void*>(&library_unload)},
    {"cuLibraryGetKernel", 12000, 99999, reinterpret_cast<void*>(&library_kernel)},
    {"cuKernelGetAttribute", 12000, 99999, reinterpret_cast<void*>(&kernel_attribute)},
    {"cuKernelSetAttribute", 12000, 99999, reinterpret_cast<void*>(&kernel_set_attribute)},
    {"cuKernelGetFunction", 12000, 99999, reinterpret_cast<void*>(&kernel_function)},
    {"cuFuncLoad", 12040, 99999, reinterpret_cast<void*>(&function_load)},
    {"cuLaunchKernelEx", 11060, 99999, reinterpret_cast<void*>(&launch)},
    {"cuTensorMapEncodeTiled", 12000, 99999, reinterpret_cast<void*>(&encode_tiled)},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, 99999, reinterpret_cast<void*>(&blocks_that_fit)},
    {"cuOccupancyMaxActiveClusters", 11070, 99999, reinterpret_cast<void*>(&clusters_that_fit)},
    {"cuThreadExchangeStreamCaptureMode", 10010, 99999, reinterpret_cast<void*>(&exchange_capture_mode)},
};

} // namespace

State& state() {
  static State* s = [] {
    auto* fresh = new State;
    if (const char* text = device_of_environment()) {
      Device d;
      int length = 0;
      std::sscanf(text, "%d.%d %n", &d.major, &d.minor, &length);
      d.name = text + length;
      fresh->devices = {d};
    }
    return fresh;
  }();
  return *s;
}

void reset(std::vector<Device> devices) {
  State& s = state();
  s.devices = std::move(devices);
  s.missing.clear(), s.results.clear(), s.image_results.clear();
  s.capturing = false, s.recording = true;
  s.calls.clear(), s.launches.clear(), s.maps.clear();
  mode = 0;
}

void set_current(int device) { current = device; }
int capture_mode() { return mode; }

} // namespace fake_cuda

extern "C" Result cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags,
                                      int* found) {
  constexpr int kFoundNothing = 1;
  constexpr uint64_t kLegacyStream = 1;
  *address = nullptr;
  // Without the flag, null would mean another default stream.
  if (flags == kLegacyStream && !fake_cuda::state().missing.count(name))
    for (const fake_cuda::Symbol& s : fake_cuda::symbols)
      if (std::strcmp(s.name, name) == 0 && version >= s.since && version < s.before) *address = s.address;
  if (found) *found = *address ? 0 : kFoundNothing;
  return *address ? success : not_found;
}
