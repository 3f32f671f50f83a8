#include "base/device.h"

#include "base/json.h"

namespace deepgen {
namespace {
constexpr const char* kSchema = "deepgen.device/1";
}

Json Device::to_json() const {
  return {{"schema", kSchema}, {"arch", arch},   {"present", present}, {"name", name}, {"isa", isa},
          {"features", features}, {"cores", cores}, {"l1d", l1d},         {"l2", l2},     {"l3", l3}};
}

Device Device::from_json(const Json& json) {
  const std::string where = "device description";
  check_schema(json, kSchema, where);
  Device d;
  d.arch = get<std::string>(json, "arch", where);
  d.present = get<bool>(json, "present", where);
  d.name = get<std::string>(json, "name", where);
  d.isa = get<int64_t>(json, "isa", where);
  d.features = get<std::vector<std::string>>(json, "features", where);
  d.cores = get<int64_t>(json, "cores", where);
  d.l1d = get<int64_t>(json, "l1d", where);
  d.l2 = get<int64_t>(json, "l2", where);
  d.l3 = get<int64_t>(json, "l3", where);
  return d;
}

Device Device::read(const std::string& path) { return from_json(read_json(path, kSchema)); }

} // namespace deepgen
