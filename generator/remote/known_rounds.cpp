#include "generator/remote/known_rounds.h"

#include "base/files/files.h"
#include "base/kernel/device.h"
#include "base/search/names.h"
#include "base/search/record.h"
#include "base/text/sha256.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr int64_t kLongestFile = int64_t(256) << 20;
constexpr double kMostOfRound = 1e6;

/// What a run of the same kernels would say again.
const std::set<std::string> kLasting = {"ok",        "wrong",         "out_of_bounds", "varies",
                                        "duplicate", "compile_error", "unsupported",   "dropped"};

std::string hash_of(const std::string& path) { return sha256_hex(read_file(path, kLongestFile)); }

/// Any device of the model will do.
std::string model_of(const std::string& path) {
  Json json = Device::read(path).to_json();
  json.erase("uuid");
  return dump_json(json);
}

void mark(RecordLog& log, bool cached) {
  for (auto* records : {&log.records, &log.again})
    for (Record& r : *records) r.cached = cached && kLasting.count(r.status);
}

/// What later rounds see of an earlier one: not when it was, nor whether it came from a cache.
std::string results_of(const std::string& path) {
  RecordLog log = RecordLog::read(path);
  log.environment = Json::object();
  mark(log, false);
  return sha256_hex(log.serialize());
}

std::string key_of(const CommandLine& line, const std::string& measured_by) {
  const std::string device = line.one("--device"), around = surroundings_path(device);
  if (!file_exists(around)) return ""; // of a device that was found by another DeepGen
  std::string key = "a round that a site has measured\nmeasured by " + measured_by + "\n";
  for (const std::string& word : line.plain_words({"--label"})) key += word + "\n";
  key += "device " + model_of(device) + "\nsurroundings " + read_file(around) + "plan " +
         hash_of(line.one("--plan")) + "\n";
  for (const std::string& path : kernels_of_round(line)) key += "kernel " + hash_of(path) + "\n";
  if (line.has("--anchor")) key += "anchor " + hash_of(line.one("--anchor")) + "\n";
  for (const std::string& path : line.many("--records")) key += "earlier " + results_of(path) + "\n";
  return key;
}

bool is_lasting(const RecordLog& log) {
  const Json& e = log.environment;
  return log.stable && !log.torn && !e.contains("cut") && !e.contains("unwatched") &&
         e.value("other_processes", int64_t(0)) == 0 &&
         std::all_of(log.records.begin(), log.records.end(),
                     [](const Record& r) { return kLasting.count(r.status) != 0; });
}

} // namespace

std::vector<std::string> kernels_of_round(const CommandLine& line) {
  std::vector<std::string> paths;
  if (!line.has("--kernels")) return paths;
  const auto slots = int64_t(std::min(line.number_or("--slots", 0), kMostOfRound));
  for (int64_t slot = 0; slot < slots; ++slot)
    paths.push_back((fs::path(line.one("--kernels")) / slot_file_name(slot)).string());
  return paths;
}

std::string surroundings_path(const std::string& path) {
  return fs::path(path).replace_extension(".around.json").string();
}

KnownRounds::KnownRounds(const CommandLine& line, const std::string& measured_by)
    : cache_(CacheSettings::from_environment(line.one_or("--cache", ""))) {
  if (line.command() == "run" && cache_.on()) key_ = key_of(line, measured_by);
}

std::optional<std::string> KnownRounds::find() {
  if (key_.empty()) return std::nullopt;
  const std::optional<std::string> text = cache_.find(CacheKind::time, key_);
  if (!text) return std::nullopt;
  try {
    RecordLog log = RecordLog::parse(*text, "the cache's entry");
    mark(log, true);
    return log.serialize();
  } catch (const Error&) { // damaged: it is measured again
    return std::nullopt;
  }
}

void KnownRounds::keep(const std::string& text) {
  if (key_.empty()) return;
  if (is_lasting(RecordLog::parse(text, "a worker's log"))) cache_.store(CacheKind::time, key_, text);
}

} // namespace deepgen
