#include "workload/mlir/manifest.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/problem/signature.h"
#include "base/text/identifier.h"
#include "base/text/text.h"

#include <algorithm>
#include <set>

namespace deepgen::tensors {
namespace {

constexpr int64_t kMostRank = 8;
constexpr size_t kLongestName = 1000;

const Json& list_in(const Json& json, const char* key, size_t most, const std::string& where) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array() || found->size() > most)
    throw Error(std::string("field '") + key + "' is missing, or no list of at most " + std::to_string(most),
                where);
  return *found;
}

std::vector<std::pair<std::string, int64_t>> read_operands(const Json& json, const Gemm& problem,
                                                           const std::string& where) {
  const std::vector<Operand> known = signature(problem);
  std::vector<std::pair<std::string, int64_t>> operands;
  std::set<std::string> names;
  for (const Json& each : list_in(json, "operands", Manifest::most_operands, where)) {
    if (!each.is_array() || each.size() != 2 || !is_a<std::string>(each[0]) || !is_a<int64_t>(each[1]))
      throw Error("an operand is no pair of a name and a rank: " + excerpt(each), where);
    const std::string name = each[0].get<std::string>();
    const int64_t rank = each[1].get<int64_t>();
    const bool found = std::any_of(known.begin(), known.end(),
                                   [&](const Operand& o) { return o.in_memory() && name == o.name; });
    if (!found || rank < 0 || rank > kMostRank || !names.insert(name).second)
      throw Error("the problem has no such operand, or has it twice: " + excerpt(each), where, problem.key());
    operands.emplace_back(name, rank);
  }
  for (const Operand& o : known)
    if (o.in_memory() && o.required && !names.count(o.name))
      throw Error(std::string("operand '") + o.name + "' is missing", where, problem.key());
  return operands;
}

bool is_number_of(const Gemm& problem, const std::string& name) {
  for (const Operand& o : signature(problem)) {
    if (!o.in_memory() && name == o.name) return true;
    if (o.is_matrix() && o.in_memory() && (name == o.leading_dimension() || name == o.stride())) return true;
  }
  return false;
}

std::vector<std::pair<std::string, double>> read_arguments(const Json& json, const Gemm& problem,
                                                           const std::string& where) {
  const Json object = get<Json>(json, "arguments", where);
  if (!object.is_object()) throw Error("field 'arguments' is no object", where);
  std::vector<std::pair<std::string, double>> arguments;
  for (const auto& [name, value] : object.items()) {
    const bool scalar = name == "alpha" || name == "beta" || name.rfind("clamp", 0) == 0;
    const double number = is_a<double>(value) ? value.get<double>() : 0;
    if (!is_number_of(problem, name) || !is_a<double>(value) ||
        (!scalar && (number != double(int64_t(std::clamp(number, -1e15, 1e15))) || number < -1)))
      throw Error("argument '" + visible(name) +
                      "' is none of the problem's, or no number that it takes: " + excerpt(value),
                  where, problem.key());
    arguments.emplace_back(name, number);
  }
  std::sort(arguments.begin(), arguments.end());
  return arguments;
}

Entry read_entry(const Json& json, const std::string& where) {
  Entry e;
  e.name = get<std::string>(json, "name", where);
  if (const std::string why = why_no_identifier(e.name); !why.empty() || e.name.size() > 200)
    throw Error("field 'name' is no name of a function: " + excerpt(json["name"]), where, why);
  e.problem = Gemm::parse(get<std::string>(json, "problem", where));
  if (e.problem.ranged() || e.problem.groups || e.problem.gate)
    throw Error("a module has no such problem", where, e.problem.key(),
                "sizes that are fixed, no groups and no gate");
  e.function = get_name(json, "function", where, kLongestName);
  e.line = get_count(json, "line", where, 1), e.calls = get_count(json, "calls", where, 1);
  e.whole = get<bool>(json, "whole", where);
  e.operands = read_operands(json, e.problem, where);
  e.arguments = read_arguments(json, e.problem, where);
  return e;
}

/// Whole numbers as such.
Json number_json(double value) {
  if (value == double(int64_t(std::clamp(value, -1e15, 1e15)))) return int64_t(value);
  return value;
}

Json entry_json(const Entry& e) {
  Json operands = Json::array(), arguments = Json::object();
  for (const auto& [field, rank] : e.operands) operands.push_back({field, rank});
  for (const auto& [field, value] : e.arguments) arguments[field] = number_json(value);
  return {{"name", e.name},       {"problem", e.problem.key()}, {"function", e.function},
          {"line", e.line},       {"calls", e.calls},           {"whole", e.whole},
          {"operands", operands}, {"arguments", arguments}};
}

std::string lines_of(const std::vector<Json>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ",\n" : "\n") + dump_json(list[i]);
  return text + (list.empty() ? "]" : "\n]");
}

} // namespace

Manifest Manifest::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, schema, where);
  Manifest m;
  m.source = get_name(json, "source", where, kLongestName),
  m.sha256 = get<std::string>(json, "sha256", where);
  if (!is_sha256(m.sha256)) throw Error("field 'sha256' has no 64 hex digits", where);
  std::set<std::string> names;
  for (const Json& each : list_in(json, "functions", most_entries, where)) {
    m.functions.push_back(read_entry(each, where));
    if (!names.insert(m.functions.back().name).second)
      throw Error("a name comes twice", where, m.functions.back().name);
  }
  for (const Json& each : list_in(json, "left", most_entries, where))
    m.left.push_back({get_name(each, "operation", where, kLongestName),
                      get_name(each, "why", where, kLongestName), get_count(each, "line", where, 1)});
  return m;
}

Manifest Manifest::read(const std::string& path) { return parse(read_file(path), path); }

std::string Manifest::serialize() const {
  std::vector<Json> function_lines, left_lines;
  for (const Entry& e : functions) function_lines.push_back(entry_json(e));
  for (const Left& l : left)
    left_lines.push_back({{"operation", l.operation}, {"why", l.why}, {"line", l.line}});
  return "{\n\"schema\":\"" + std::string(schema) + "\",\n\"source\":" + dump_json(Json(source)) +
         ",\n\"sha256\":\"" + sha256 + "\",\n\"functions\":" + lines_of(function_lines) +
         ",\n\"left\":" + lines_of(left_lines) + "\n}\n";
}

} // namespace deepgen::tensors
