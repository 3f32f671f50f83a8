// bundle
#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/bundle/bundle.h"
#include "generator/cli/cli.h"
#include "generator/cli/library/library_input.h"

#include <CLI/CLI.hpp>
#include <iostream>

namespace deepgen {
namespace {

struct BundleOptions {
  LibraryInput library;
  std::string version = "1.0.0", output;
  std::vector<std::string> headers;
};

void run_bundle(const BundleOptions& o, const CliContext& context) {
  if (context.groups.empty())
    throw Error("no --problem given", "deepgen bundle", "", "see `deepgen bundle --help`");
  LibraryOutput read = read_library(o.library, context.groups);
  BundleInput in{std::move(read.library), o.version, std::move(read.toolchain), {}};
  for (const std::string& path : o.headers) in.headers[file_name(path)] = read_file(path);
  const std::map<std::string, std::string> files = bundle_files(in);
  write_bundle(o.output, files);
  size_t bytes = 0;
  for (const auto& [path, text] : files) bytes += text.size();
  std::cout << "deepgen: " << o.output << ": " << files.size() << " files, " << bytes << " bytes, "
            << in.library.functions.size() << " functions\n";
}

} // namespace

void add_bundle_command(CLI::App& app, CliContext& context) {
  auto o = std::make_shared<BundleOptions>();
  CLI::App* c = app.add_subcommand(
      "bundle", "write a tuned library as plain sources, which any C++17 compiler builds without DeepGen");
  c->add_option("--target", o->library.target, "name of the library")->required();
  c->add_option("--header", o->library.header, "the header's name: <target>.h unless given");
  c->add_option("--version", o->version, "of the library, as its packages have it")->capture_default_str();
  c->add_option("--also", o->headers, "further headers and sources of the library, such as <target>_find.h");
  c->add_option("--locked-by", o->library.lock,
                "lock file: fails unless the kernels are those that it names");
  c->add_option("-o", o->output, "folder: a new or empty one, or that of an earlier bundle")->required();
  c->footer("then, once a function:\n  --problem problem.json [--kernel winner.dgk ...] [--verified "
            "verified.json ...] [--choice choice.json ...] [--vendored ARCH ...]\n\n"
            "Groups are as for `deepgen embed`. `ninja <target>.bundle` calls it for a library of a build.\n"
            "Example:\n  deepgen bundle --target kernels --locked-by deepgen.lock.json -o kernels-1.0 "
            "--problem problem.json --vendored cpu");
  c->callback([o, &context] {
    if (o->library.header.empty()) o->library.header = o->library.target + ".h";
    run_bundle(*o, context);
  });
}

} // namespace deepgen
