#include "remote/sites.h"

#include "base/files/files.h"
#include "base/kernel/device.h"
#include "base/text/text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace deepgen {
namespace {

constexpr const char* kSchema = "deepgen.sites/1";
constexpr int64_t kMostJobs = 4096, kMostBatch = 64;
constexpr size_t kMostSites = 64, kMostLauncherWords = 100, kMostTries = 20;
constexpr double kMostOfALimit = 30 * 86400.0;
constexpr const char* kNodesWord = "{nodes}";

const std::set<std::string> kFields = {"name",          "arch",        "compile",         "compile_jobs",
                                       "batch",         "measure",     "measure_jobs",    "send",
                                       "worker",        "measurer",    "leave_out",       "shell",
                                       "start_seconds", "run_seconds", "silence_seconds", "retry_seconds"};

/// One site's object, and where it is for messages.
struct Reader {
  const Json& json;
  std::string file, site;

  [[noreturn]] void refuse(const std::string& field, const std::string& why,
                           const std::string& allowed) const {
    const Json value = json.is_object() && json.contains(field) ? json[field] : Json();
    throw Error("site '" + site + "': field '" + field + "' " + why,
                file + (value.is_null() ? "" : ": " + excerpt(value)), "", "allowed: " + allowed);
  }
  bool has(const std::string& field) const { return json.contains(field); }

  std::vector<std::string> words(const std::string& field, size_t most) const {
    const Json& value = json[field];
    const std::string allowed = "a list of words without control characters";
    if (!is_a<std::vector<std::string>>(value)) refuse(field, "is no list of words", allowed);
    auto list = value.get<std::vector<std::string>>();
    if (list.size() > most) refuse(field, "has too many words", "at most " + std::to_string(most));
    for (const std::string& word : list)
      if (word.empty() || !why_no_name(word, 1000).empty()) refuse(field, "has a bad word", allowed);
    return list;
  }
  std::string text(const std::string& field, const std::string& otherwise) const {
    if (!has(field)) return otherwise;
    if (!json[field].is_string() || json[field].get<std::string>().empty() ||
        !why_no_name(json[field].get<std::string>(), 1000).empty())
      refuse(field, "is no text without control characters", "such a text");
    return json[field].get<std::string>();
  }
  bool flag(const std::string& field) const {
    if (has(field) && !json[field].is_boolean()) refuse(field, "is neither true nor false", "true, false");
    return has(field) && json[field].get<bool>();
  }
  int64_t count(const std::string& field, int64_t otherwise, int64_t most) const {
    if (!has(field)) return otherwise;
    if (!is_a<int64_t>(json[field]) || json[field].get<int64_t>() < 1 || json[field].get<int64_t>() > most)
      refuse(field, "is no whole number in range", "1 to " + std::to_string(most));
    return json[field].get<int64_t>();
  }
  double check_seconds(const std::string& field, const Json& value) const {
    const double seconds = value.is_number() ? value.get<double>() : -1;
    if (!(seconds >= 0 && seconds <= kMostOfALimit))
      refuse(field, "is no number of seconds", "0 to " + std::to_string(int64_t(kMostOfALimit)));
    return seconds;
  }
  double seconds(const std::string& field, double otherwise) const {
    return has(field) ? check_seconds(field, json[field]) : otherwise;
  }
};

/// A site's own name may be what is wrong.
std::string name_for_messages(const Json& json, size_t index) {
  if (json.is_object() && json.contains("name") && json["name"].is_string())
    return visible(json["name"].get<std::string>().substr(0, 80));
  return "number " + std::to_string(index + 1);
}

Launcher launcher_of(const Reader& r, const std::string& field) {
  Launcher l;
  l.here = !r.has(field);
  if (!l.here) l.words = r.words(field, kMostLauncherWords);
  l.jobs = r.count(field + "_jobs", 1, kMostJobs);
  if (l.here && r.has(field + "_jobs"))
    r.refuse(field + "_jobs", "is there without '" + field + "'", "both, or neither");
  return l;
}

std::vector<std::string> archs_of(const Reader& r) {
  const std::string allowed = "an arch such as \"sm_90a\", or a list of archs";
  if (!r.has("arch")) r.refuse("arch", "is missing", allowed);
  std::vector<std::string> archs;
  if (r.json["arch"].is_string())
    archs = {r.json["arch"].get<std::string>()};
  else
    archs = r.words("arch", 32);
  for (const std::string& arch : archs)
    if (!is_word(arch) || (arch != "cpu" && !is_gpu(arch))) r.refuse("arch", "has what is no arch", allowed);
  if (archs.empty() || std::set<std::string>(archs.begin(), archs.end()).size() != archs.size())
    r.refuse("arch", "is empty or has one twice", allowed);
  return archs;
}

/// Paths of the programs, and how they get there.
void read_programs(const Reader& r, Site& site) {
  site.send = r.flag("send");
  site.shell = r.flag("shell");
  const bool needs_compiler = !site.compile.here && !site.send,
             needs_any = needs_compiler || !site.measure.here;
  site.worker = r.text("worker", "");
  site.measurer = r.text("measurer", "");
  if (site.send && (r.has("worker") || r.has("measurer")))
    r.refuse(r.has("worker") ? "worker" : "measurer", "is there beside 'send'", "one of them");
  if (site.measurer.empty() && !site.worker.empty())
    site.measurer = std::filesystem::path(site.worker).replace_filename("deepgen-measure").string();
  if (!site.send && ((needs_compiler && site.worker.empty()) || (needs_any && site.measurer.empty())))
    r.refuse("worker", "is missing", "the path of `deepgen` there, or \"send\": true");
}

Site site_of(const Json& json, const std::string& file, size_t index) {
  const Reader r{json, file, name_for_messages(json, index)};
  if (!json.is_object()) throw Error("site " + r.site + " is no object", file + ": " + excerpt(json));
  for (const auto& [key, value] : json.items())
    if (!kFields.count(key)) {
      std::string all;
      for (const std::string& field : kFields) all += (all.empty() ? "" : ", ") + field;
      r.refuse(key, "is unknown", all);
    }
  Site site;
  site.name = r.text("name", "");
  if (!is_word(site.name) || site.name.find_first_of("+.") != std::string::npos)
    r.refuse("name", site.name.empty() ? "is missing" : "is no name", "letters, digits, _ and -");
  site.archs = archs_of(r);
  site.compile = launcher_of(r, "compile");
  site.measure = launcher_of(r, "measure");
  if (site.compile.here && site.measure.here)
    r.refuse("measure", "is missing, and so is 'compile'", "one of them, or both; [] starts workers here");
  site.batch = r.count("batch", site.batch, kMostBatch);
  read_programs(r, site);
  site.leave_out = r.text("leave_out", "");
  if (!site.leave_out.empty() && site.leave_out.find(kNodesWord) == std::string::npos)
    r.refuse("leave_out", "lacks {nodes}", "such as \"--exclude={nodes}\"");
  site.start_seconds = r.seconds("start_seconds", site.start_seconds);
  site.run_seconds = r.seconds("run_seconds", site.run_seconds);
  site.silence_seconds = r.seconds("silence_seconds", site.silence_seconds);
  if (r.has("retry_seconds")) {
    const Json& list = json["retry_seconds"];
    if (!list.is_array() || list.size() > kMostTries)
      r.refuse("retry_seconds", "is no list",
               "at most " + std::to_string(kMostTries) + " numbers of seconds");
    site.retry_seconds.clear();
    for (const Json& item : list) site.retry_seconds.push_back(r.check_seconds("retry_seconds", item));
  }
  return site;
}

} // namespace

const char* to_string(Task task) { return task == Task::compile ? "compile" : "measure"; }

Sites Sites::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kSchema, where);
  const auto list = get<Json::array_t>(json, "sites", where);
  if (list.empty() || list.size() > kMostSites)
    throw Error("field 'sites' has no site, or too many", where, "", "1 to " + std::to_string(kMostSites));
  Sites sites;
  for (size_t i = 0; i < list.size(); ++i) {
    Site site = site_of(list[i], where, i);
    for (const Site& other : sites.sites)
      if (other.name == site.name)
        throw Error("site '" + site.name + "': field 'name' is that of another site", where, "",
                    "give each site a name of its own");
    sites.sites.push_back(std::move(site));
  }
  return sites;
}

Sites Sites::read(const std::string& path) { return parse(read_file(path), path); }

const Site& Sites::find(const std::string& name, const std::string& where) const {
  const auto found = std::find_if(sites.begin(), sites.end(), [&](const Site& s) { return s.name == name; });
  if (found == sites.end())
    throw Error("there is no site '" + name + "'", where, "", "configure the build again, or correct --site");
  return *found;
}

} // namespace deepgen
