#include "base/kernel/kernel.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/kernel/device.h"
#include "base/kernel/seal.h"
#include "base/kernel/span_json.h"
#include "base/text/sha256.h"
#include "base/text/text.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr const char* kKernelSchema = "deepgen.kernel/2";
constexpr const char* kAgain = "delete the file and build again";

/// Of what calling the kernel runs.
std::string hash_of(const Kernel& k) { return sha256_hex(k.code.empty() ? k.ptx : k.code); }

/// [factor, step of m, of n, of k, of batch]
Json rule_json(const SizeRule& r) { return {r.factor, r.steps[0], r.steps[1], r.steps[2], r.steps[3]}; }

Json rules_json(const std::array<SizeRule, 3>& rules) {
  return {rule_json(rules[0]), rule_json(rules[1]), rule_json(rules[2])};
}

SizeRule rule_from(const std::array<int64_t, 5>& numbers, const std::string& key, const std::string& where) {
  check_counts(key, where, numbers.data(), numbers.data() + numbers.size(), 0);
  return {numbers[0], {numbers[1], numbers[2], numbers[3], numbers[4]}};
}

void get_rules(const Json& json, const std::string& key, const std::string& where,
               std::array<SizeRule, 3>& rules) {
  if (!json.contains(key)) return;
  const auto numbers = get<std::array<std::array<int64_t, 5>, 3>>(json, key, where);
  for (size_t i = 0; i < rules.size(); ++i) rules[i] = rule_from(numbers[i], key, where);
}

bool any(const std::array<SizeRule, 3>& rules) {
  return rules[0].exists() || rules[1].exists() || rules[2].exists();
}

Json launch_json(const Launch& l, bool amd) {
  Json json = {{"entry", l.entry},
               {"grid", l.grid},
               {"block", l.block},
               {"cluster", l.cluster},
               {"shared", l.shared},
               {"persistent", l.persistent},
               {"dependent", l.dependent},
               {"registers", l.registers},
               {"stack", l.stack},
               {"spill_stores", l.spill_stores},
               {"spill_loads", l.spill_loads},
               {"static_shared", l.static_shared}};
  if (any(l.grid_rules)) json["grid_rules"] = rules_json(l.grid_rules);
  if (amd) json.update({{"accumulation", l.accumulation}, {"scalars", l.scalars}, {"waves", l.waves}});
  return json;
}

/// A list of N numbers, all at least 1.
template <size_t N>
std::array<int64_t, N> get_sizes(const Json& json, const std::string& key, const std::string& where) {
  const auto sizes = get<std::array<int64_t, N>>(json, key, where);
  check_counts(key, where, sizes.data(), sizes.data() + N, 1);
  return sizes;
}

Launch launch_from_json(const Json& json, const std::string& where, bool amd) {
  Launch l;
  l.entry = get_name(json, "entry", where);
  l.grid = get_sizes<3>(json, "grid", where);
  get_rules(json, "grid_rules", where, l.grid_rules);
  l.block = get_sizes<3>(json, "block", where);
  l.cluster = get_sizes<3>(json, "cluster", where);
  l.persistent = get<bool>(json, "persistent", where);
  l.dependent = get<bool>(json, "dependent", where);
  for (auto [key, value] : {std::pair{"shared", &l.shared},
                            {"registers", &l.registers},
                            {"stack", &l.stack},
                            {"spill_stores", &l.spill_stores},
                            {"spill_loads", &l.spill_loads},
                            {"static_shared", &l.static_shared}})
    *value = get_count(json, key, where);
  if (!amd) return l;
  for (auto [key, value] :
       {std::pair{"accumulation", &l.accumulation}, {"scalars", &l.scalars}, {"waves", &l.waves}})
    *value = get_count(json, key, where);
  return l;
}

Json map_json(const TensorMap& m) {
  Json json = {{"operand", m.operand},
               {"box", {m.box_columns, m.box_rows}},
               {"swizzle", m.swizzle},
               {"promotion", m.promotion}};
  if (m.rest_of) json["rest_of"] = size_names[size_t(*m.rest_of)];
  if (!m.packed.ld) return json;
  json["packed"] = {{"offset", m.packed.offset},
                    {"rows", m.packed.rows},
                    {"columns", m.packed.columns},
                    {"ld", m.packed.ld}};
  if (m.packed.rows_by) json["packed"]["rows_by"] = size_names[size_t(*m.packed.rows_by)];
  if (m.packed.columns_by) json["packed"]["columns_by"] = size_names[size_t(*m.packed.columns_by)];
  return json;
}

std::optional<Size> size_from(const Json& json, const std::string& key, const std::string& where) {
  if (!json.contains(key)) return std::nullopt;
  const std::string name = get_word(json, key, where);
  for (size_t i = 0; i < size_count; ++i)
    if (name == size_names[i]) return Size(i);
  throw Error("unknown size '" + name + "'", key, where, kAgain);
}

TensorMap map_from_json(const Json& json, const std::string& where) {
  const auto box = get_sizes<2>(json, "box", where);
  PackedOperand packed;
  if (const auto found = json.find("packed"); found != json.end())
    packed = {get_count(*found, "offset", where),     get_count(*found, "rows", where, 1),
              get_count(*found, "columns", where, 1), get_count(*found, "ld", where, 1),
              size_from(*found, "rows_by", where),    size_from(*found, "columns_by", where)};
  return {get_word(json, "operand", where),
          box[0],
          box[1],
          get_count(json, "swizzle", where),
          get_count(json, "promotion", where),
          packed,
          size_from(json, "rest_of", where)};
}

/// The runtime hands a kernel the first map of an operand, behind which it finds the others.
void check_map_arrays(const std::vector<TensorMap>& maps, const std::string& where) {
  for (size_t i = 1; i < maps.size(); ++i)
    for (size_t j = 0; j + 1 < i && maps[i].operand != maps[i - 1].operand; ++j)
      if (maps[j].operand == maps[i].operand)
        throw Error("tensor maps " + std::to_string(j) + " and " + std::to_string(i) +
                        " are of one operand, '" + visible(maps[i].operand) +
                        "', and others lie between them: they are no array",
                    "maps", where, kAgain);
}

/// A GPU kernel has launches; the fields of the other kind of device are left out.
void add_gpu_json(const Kernel& k, Json& json) {
  Json launches = Json::array(), maps = Json::array();
  for (const Launch& l : k.launches) launches.push_back(launch_json(l, is_amd(k.target)));
  for (const TensorMap& m : k.maps) maps.push_back(map_json(m));
  json["target"] = k.target;
  json["launches"] = launches;
  json["maps"] = maps;
  json["operand_align"] = {k.align_a, k.align_b, k.align_d};
  if (k.most_pitch) json["most_pitch"] = k.most_pitch;
  json["assembler"] = k.assembler;
  json["warnings"] = k.warnings;
  json["device"] = k.device;
  json["ptx_bytes"] = k.ptx.size();
}

void read_gpu_json(const Json& json, const std::string& where, Kernel& k) {
  k.target = get_word(json, "target", where);
  for (const Json& item : get<std::vector<Json>>(json, "launches", where))
    k.launches.push_back(launch_from_json(item, where, is_amd(k.target)));
  for (const Json& item : get<std::vector<Json>>(json, "maps", where))
    k.maps.push_back(map_from_json(item, where));
  check_map_arrays(k.maps, where);
  const auto align = get_sizes<3>(json, "operand_align", where);
  k.align_a = align[0], k.align_b = align[1], k.align_d = align[2];
  if (json.contains("most_pitch")) k.most_pitch = get_count(json, "most_pitch", where, 1);
  k.assembler = get_name(json, "assembler", where);
  k.warnings = get<std::vector<std::string>>(json, "warnings", where);
  for (std::string& text : k.warnings) text = visible(text);
  k.device = get_name(json, "device", where);
}

Json kernel_json(const Kernel& k) {
  Json json = {{"role", k.role},
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
               {"sha256", hash_of(k)},
               {"code_bytes", k.code.size()}};
  if (any(k.tile_rules)) json["tile_rules"] = rules_json(k.tile_rules);
  if (k.workspace_rule.exists())
    json["workspace_rule"] = {{"fixed", k.workspace_fixed}, {"rule", rule_json(k.workspace_rule)}};
  if (!k.sum_order.empty()) json["sum_order"] = k.sum_order;
  if (k.taken) json["taken"] = span_json(*k.taken);
  if (!k.packed_b.empty()) json["packed_b"] = k.packed_b;
  if (k.cut) json["cut"] = k.cut;
  if (!k.launches.empty()) add_gpu_json(k, json);
  return json;
}

Kernel kernel_from_json(const Json& json, const std::string& where) {
  Kernel k;
  k.role = get_word(json, "role", where);
  k.problem = Problem::parse(get<std::string>(json, "problem", where));
  k.choice.template_name = get_word(json, "template", where);
  k.choice.config = Config::from_json(get<Json>(json, "config", where));
  k.isa = get_count(json, "isa", where);
  k.args = get_words(json, "args", where);
  const auto tiles = get_sizes<3>(json, "tiles", where);
  const auto grain = get_sizes<2>(json, "grain", where);
  k.tiles_m = tiles[0], k.tiles_n = tiles[1], k.tiles_b = tiles[2];
  k.grain_m = grain[0], k.grain_n = grain[1];
  k.workspace = get_count(json, "workspace", where);
  get_rules(json, "tile_rules", where, k.tile_rules);
  if (const auto found = json.find("workspace_rule"); found != json.end()) {
    k.workspace_fixed = get_count(*found, "fixed", where);
    k.workspace_rule = rule_from(get<std::array<int64_t, 5>>(*found, "rule", where), "workspace_rule", where);
  }
  if (json.contains("sum_order")) k.sum_order = get_name(json, "sum_order", where);
  k.taken = get_span(json, "taken", where);
  k.align = get_count(json, "align", where, 1);
  k.entry = get_count(json, "entry", where);
  if (json.contains("packed_b")) k.packed_b = get_word(json, "packed_b", where);
  if (json.contains("cut")) k.cut = get_count(json, "cut", where, 1);
  if (json.contains("launches")) read_gpu_json(json, where, k);
  return k;
}

} // namespace

int64_t Kernel::align_of(const Operand& operand) const {
  switch (operand.align) {
  case Operand::Align::a:
    return align_a;
  case Operand::Align::b:
    return align_b;
  case Operand::Align::d:
    return align_d;
  case Operand::Align::element:
    break;
  }
  return 1;
}

int64_t Kernel::most_pitch_of(const std::string& operand) const {
  return operand == "a" || operand == "b" ? most_pitch : 0;
}

const Kernel* KernelFile::find(const std::string& role) const {
  for (const Kernel& k : kernels)
    if (k.role == role) return &k;
  return nullptr;
}

std::string KernelFile::serialize() const {
  Json list = Json::array();
  for (const Kernel& k : kernels) list.push_back(kernel_json(k));
  Json head = {{"schema", kKernelSchema},
               {"status", status},
               {"detail", detail},
               {"problem", problem.key()},
               {"arch", arch},
               {"template", choice.template_name},
               {"revision", revision},
               {"config", choice.config.to_json()},
               {"origin", origin},
               {"kernels", list}};
  std::string code;
  for (const Kernel& k : kernels) code += k.code + k.ptx;
  return seal(dump_json(head), code);
}

KernelFile KernelFile::parse(const std::string& bytes, const std::string& where) {
  size_t line = bytes.find('\n');
  if (line == std::string::npos) throw Error("truncated kernel file", where, "", kAgain);
  Json head = parse_json(bytes.substr(0, line), where);
  check_schema(head, kKernelSchema, where);
  check_seal(bytes, line, where);
  KernelFile file;
  file.status = get_word(head, "status", where);
  file.detail = get_text(head, "detail", where);
  file.problem = Problem::parse(get<std::string>(head, "problem", where));
  file.arch = get_word(head, "arch", where);
  file.choice.template_name = get_word(head, "template", where);
  file.revision = get<int64_t>(head, "revision", where);
  file.choice.config = Config::from_json(get<Json>(head, "config", where));
  file.origin = get_name(head, "origin", where);
  size_t at = line + 1;
  for (const Json& item : get<std::vector<Json>>(head, "kernels", where)) {
    Kernel k = kernel_from_json(item, where);
    auto take = [&](const char* field) {
      const size_t size = get<size_t>(item, field, where);
      if (size > bytes.size() - at) throw Error("truncated kernel file", where, "", kAgain);
      at += size;
      return bytes.substr(at - size, size);
    };
    k.code = take("code_bytes");
    if (k.entry > 0 && size_t(k.entry) >= k.code.size())
      throw Error("a kernel's entry lies behind its code", where, "", kAgain);
    if (!k.launches.empty()) k.ptx = take("ptx_bytes"); // as it is written
    k.sha256 = hash_of(k);
    if (get<std::string>(item, "sha256", where) != k.sha256)
      throw Error("a kernel's code is not that of its file's head", where,
                  "the code has the SHA-256 " + k.sha256, kAgain);
    file.kernels.push_back(std::move(k));
  }
  return file;
}

KernelFile KernelFile::read(const std::string& path) { return parse(read_file(path), path); }

} // namespace deepgen
