#include "measure/devices/devices.h"

#include "base/files/files.h"
#include "base/kernel/cpu_isa.h"
#include "base/text/error.h"
#include "measure/devices/cuda_devices.h"
#include "runtime/cpu/cpu.h"
#include "runtime/include/deepgen/kernel_abi.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

/// The value of "key<spaces>: value" in a file of such lines, e.g. /proc/cpuinfo.
std::string field_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
  }
  return "";
}

std::string first_word(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
    paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// "1024K" -> bytes; 0 when it is not of that form.
int64_t cache_bytes(const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || value <= 0) return 0;
  return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

int64_t cache_from_sysfs(int level) {
  for (const fs::path& index : children("/sys/devices/system/cpu/cpu0/cache"))
    if (first_word(index / "level") == std::to_string(level) && first_word(index / "type") != "Instruction")
      return cache_bytes(first_word(index / "size"));
  return 0;
}

/// sysfs first: glibc's sysconf() miscounts shared caches of some CPUs. `fallback` where neither knows
/// (containers).
int64_t cache_size(int level, int name, int64_t fallback) {
  if (const int64_t bytes = cache_from_sysfs(level); bytes > 0) return bytes;
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

int64_t usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)); // more CPUs than the mask has room for
}

Device find_cpu() {
  Device d;
  d.name = cpu::ModelName().text; // what the runtime compares with
  if (d.name.empty()) d.name = field_of("/proc/cpuinfo", "model name");
  if (d.name.empty()) d.name = "unknown CPU";
  d.isa = deepgen_cpu_level();
  const char* names[cpu::max_features];
  d.features.assign(names, names + cpu::features(names));
  limit_features(d, isa_of_this_cpu());
  d.cores = usable_cores();
  d.l1d = cache_size(1, _SC_LEVEL1_DCACHE_SIZE, d.l1d);
  d.l2 = cache_size(2, _SC_LEVEL2_CACHE_SIZE, d.l2);
  d.l3 = cache_size(3, _SC_LEVEL3_CACHE_SIZE, d.l3);
  return d;
}

/// "gfx942" of each GPU that the kernel fusion driver lists; its CPU nodes have version 0.
std::vector<std::string> amd_gpus() {
  std::vector<std::string> archs;
  for (const fs::path& node : children("/sys/class/kfd/kfd/topology/nodes")) {
    std::ifstream in(node / "properties");
    std::string key;
    for (long long value; in >> key >> value;) {
      if (key != "gfx_target_version" || value <= 0) continue;
      std::ostringstream arch; // 90402 -> gfx942: major, minor, and the stepping in hex
      arch << "gfx" << value / 10000 << value / 100 % 100 << std::hex << value % 100;
      archs.push_back(arch.str());
    }
  }
  return archs;
}

std::string padded(const std::string& arch) {
  return arch + std::string(9 - std::min<size_t>(8, arch.size()), ' ');
}

/// GPUs that the kernel's driver lists and HIP does not show, each with what to do.
std::vector<std::string> lines_of_hidden(const std::vector<Device>& shown) {
  std::vector<std::string> lines;
  for (const std::string& arch : amd_gpus())
    if (std::none_of(shown.begin(), shown.end(), [&](const Device& d) { return d.arch == arch; }))
      lines.push_back(padded(arch) +
                      "AMD GPU that HIP does not show: install ROCm 5.2 or later (LD_LIBRARY_PATH must find "
                      "libamdhip64.so), join the groups render and video, look at HIP_VISIBLE_DEVICES");
  return lines;
}

std::string size_text(int64_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

} // namespace

int64_t isa_of_this_cpu() { return cpu::usable_isa(); }

Device find_device(const std::string& arch) {
  if (arch == "cpu") return find_cpu();
  if (arch.rfind("sm_", 0) == 0 || arch.rfind("gfx", 0) == 0) return cuda::find(arch);
  throw Error("unknown arch '" + arch + "'", "--arch", "", "use cpu, sm_<number> or gfx<number>");
}

std::vector<std::string> list_devices() {
  const Device cpu = find_cpu();
  std::vector<std::string> lines = {"cpu      " + cpu.name + ", x86-64-v" + std::to_string(cpu.isa) + ", " +
                                    std::to_string(cpu.cores) + " cores, L1d " + size_text(cpu.l1d) +
                                    ", L2 " + size_text(cpu.l2) + ", L3 " + size_text(cpu.l3)};
  const auto add = [&](const Device& d, const char* units) {
    lines.push_back(padded(d.arch) + d.name + ", " + std::to_string(d.cores) + " " + units + ", L2 " +
                    size_text(d.l2) + ", " + std::to_string(d.memory_bandwidth / 1000000000) + " GB/s, " +
                    d.uuid);
  };
  for (const Device& d : cuda::devices(cuda::Platform::cuda)) add(d, "multiprocessors");
  const std::vector<Device> amd = cuda::devices(cuda::Platform::hip);
  for (const Device& d : amd) add(d, "compute units");
  for (const std::string& line : lines_of_hidden(amd)) lines.push_back(line);
  return lines;
}

} // namespace deepgen
