#include "base/kernel.h"

#include "base/files.h"
#include "base/json.h"

namespace deepgen {
namespace {

constexpr const char* kSchema = "deepgen.kernel/1";

Json kernel_json(const Kernel& k) {
  return {{"role", k.role},
          {"problem", k.problem.key()},
          {"template", k.choice.template_name},
          {"config", k.choice.config.to_json()},
          {"isa", k.isa},
          {"args", k.args},
          {"tiles", {k.tiles_m, k.tiles_n, k.tiles_b}},
          {"grain", {k.grain_m, k.grain_n}},
          {"workspace", k.workspace},
          {"align", k.align},
          {"entry", k.entry},
          {"sha256", k.sha256},
          {"code_bytes", k.code.size()}};
}

Kernel kernel_from_json(const Json& json, const std::string& where) {
  Kernel k;
  k.role = get<std::string>(json, "role", where);
  k.problem = Problem::parse(get<std::string>(json, "problem", where));
  k.choice.template_name = get<std::string>(json, "template", where);
  k.choice.config = Config::from_json(get<Json>(json, "config", where));
  k.isa = get<int64_t>(json, "isa", where);
  k.args = get<std::vector<std::string>>(json, "args", where);
  auto tiles = get<std::vector<int64_t>>(json, "tiles", where);
  auto grain = get<std::vector<int64_t>>(json, "grain", where);
  if (tiles.size() != 3 || grain.size() != 2) throw Error("malformed kernel description", where);
  k.tiles_m = tiles[0], k.tiles_n = tiles[1], k.tiles_b = tiles[2];
  k.grain_m = grain[0], k.grain_n = grain[1];
  k.workspace = get<int64_t>(json, "workspace", where);
  k.align = get<int64_t>(json, "align", where);
  k.entry = get<int64_t>(json, "entry", where);
  k.sha256 = get<std::string>(json, "sha256", where);
  return k;
}

} // namespace

const Kernel* KernelFile::find(const std::string& role) const {
  for (const Kernel& k : kernels)
    if (k.role == role) return &k;
  return nullptr;
}

std::string KernelFile::serialize() const {
  Json list = Json::array();
  for (const Kernel& k : kernels) list.push_back(kernel_json(k));
  Json head = {{"schema", kSchema},
               {"status", status},
               {"detail", detail},
               {"problem", problem.key()},
               {"arch", arch},
               {"template", choice.template_name},
               {"revision", revision},
               {"config", choice.config.to_json()},
               {"origin", origin},
               {"kernels", list}};
  std::string out = head.dump() + "\n";
  for (const Kernel& k : kernels) out += k.code;
  return out;
}

KernelFile KernelFile::parse(const std::string& bytes, const std::string& where) {
  size_t line = bytes.find('\n');
  if (line == std::string::npos) throw Error("truncated kernel file", where, "", "delete it and build again");
  Json head = parse_json(bytes.substr(0, line), where);
  check_schema(head, kSchema, where);
  KernelFile file;
  file.status = get<std::string>(head, "status", where);
  file.detail = get<std::string>(head, "detail", where);
  file.problem = Problem::parse(get<std::string>(head, "problem", where));
  file.arch = get<std::string>(head, "arch", where);
  file.choice.template_name = get<std::string>(head, "template", where);
  file.revision = get<int64_t>(head, "revision", where);
  file.choice.config = Config::from_json(get<Json>(head, "config", where));
  file.origin = get<std::string>(head, "origin", where);
  size_t at = line + 1;
  for (const Json& item : get<Json>(head, "kernels", where)) {
    Kernel k = kernel_from_json(item, where);
    size_t size = get<size_t>(item, "code_bytes", where);
    if (size > bytes.size() - at) throw Error("truncated kernel file", where, "", "delete it and build again");
    k.code = bytes.substr(at, size);
    at += size;
    file.kernels.push_back(std::move(k));
  }
  return file;
}

KernelFile KernelFile::read(const std::string& path) { return parse(read_file(path), path); }

} // namespace deepgen
