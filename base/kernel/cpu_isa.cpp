#include "base/kernel/cpu_isa.h"

#include <algorithm>

namespace deepgen {
namespace {

struct Extension {
  int64_t bit;
  int64_t level; ///< below which it is of no use here
  std::vector<std::string> features;
};

const std::vector<Extension>& all_extensions() {
  static const std::vector<Extension> all = {{isa_avxvnni, 3, {"avxvnni"}},
                                             {isa_avx512vnni, 4, {"avx512vnni"}},
                                             {isa_avx512bf16, 4, {"avx512bf16"}},
                                             {isa_amx, 4, {"amx-bf16", "amx-int8", "amx-tile"}}};
  return all;
}

template <typename Text>
std::string features_text(int64_t isa, const std::string& between, Text text) {
  std::string list;
  for (const Extension& x : all_extensions())
    for (const std::string& feature : x.features)
      if (isa & x.bit) list += (list.empty() ? "" : between) + text(feature);
  return list;
}

} // namespace

int64_t isa_of(const Device& device) {
  const bool any = device.isa > 4;
  int64_t isa = any ? 4 : device.isa;
  for (const Extension& x : all_extensions()) {
    const auto has = [&](const std::string& feature) {
      return std::find(device.features.begin(), device.features.end(), feature) != device.features.end();
    };
    if (any || (device.isa >= x.level && std::all_of(x.features.begin(), x.features.end(), has)))
      isa |= x.bit;
  }
  return isa;
}

void add_features(Device& device) {
  for (const Extension& x : all_extensions())
    if (device.isa >= x.level)
      device.features.insert(device.features.end(), x.features.begin(), x.features.end());
  std::sort(device.features.begin(), device.features.end());
}

void limit_features(Device& device, int64_t isa) {
  for (const Extension& x : all_extensions())
    for (const std::string& feature : x.features)
      if (!(isa & x.bit)) std::erase(device.features, feature);
}

int64_t common_isa(int64_t x, int64_t y) {
  const int64_t level = std::min(level_of(x), level_of(y));
  int64_t isa = level;
  for (const Extension& e : all_extensions())
    if (level >= e.level) isa |= x & y & e.bit;
  return isa;
}

std::string isa_text(int64_t isa) {
  const std::string more = features_text(isa, ", ", [](const std::string& x) { return x; });
  return "x86-64-v" + std::to_string(level_of(isa)) + (more.empty() ? "" : " with " + more);
}

std::string isa_features(int64_t isa) {
  return features_text(isa, ",", [](const std::string& x) { return "+" + x; });
}

} // namespace deepgen
