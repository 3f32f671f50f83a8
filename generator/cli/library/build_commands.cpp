// select, header, embed
#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/cli/library/library_input.h"
#include "generator/embed/embed.h"
#include "generator/lock/select.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

void require_groups(const CliContext& context, const std::string& command) {
  if (context.groups.empty())
    throw Error("no --problem given", "deepgen " + command, "", "see `deepgen " + command + " --help`");
}

struct SelectOptions {
  std::string mode = "auto", lock;
  std::vector<std::string> devices;
};

void run_select(const SelectOptions& o, const CliContext& context) {
  require_groups(context, "select");
  const Mode mode = parse_mode(o.mode);
  std::vector<SelectRequest> requests;
  for (const Group& group : context.groups) {
    SelectRequest r{ProblemFile::read(group.one("--problem")), group.one_or("--arch", "cpu"), {}, {}};
    r.device = mode == Mode::frozen ? generic_device(r.arch) : device_of(o.devices, r.arch);
    group.one("-o"); // before anything is written
    if (mode == Mode::automatic) r.logs = logs_of(group.many("--records"));
    requests.push_back(std::move(r));
  }
  const Lock lock = o.lock.empty() ? Lock() : Lock::read(o.lock);
  const std::string place = o.lock.empty() ? "(no --lock given)" : o.lock;
  const std::vector<Selected> selections = select(mode, lock, place, requests);
  for (size_t i = 0; i < selections.size(); ++i) {
    if (!selections[i].note.empty()) std::cerr << selections[i].note << "\n";
    write_if_changed(context.groups[i].one("-o"), selections[i].choice.serialize());
  }
}

struct HeaderOptions {
  std::string target, header;
  std::vector<std::string> archs;
};

void run_header(const HeaderOptions& o, const CliContext& context) {
  require_groups(context, "header");
  Library library{o.target, file_name(o.header), {}};
  for (const Group& group : context.groups)
    library.functions.push_back(declared(ProblemFile::read(group.one("--problem")), o.archs));
  validate_names(library);
  write_if_changed(o.header, embed_header(library));
}

struct EmbedOptions {
  std::string target, header, source, lock;
};

void run_embed(const EmbedOptions& o, const CliContext& context) {
  require_groups(context, "embed");
  const LibraryOutput read = read_library({o.target, o.header, o.lock}, context.groups);
  write_if_changed(o.source, embed_source(read.library));
}

} // namespace

void add_select_command(CLI::App& app, CliContext& context) {
  auto o = std::make_shared<SelectOptions>();
  CLI::App* c =
      app.add_subcommand("select", "decide which config each problem links: lock, records or default");
  c->add_option("--mode", o->mode, "auto, lock or frozen")->capture_default_str();
  c->add_option(
      "--device", o->devices,
      "device.json of each arch; this host's CPU and generic GPUs if absent; frozen does not look at it");
  c->add_option("--lock", o->lock, "lock file; an absent file is an empty lock");
  c->footer(
      "then, any number of times:\n  --problem problem.json [--arch cpu] [--records FILE ...] -o "
      "choice.json\n\n"
      "auto: the lock, else the records, else the default config. lock: the lock, else the default.\n"
      "frozen: the lock, else an error that lists all missing and stale entries.\n"
      "A lock entry of this very device comes before one of the same arch. Defaults in lock and frozen mode\n"
      "are those of a generic device, so that every host builds the same bytes.\n"
      "Of GPUs, the entries of all devices of the arch are linked.\n"
      "Example:\n  deepgen select --mode lock --device device.json --lock deepgen.lock.json "
      "--problem problem.json --arch cpu -o choice.json");
  c->callback([o, &context] { run_select(*o, context); });
}

void add_header_command(CLI::App& app, CliContext& context) {
  auto o = std::make_shared<HeaderOptions>();
  CLI::App* c =
      app.add_subcommand("header", "write the header of a tuned library; no kernel needs to be there yet");
  c->add_option("--target", o->target, "name of the library")->required();
  c->add_option("--header", o->header, "header to write; left alone when unchanged")->required();
  c->add_option("--arch", o->archs, "archs that the library has kernels for")->required();
  c->footer(
      "then, once a function:\n  --problem problem.json\n\n"
      "Example:\n  deepgen header --target kernels --header kernels.h --arch cpu --problem problem.json");
  c->callback([o, &context] { run_header(*o, context); });
}

void add_embed_command(CLI::App& app, CliContext& context) {
  auto o = std::make_shared<EmbedOptions>();
  CLI::App* c = app.add_subcommand("embed", "write the source of a tuned library");
  c->add_option("--target", o->target, "name of the library")->required();
  c->add_option("--header", o->header, "the library's header, which the source includes")->required();
  c->add_option("--source", o->source, "C++17 source to write; left alone when unchanged")->required();
  c->add_option("--locked-by", o->lock,
                "lock file of a frozen build: fails unless the kernels are those that it names");
  c->footer(
      "then, once a function:\n  --problem problem.json --kernel winner.dgk [--kernel ...] [--verified "
      "verified.json ...] [--choice choice.json ...] [--vendored ARCH ...]\n\n"
      "--vendored: the kernels that lie beside the lock of --locked-by, which names them by hash. No\n"
      "compiler is needed.\n"
      "--choice: of a problem with a fallback, the choice that --kernel was compiled from, which names the\n"
      "vendor's call; --locked-by takes it from the lock.\n"
      "The configs of kernels that neither a search nor `deepgen-measure verify -o` has verified end "
      "with \"(not verified)\".\n"
      "Example:\n  deepgen embed --target kernels --header kernels.h --source kernels.cpp "
      "--problem problem.json --kernel winner.dgk");
  c->callback([o, &context] { run_embed(*o, context); });
}

} // namespace deepgen
