#include "generator/remote/measure_remote.h"

#include "base/files/files.h"
#include "base/files/patience.h"
#include "base/kernel/device.h"
#include "base/search/finalists.h"
#include "base/search/names.h"
#include "generator/remote/command_line.h"
#include "generator/remote/known_rounds.h"
#include "remote/call.h"
#include "remote/launched.h"

#include <filesystem>
#include <iostream>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

using Kinds = std::map<std::string, WordKind>;

/// Until an answer: the time budget several times over, and half an hour for a device that is held by others.
constexpr double kMeasureSeconds = 20, kBudgets = 10, kWaitSeconds = 2400;
constexpr const char* kAround = "around.json";
constexpr double kIdSeconds = 30;

const Kinds kMeasuring = {
    {"--seconds", WordKind::text}, {"--timeout", WordKind::text}, {"--most", WordKind::text},
    {"--devices", WordKind::text}, {"--seed", WordKind::text},    {"--caches", WordKind::text},
    {"--warmup", WordKind::text},  {"--regime", WordKind::text},  {"--cache", WordKind::dropped},
    {"--label", WordKind::text},   {"--device", WordKind::file},  {"-o", WordKind::output}};

Kinds with(Kinds kinds, const Kinds& more) {
  kinds.insert(more.begin(), more.end());
  return kinds;
}

const std::map<std::string, Kinds>& commands() {
  static const std::map<std::string, Kinds> all = {
      {"run", with(kMeasuring, {{"--plan", WordKind::file},
                                {"--kernels", WordKind::kernels},
                                {"--slots", WordKind::text},
                                {"--anchor", WordKind::file},
                                {"--records", WordKind::file}})},
      {"playoff", with(kMeasuring, {{"--records", WordKind::file},
                                    {"--awkward", WordKind::file},
                                    {"--searches", WordKind::dropped},
                                    {"--samples", WordKind::text},
                                    {"--no-vendor", WordKind::flag},
                                    {"--extra", WordKind::text}})},
      {"verify", with(kMeasuring, {{"", WordKind::file},
                                   {"--unproven", WordKind::flag},
                                   {"--any-host", WordKind::flag},
                                   {"--no-cache", WordKind::flag}})},
      {"devices", {{"--arch", WordKind::text}, {"-o", WordKind::output}}}};
  return all;
}

/// Kernels of the candidates that are timed again.
std::vector<std::string> finalist_kernels(const std::vector<std::string>& logs) {
  std::vector<std::string> paths;
  for (const LoggedRecord& r : finalists_of(read_records(logs)))
    paths.push_back((fs::path(r.log).parent_path() / r.record.kernel_file).lexically_normal().string());
  return paths;
}

std::vector<std::string> files_of(const CommandLine& line) {
  std::vector<std::string> paths = line.files();
  const auto add = [&](const std::vector<std::string>& more) {
    paths.insert(paths.end(), more.begin(), more.end());
  };
  if (line.command() == "playoff" || line.has("--anchor")) add(finalist_kernels(line.many("--records")));
  add(kernels_of_round(line));
  return paths;
}

/// Another device of the same model is no reason to measure again.
bool same_model(const std::string& path, const std::string& text) {
  if (!file_exists(path)) return false;
  try {
    const Device old = Device::read(path);
    Device device = Device::from_json(parse_json(text, path));
    if (device.is_cpu()) return old == device;
    device.uuid = old.uuid;
    return old.present && old == device;
  } catch (const Error&) {
    return false;
  }
}

/// A site without a device of its arch would tune for nothing.
void check_present(const std::string& text, const RemoteOptions& o, const Answer& answer,
                   const std::string& arch) {
  const Device device = Device::from_json(parse_json(text, "device of site '" + o.site + "'"));
  if (device.arch != arch || !device.present)
    throw Error("site '" + o.site + "' has no device of its arch", "node " + answer.where.node,
                "asked for is " + arch +
                    (device.present ? "; there is " + device.arch : "; the driver shows none"),
                "correct the site's \"arch\" or \"measure\" (does it ask for a GPU?), or the driver there");
}

} // namespace

bool is_measuring(const std::string& command) { return commands().count(command) != 0; }

std::string measurer_here(const RemoteOptions& o) {
  return o.measurer.empty() ? fs::path(own_program()).replace_filename("deepgen-measure").string()
                            : o.measurer;
}

std::string measure_worker_id(const std::string& measurer) {
  Launched program({measurer, "worker", "--id"});
  Patience patience(kIdSeconds);
  std::string nothing;
  while (program.wait(nothing) && patience.left() > 0) {
  }
  const std::string ended = program.end(1);
  const size_t line = program.output.find('\n');
  if (!ended.empty() || line == std::string::npos)
    throw Error("cannot ask deepgen-measure which one it is", measurer,
                ended.empty() ? "it says nothing" : ended + ": " + program.errors,
                "install it beside deepgen, or correct -DDEEPGEN_MEASURE_EXECUTABLE");
  return program.output.substr(0, line);
}

void measure_remotely(const RemoteOptions& o, const std::vector<std::string>& words) {
  const CommandLine line(words, commands().at(words.front()));
  const Sites sites = Sites::read(o.sites);
  const Site& site = sites.find(o.site, o.sites);
  const std::string output = line.one("-o"), measurer = measurer_here(o);
  Request request;
  request.id = measure_worker_id(measurer);
  KnownRounds known(line, request.id);
  if (const auto log = known.find()) {
    write_if_changed(output, *log);
    return;
  }
  request.command = line.words_in_bundle();
  request.outputs = {CommandLine::name_in_bundle(output)};
  if (line.command() == "devices") {
    request.command.insert(request.command.end(), {"--around", kAround});
    request.outputs.push_back(kAround);
  }
  if (line.has("--device")) {
    const Device device = Device::read(line.one("--device"));
    request.arch = device.arch, request.device = device.name;
  }
  const double seconds = kWaitSeconds + kBudgets * line.number_or("--seconds", kMeasureSeconds);
  RemoteCall asked{site,     Task::measure, request, bundle_files(files_of(line)),
                   measurer, output,        o.board, seconds};
  asked.decides = line.command() == "verify";
  const Answer answer = call(asked);
  std::cerr << answer.text;
  if (answer.failed)
    throw Error("the command failed on node " + answer.where.node + " of site '" + o.site + "'", output,
                "it said what is above");
  const std::string& bytes = *answer.files.find(request.outputs.front());
  if (line.command() == "devices") {
    check_present(bytes, o, answer, line.one_or("--arch", "cpu"));
    write_if_changed(surroundings_path(output), *answer.files.find(kAround));
    if (same_model(output, bytes)) return;
  }
  known.keep(bytes);
  write_if_changed(output, bytes);
}

} // namespace deepgen
