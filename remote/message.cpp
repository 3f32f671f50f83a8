#include "remote/message.h"

#include "base/json/json_text.h"

namespace deepgen {
namespace {

constexpr const char* kStarted = "deepgen.worker/1 ";
constexpr const char* kRequest = "deepgen.request/1";
constexpr const char* kResponse = "deepgen.response/1";
constexpr size_t kMostInList = 10000;

std::vector<std::string> get_list(const Json& json, const std::string& key, const std::string& where) {
  auto list = get<std::vector<std::string>>(json, key, where);
  if (list.size() > kMostInList) throw Error("field '" + key + "' is too long", where);
  for (const std::string& word : list)
    if (word.find('\0') != std::string::npos) throw Error("field '" + key + "' has a word with a 0", where);
  return list;
}

} // namespace

std::string Started::line() const {
  return kStarted + dump_json({{"id", id}, {"node", node}, {"job", job}, {"pid", pid}}) + "\n";
}

std::optional<Started> Started::parse(const std::string& line) {
  if (!line.starts_with(kStarted)) return std::nullopt;
  const std::string where = "a worker's first line";
  const Json json = parse_json(line.substr(std::string(kStarted).size()), where);
  return Started{get_text(json, "id", where), get_name(json, "node", where), get_name(json, "job", where),
                 get_count(json, "pid", where)};
}

Json Request::to_json() const {
  return {{"schema", kRequest}, {"id", id},     {"command", command},
          {"outputs", outputs}, {"arch", arch}, {"device", device}};
}

Request Request::from_json(const Json& json, const std::string& where) {
  check_schema(json, kRequest, where);
  Request r{get_text(json, "id", where), get_list(json, "command", where), get_list(json, "outputs", where),
            get_word(json, "arch", where), get_name(json, "device", where)};
  for (const std::string& name : r.outputs)
    if (const std::string why = why_no_bundle_name(name); !why.empty())
      throw Error("an output has a bad name", where, why);
  return r;
}

Json Response::to_json() const {
  return {{"schema", kResponse}, {"status", status}, {"text", text}, {"exit", exit}};
}

Response Response::from_json(const Json& json, const std::string& where) {
  check_schema(json, kResponse, where);
  Response r{get_word(json, "status", where), get_text(json, "text", where), get<int>(json, "exit", where)};
  if (r.status != "done" && r.status != "refused" && r.status != "failed")
    throw Error("field 'status' is unknown: " + r.status, where);
  return r;
}

} // namespace deepgen
