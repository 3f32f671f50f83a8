#include "generator/remote/commands.h"

#include "generator/codegen/compile.h"
#include "generator/remote/compile_remote.h"
#include "generator/remote/measure_remote.h"
#include "generator/remote/probe.h"
#include "generator/remote/status.h"
#include "remote/worker.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

void run_remote(const RemoteOptions& o, const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words.front();
  if (command == "compile") return compile_remotely(o, words);
  if (is_measuring(command)) return measure_remotely(o, words);
  throw Error("this command is not done elsewhere: '" + command + "'", "deepgen remote", "",
              "one of: compile, run, playoff, verify, devices");
}

void add_remote(CLI::App& app) {
  struct Options {
    RemoteOptions remote;
    std::vector<std::string> words;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("remote", "have a site's hosts do what an edge of a build does");
  c->add_option("--sites", o->remote.sites, "sites.json")->required();
  c->add_option("--site", o->remote.site, "name of the site")->required();
  c->add_option("--board", o->remote.board, "folder for what `deepgen status` shows");
  c->add_option("--measurer", o->remote.measurer, "`deepgen-measure` here; else the one beside this program");
  c->add_option("command", o->words,
                "behind --: compile of `deepgen`, or run, playoff, verify or devices of `deepgen-measure`")
      ->required();
  c->footer(
      "What the cache has is not asked for again. What a launcher or a host fails at is tried again and\n"
      "then fails; it never becomes a record.\n"
      "Example:\n  deepgen remote --sites sites.json --site h200 -- compile --plan r0/plan.json --slot 0 "
      "--count 4 -o r0/s00.list");
  c->callback([o] { run_remote(o->remote, o->words); });
}

void add_worker(CLI::App& app, int& status, const RunWords& run) {
  auto id = std::make_shared<bool>(false);
  auto arch = std::make_shared<std::string>("cpu");
  CLI::App* c = app.add_subcommand(
      "worker", "compile for another host: one request by standard input, its answer by standard output");
  c->add_flag("--id", *id, "print what this worker is: requests for another one are refused");
  c->add_option("--arch", *arch, "with --id: of the kernels")->capture_default_str();
  c->footer("Example:\n  ssh host /opt/deepgen/bin/deepgen worker --id --arch sm_90a");
  c->callback([id, arch, run, &status] {
    if (*id)
      std::cout << compiler_id(*arch) << "\n";
    else
      status = serve(
          {.version = "deepgen " DEEPGEN_VERSION, .id = compiler_id, .commands = {"compile"}, .run = run});
  });
}

void add_sites(CLI::App& app, int& status) {
  struct Options {
    RemoteOptions remote;
    bool probe = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("sites", "check a sites.json, and start a worker at each site");
  c->add_option("--sites", o->remote.sites, "sites.json")->required();
  c->add_option("--site", o->remote.site, "this site alone");
  c->add_option("--measurer", o->remote.measurer, "`deepgen-measure` here; else the one beside this program");
  c->add_flag("--probe", o->probe, "start a worker for each task, and say on which node and device");
  c->footer("Example:\n  deepgen sites --sites sites.json --probe");
  c->callback([o, &status] { status = show_sites(o->remote, o->probe); });
}

void add_status(CLI::App& app) {
  auto build = std::make_shared<std::string>();
  CLI::App* c = app.add_subcommand("status", "what a build does elsewhere, how far it is, what failed");
  c->add_option("--build", *build, "build folder")->required();
  c->footer("Example:\n  deepgen status --build build");
  c->callback([build] { std::cout << status_text(*build); });
}

} // namespace

void add_remote_commands(CLI::App& app, int& status, const RunWords& run) {
  add_remote(app);
  add_worker(app, status, run);
  add_sites(app, status);
  add_status(app);
}

} // namespace deepgen
