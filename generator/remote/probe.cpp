#include "generator/remote/probe.h"

#include "base/files/files.h"
#include "base/kernel/device.h"
#include "generator/codegen/compile.h"
#include "generator/remote/compile_remote.h"
#include "generator/remote/measure_remote.h"
#include "remote/call.h"

#include <iostream>

namespace deepgen {
namespace {

constexpr double kProbeSeconds = 120;

std::string launcher_text(const Launcher& l) {
  if (l.here) return "here";
  std::string words;
  for (const std::string& word : l.words) words += " " + quoted(word);
  return std::to_string(l.jobs) + " at once by" + (words.empty() ? " itself" : words);
}

void show(const Site& site) {
  std::string archs;
  for (const std::string& arch : site.archs) archs += " " + arch;
  std::cout << site.name << ":" << archs << "\n  compile: " << launcher_text(site.compile)
            << (site.compile.here ? "" : ", " + std::to_string(site.batch) + " slots each")
            << "\n  measure: " << launcher_text(site.measure) << "\n";
}

/// By a command that does nothing.
std::string probe_compiler(const Site& site, const std::string& arch) {
  Request request;
  request.arch = arch, request.id = compiler_id(arch);
  request.command = {"compile", "--help"};
  const Answer answer = call({site, Task::compile, request, {}, own_program(), "a probe", "", kProbeSeconds});
  return "node " + answer.where.node;
}

std::string probe_device(const Site& site, const std::string& arch, const std::string& measurer,
                         const std::string& id) {
  Request request;
  request.id = id;
  request.command = {"devices", "--arch", arch, "-o", "device.json"};
  request.outputs = {"device.json"};
  const Answer answer = call({site, Task::measure, request, {}, measurer, "a probe", "", kProbeSeconds});
  const Device device = Device::from_json(parse_json(*answer.files.find("device.json"), "a probe's answer"));
  if (!device.present)
    throw Error("site '" + site.name + "' has no device of " + arch, "node " + answer.where.node, "",
                "correct the site's \"arch\" or \"measure\", or the driver there");
  return "node " + answer.where.node + ", " + device.name;
}

} // namespace

int show_sites(const RemoteOptions& o, bool probe) {
  const Sites sites = Sites::read(o.sites);
  if (!o.site.empty()) sites.find(o.site, o.sites);
  int bad = 0;
  const auto say = [&](const std::string& what, const auto& ask) {
    try {
      std::cout << "  " << what << ": " << ask() << std::endl;
    } catch (const Stopped&) {
      throw;
    } catch (const Error& e) {
      std::cout << "  " << what << ": fails" << std::endl;
      std::cerr << "deepgen: " << e.what() << "\n";
      ++bad;
    }
  };
  for (Site site : sites.sites) {
    if (!o.site.empty() && site.name != o.site) continue;
    show(site);
    if (!probe) continue;
    site.retry_seconds.clear();
    if (!site.compile.here)
      for (const std::string& arch : site.archs)
        say("compile for " + arch, [&] { return probe_compiler(site, arch); });
    const std::string measurer = measurer_here(o);
    if (!site.measure.here)
      for (const std::string& arch : site.archs)
        say("measure " + arch,
            [&] { return probe_device(site, arch, measurer, measure_worker_id(measurer)); });
  }
  return bad ? 1 : 0;
}

} // namespace deepgen
