#include "base/kernel/device.h"

#include "base/json/json_text.h"
#include "base/kernel/amd.h"

#include <charconv>
#include <string_view>

namespace deepgen {
namespace {
constexpr const char* kDeviceSchema = "deepgen.device/1";
}

Json Device::to_json() const {
  Json json = {
      {"schema", kDeviceSchema}, {"arch", arch},   {"present", present}, {"name", name}, {"isa", isa},
      {"features", features},    {"cores", cores}, {"l1d", l1d},         {"l2", l2},     {"l3", l3}};
  if (is_cpu()) return json;
  json["uuid"] = uuid;
  json["shared_block"] = shared_block;
  json["shared_multiprocessor"] = shared_multiprocessor;
  json["clock_khz"] = clock_khz;
  json["memory_bandwidth"] = memory_bandwidth;
  return json;
}

Device Device::from_json(const Json& json) {
  const std::string where = "device description";
  check_schema(json, kDeviceSchema, where);
  Device d;
  d.arch = get_word(json, "arch", where);
  d.present = get<bool>(json, "present", where);
  d.name = get_name(json, "name", where);
  d.features = get_words(json, "features", where);
  for (auto [key, value] :
       {std::pair{"isa", &d.isa}, {"cores", &d.cores}, {"l1d", &d.l1d}, {"l2", &d.l2}, {"l3", &d.l3}})
    *value = get_count(json, key, where);
  if (d.is_cpu()) return d;
  check_counts("cores", where, &d.cores, &d.cores + 1, 1); // estimates divide by them
  d.uuid = get_name(json, "uuid", where);
  for (auto [key, value] : {std::pair{"shared_block", &d.shared_block},
                            {"shared_multiprocessor", &d.shared_multiprocessor},
                            {"clock_khz", &d.clock_khz},
                            {"memory_bandwidth", &d.memory_bandwidth}})
    *value = get_count(json, key, where);
  return d;
}

int64_t compute_capability(const std::string& arch) {
  if (!arch.starts_with("sm_")) return 0;
  int64_t number = 0;
  const char *begin = arch.data() + 3, *end = arch.data() + arch.size();
  const auto [stop, status] = std::from_chars(begin, end, number);
  const std::string_view suffix(stop, size_t(end - stop));
  return status == std::errc() && number > 0 && number < 1000 &&
                 (suffix.empty() || suffix == "a" || suffix == "f")
             ? number
             : 0;
}

int64_t Device::compute_capability() const { return deepgen::compute_capability(arch); }

// CUDA C++ Programming Guide, "Compute Capabilities" (shared memory); vendor data sheets (the rest).
Device generic_gpu(const std::string& arch) {
  struct Row {
    int64_t capability;
    const char* name;
    int64_t cores, l2_mib, block_kib, shared_kib, clock_mhz, gb_per_second;
  };
  static constexpr Row rows[] = {{80, "NVIDIA A100", 108, 40, 163, 164, 1410, 2039},
                                 {86, "NVIDIA A10", 72, 6, 99, 100, 1695, 600},
                                 {89, "NVIDIA L40S", 142, 96, 99, 100, 2520, 864},
                                 {90, "NVIDIA H100", 132, 50, 227, 228, 1980, 3350},
                                 {100, "NVIDIA B200", 148, 126, 227, 228, 1965, 8000},
                                 {120, "NVIDIA RTX PRO 6000 Blackwell", 188, 128, 99, 100, 2617, 1792}};
  if (const AmdArch* amd = find_amd(arch)) return generic_amd(*amd);
  const int64_t capability = deepgen::compute_capability(arch);
  for (const Row& r : rows) {
    if (r.capability != capability) continue;
    Device d;
    d.arch = arch, d.name = r.name, d.present = false, d.isa = 0, d.cores = r.cores;
    d.l1d = 0, d.l2 = r.l2_mib << 20, d.l3 = 0;
    d.shared_block = r.block_kib << 10, d.shared_multiprocessor = r.shared_kib << 10;
    d.clock_khz = r.clock_mhz * 1000, d.memory_bandwidth = r.gb_per_second * 1000000000;
    return d;
  }
  throw Error("unknown arch '" + arch + "'", "", "",
              "use cpu, or one of sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120 " + amd_archs());
}

Device Device::read(const std::string& path) { return from_json(read_json(path, kDeviceSchema)); }

} // namespace deepgen
