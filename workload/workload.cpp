#include "workload/workload.h"

#include "base/json/json_text.h"
#include "base/text/text.h"
#include "workload/ranges.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <set>

namespace deepgen {
namespace {

constexpr size_t kLongestName = 200, kLongestText = 1000;

bool is_function_name(const std::string& name) {
  const auto good = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && name.size() <= kLongestName && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), good) && name.find("__") == std::string::npos &&
         name.back() != '_';
}

double get_seconds(const Json& json, const std::string& where, double least, double most) {
  const double value = get<double>(json, "seconds", where);
  if (!(value >= least && value <= most))
    throw Error("field 'seconds' is out of range: " + excerpt(json["seconds"]), where, "",
                "a time of one call is above 0 and at most 1e9");
  return value;
}

std::vector<LogPlace> get_places(const Json& json, const std::string& where, size_t logs) {
  const auto pairs = get<std::vector<std::array<int64_t, 2>>>(json, "lines", where);
  std::vector<LogPlace> places;
  for (const auto& [log, line] : pairs) {
    if (log < 0 || size_t(log) >= logs || line < 1 || places.size() >= Tally::most_places)
      throw Error("field 'lines' is out of range: " + excerpt(json["lines"]), where, "",
                  "at most 8 pairs: the number of a log, from 0, and of its line, from 1");
    places.push_back({log, line});
  }
  return places;
}

Json places_json(const std::vector<LogPlace>& places) {
  Json list = Json::array();
  for (const LogPlace& place : places) list.push_back({place.log, place.line});
  return list;
}

WorkloadLog read_log(const Json& json, const std::string& where) {
  WorkloadLog log{get_name(json, "name", where), {}, get_count(json, "lines", where)};
  const Json kinds = get<Json>(json, "kinds", where);
  if (!kinds.is_object() || kinds.size() > 100)
    throw Error("field 'kinds' is no object of few members", where);
  for (const auto& [kind, lines] : kinds.items()) {
    if (const std::string why = why_no_name(kind); !why.empty())
      throw Error("a kind of log is no name", where, why);
    log.kinds.emplace_back(kind, get_count(kinds, kind, where));
  }
  return log;
}

std::vector<WorkloadPoint> read_points(const Json& json, const std::string& where) {
  std::vector<WorkloadPoint> points;
  for (const Json& each : get<Json::array_t>(json, "points", where)) {
    if (!each.is_array() || each.size() != 4 || !is_a<int64_t>(each[0]) || !is_a<int64_t>(each[1]) ||
        !is_a<double>(each[2]) || !each[3].is_boolean() || points.size() >= Workload::most_problems)
      throw Error("field 'points' has what is no point: " + excerpt(each), where, "",
                  "lists of a size, its calls, the seconds of one, and whether a log had them");
    const WorkloadPoint p{each[0].get<int64_t>(), each[1].get<int64_t>(), each[2].get<double>(),
                          each[3].get<bool>()};
    if (p.calls < 1 || p.calls > kMostCalls || !(p.seconds >= 1e-300 && p.seconds <= kMostSeconds))
      throw Error("field 'points' is out of range: " + excerpt(each), where, "",
                  "calls from 1 to 2^50, and a time above 0 and at most 1e9");
    points.push_back(p);
  }
  return points;
}

WorkloadProblem read_problem(const Json& json, const std::string& where, size_t logs) {
  WorkloadProblem p;
  p.name = get<std::string>(json, "name", where);
  if (!is_function_name(p.name))
    throw Error("field 'name' is no name of a function: " + excerpt(json["name"]), where, "",
                "letters, digits and single underscores, a letter first");
  p.problem = Problem::parse(get<std::string>(json, "problem", where));
  p.calls = get_count(json, "calls", where, 1);
  p.seconds = get_seconds(json, where, std::numeric_limits<double>::min(), kMostSeconds);
  p.timed = get<bool>(json, "timed", where);
  p.lines = get_places(json, where, logs);
  if (json.contains("points")) p.points = read_points(json, where);
  if (!p.points.empty()) check_points(p, where), sum_points(p);
  return p;
}

Json points_json(const std::vector<WorkloadPoint>& points) {
  Json list = Json::array();
  for (const WorkloadPoint& p : points) list.push_back({p.value, p.calls, p.seconds, p.timed});
  return list;
}

/// A line of the file; shares of the whole.
Json problem_json(const WorkloadProblem& p, double share, double behind) {
  Json json = {{"name", p.name},           {"problem", p.problem.key()}, {"calls", p.calls},
               {"seconds", p.seconds},     {"timed", p.timed},           {"share", rounded(share)},
               {"behind", rounded(behind)}};
  if (!p.points.empty()) { // for CMake, which cannot count
    const TuneTexts tune = tune_texts(p);
    json["sizes"] = sizes_text(p), json["tune_at"] = tune.at, json["weights"] = tune.weights;
  }
  json["lines"] = places_json(p.lines);
  if (!p.points.empty()) json["points"] = points_json(p.points);
  return json;
}

WorkloadSkipped read_skipped(const Json& json, const std::string& where, size_t logs) {
  WorkloadSkipped s;
  s.why = get_name(json, "why", where, kLongestText),
  s.example = get_name(json, "example", where, kLongestText);
  s.calls = get_count(json, "calls", where);
  s.seconds = get_seconds(json, where, 0, 1e30);
  s.lines = get_places(json, where, logs);
  return s;
}

const Json& list_of(const Json& json, const char* key, size_t most, const std::string& where) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array() || found->size() > most)
    throw Error(std::string("field '") + key + "' is missing, or no list of at most " + std::to_string(most),
                where);
  return *found;
}

std::string lines_of(const std::vector<Json>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ",\n" : "\n") + dump_json(list[i]);
  return text + (list.empty() ? "]" : "\n]");
}

/// One line, for any bytes; of what it has returned it changes nothing.
std::string one_line(const std::string& text) {
  std::string result = visible(text);
  for (char& c : result)
    if (c == '\n' || c == '\t') c = ' ';
  if (result.size() > kLongestText) result = visible(result.substr(0, kLongestText / 2));
  return result;
}

} // namespace

double rounded(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

std::string function_name(const Problem& problem) {
  std::string name;
  if (const Gemm* p = std::get_if<Gemm>(&problem.which())) {
    const auto size = [&](Size s) {
      const std::optional<int64_t> least = p->least[size_t(s)];
      return (least ? std::to_string(*least) + "to" : "") + std::to_string(p->sizes()[s]);
    };
    name = "m" + size(Size::m) + "_n" + size(Size::n) + "_k" + size(Size::k);
    if (p->batch != 1) name += "_b" + size(Size::batch);
    name += "_" + to_string(p->a);
    if (p->b != p->a) name += "_" + to_string(p->b);
    if (p->d != p->a && !(p->a == Type::tf32)) name += "_" + to_string(p->d);
    name += "_" + to_string(p->layout);
    if (p->groups) name += "_g" + std::to_string(p->groups);
    if (p->gate) name += "_gate_" + to_string(*p->gate);
    for (EpilogueOp op : p->epilogue) name += "_" + to_string(op);
    return name;
  }
  name = problem.op();
  for (const auto& [field, value] : problem.fields()) name += "_" + field + value;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

double Workload::skipped_seconds() const {
  double sum = 0;
  for (const WorkloadSkipped& s : skipped) sum += s.seconds;
  return sum;
}

double Workload::seconds() const {
  double sum = below.seconds + skipped_seconds();
  for (const WorkloadProblem& p : problems) sum += p.weight();
  return sum;
}

void Workload::arrange() {
  std::vector<std::pair<std::string, WorkloadProblem>> keyed;
  for (WorkloadProblem& p : problems) {
    std::string key = p.problem.key();
    keyed.emplace_back(std::move(key), std::move(p));
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
    const double x = a.second.weight(), y = b.second.weight();
    return x != y ? x > y : a.first < b.first;
  });
  problems.clear();
  for (auto& [key, p] : keyed) problems.push_back(std::move(p));
  for (WorkloadSkipped& s : skipped) s.why = one_line(s.why), s.example = one_line(s.example);
  std::sort(skipped.begin(), skipped.end(), [](const WorkloadSkipped& a, const WorkloadSkipped& b) {
    return std::tie(b.seconds, b.calls, a.why, a.example, a.lines) <
           std::tie(a.seconds, a.calls, b.why, b.example, b.lines);
  });
}

std::vector<WorkloadProblem> Workload::drop_below(double share) {
  const double least = share * seconds();
  std::vector<WorkloadProblem> kept, dropped;
  for (WorkloadProblem& p : problems) (p.weight() < least ? dropped : kept).push_back(std::move(p));
  for (const WorkloadProblem& p : dropped)
    ++below.problems, below.calls = std::min(below.calls + p.calls, kMostCalls), below.seconds += p.weight();
  below.seconds = rounded(below.seconds);
  problems = std::move(kept);
  return dropped;
}

Workload Workload::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, schema, where);
  Workload w;
  for (const Json& log : list_of(json, "logs", 10000, where)) w.logs.push_back(read_log(log, where));
  const Json below = get<Json>(json, "below", where);
  w.below.problems = get_count(below, "problems", where), w.below.calls = get_count(below, "calls", where);
  w.below.seconds = get_seconds(below, where, 0, 1e30);
  std::set<std::string> names, keys;
  for (const Json& each : list_of(json, "problems", most_problems, where)) {
    w.problems.push_back(read_problem(each, where, w.logs.size()));
    const WorkloadProblem& p = w.problems.back();
    if (!names.insert(p.name).second || !keys.insert(p.problem.key()).second)
      throw Error("a name or a problem comes twice", where, p.name + ": " + p.problem.key(),
                  "delete one of the lines");
  }
  for (const Json& each : list_of(json, "skipped", Tally::most_reasons + 1, where))
    w.skipped.push_back(read_skipped(each, where, w.logs.size()));
  w.arrange();
  return w;
}

std::string Workload::serialize() const {
  const double all = std::max(seconds(), std::numeric_limits<double>::min());
  std::vector<Json> log_lines, problem_lines, skipped_lines;
  for (const WorkloadLog& log : logs) {
    Json kinds = Json::object();
    for (const auto& [kind, lines] : log.kinds) kinds[kind] = lines;
    log_lines.push_back({{"name", log.name}, {"lines", log.lines}, {"kinds", kinds}});
  }
  double rest = 0;
  for (const WorkloadProblem& p : problems) rest += p.weight();
  const double served = rest;
  for (const WorkloadProblem& p : problems) {
    rest -= p.weight();
    problem_lines.push_back(problem_json(p, p.weight() / all, std::max(rest, 0.0) / all));
  }
  for (const WorkloadSkipped& s : skipped)
    skipped_lines.push_back({{"why", s.why},
                             {"calls", s.calls},
                             {"seconds", s.seconds},
                             {"share", rounded(s.seconds / all)},
                             {"example", s.example},
                             {"lines", places_json(s.lines)}});
  const Json below_json = {{"problems", below.problems}, {"calls", below.calls}, {"seconds", below.seconds}};
  const Json shares = {{"problems", rounded(served / all)},
                       {"below", rounded(below.seconds / all)},
                       {"skipped", rounded(skipped_seconds() / all)}};
  return "{\n\"schema\":\"" + std::string(schema) + "\",\n\"logs\":" + lines_of(log_lines) +
         ",\n\"shares\":" + dump_json(shares) + ",\n\"below\":" + dump_json(below_json) +
         ",\n\"problems\":" + lines_of(problem_lines) + ",\n\"skipped\":" + lines_of(skipped_lines) + "\n}\n";
}

} // namespace deepgen
