// mlir, and import of modules
#include "generator/cli/mlir_commands.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/identifier.h"
#include "base/text/sha256.h"
#include "generator/cli/cli.h"
#include "generator/cli/isolate.h"
#include "generator/mlir_in/module.h"
#include "workload/mlir/memref_source.h"
#include "workload/mlir/scheduler.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

namespace deepgen {
namespace {

constexpr double kMostSeconds = 120;

struct MlirOptions {
  std::string manifest, module, calls, shim, ns, header;
};

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

/// In a process of its own: a text that MLIR's reader does not survive is an error like others.
std::string isolated(const std::string& module, const std::function<std::string()>& work) {
  const Isolated done = run_isolated(work, kMostSeconds);
  if (!done.host.empty()) throw HostFault(done.host);
  if (done.threw) throw Error(done.errors);
  if (!done.failure.empty())
    throw Error("MLIR's reader does not survive this module", module, "it " + done.failure,
                "a module that mlir-opt of LLVM 22 reads; please report one that it does");
  return done.result;
}

std::string table(const tensors::Manifest& m) {
  std::string text;
  for (const tensors::Entry& e : m.functions) {
    text += e.name + ": " + e.problem.key() + "\n  line " + std::to_string(e.line) + " of " + m.source +
            ", " + (e.whole ? "all of" : "in") + " @" + e.function;
    if (e.calls > 1) text += ", called " + std::to_string(e.calls) + " times";
    for (const auto& [name, value] : e.arguments) {
      char number[40];
      std::snprintf(number, sizeof number, "%.9g", value);
      text += ", " + name + " " + number;
    }
    text += "\n";
  }
  for (const tensors::Left& l : m.left)
    text += "left in the module: " + l.operation + " on line " + std::to_string(l.line) + ": " + l.why + "\n";
  return text;
}

void run_mlir(const MlirOptions& o) {
  const tensors::Manifest manifest = tensors::Manifest::read(o.manifest);
  if (o.ns.empty() || !why_no_identifier(o.ns).empty())
    throw Error("the namespace is no identifier", o.ns, why_no_identifier(o.ns), "pass that of the library");
  if (o.calls.empty() && o.shim.empty())
    throw Error("nothing to write", "deepgen mlir", "", "pass --calls or --shim");
  if (!o.shim.empty()) write_if_changed(o.shim, tensors::memref_source(manifest, o.ns, o.header));
  if (o.calls.empty()) return;
  const std::string text = read_file(o.module);
  if (sha256_hex(text) != manifest.sha256)
    throw Error("the module is not the one of the manifest", o.module,
                "its SHA-256 is another than in " + o.manifest,
                "run `deepgen import " + o.module + " -o " + o.manifest + "` again");
  write_if_changed(o.calls, isolated(o.module, [&] {
                     return tensors::module_with_calls(text, manifest.source, manifest, o.ns);
                   }));
}

} // namespace

bool is_mlir_file(const std::string& path) { return std::filesystem::path(path).extension() == ".mlir"; }

bool is_scheduler_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".cfg" || extension == ".ini";
}

void import_scheduler(const std::string& file, MlirImport o, const std::string& search) {
  const tensors::Scheduler scheduler = tensors::Scheduler::parse(read_file(file), file);
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / scheduler.input;
  o.module = beside.lexically_normal();
  import_mlir(o);
  std::vector<Gemm> problems;
  for (const tensors::Entry& e : tensors::Manifest::read(o.output).functions) problems.push_back(e.problem);
  const tensors::ScheduledSearch made = tensors::search_of(scheduler, problems);
  const std::string path =
      !search.empty() ? search : (std::filesystem::path(file).replace_extension(".search.json")).string();
  const std::string text = made.options.serialize();
  SearchOptions::parse(text, path); // what is written can be read
  write_if_changed(path, text);
  std::cout << "search file " << path << ":\n";
  for (const std::string& note : made.notes) std::cout << "  " << note << "\n";
  const std::string target = std::filesystem::path(scheduler.input).stem().string();
  std::cout << "In CMake: deepgen_add_mlir(" << target << " FILE " << o.module << " MANIFEST " << o.output
            << " SEARCH_FILE " << path << ")\n";
  if (!scheduler.output.empty())
    std::cout << "After `ninja " << target << ".tune`: deepgen report --build . --dispatches --csv "
              << scheduler.output << "\n";
}

void import_mlir(const MlirImport& o) {
  const std::string text = read_file(o.module), file = name_of(o.module);
  // Manifest, a zero byte, and notes.
  const std::string result = isolated(o.module, [&] {
    const tensors::Analysis analysis = tensors::analyse_module(text, file, o.leave);
    std::string all = analysis.manifest.serialize() + '\0';
    for (const std::string& note : analysis.notes) all += note + "\n";
    return all;
  });
  const size_t end = result.find('\0');
  const std::string manifest_text = result.substr(0, end);
  const tensors::Manifest manifest =
      tensors::Manifest::parse(manifest_text, o.output); // what is written can be read
  std::cout << table(manifest) << result.substr(std::min(end, result.size() - 1) + 1);
  if (manifest.functions.empty())
    throw Error("the module has no matrix product", o.module,
                "nothing in it is one of linalg's contractions on tensors",
                "lower it to linalg.matmul, linalg.batch_matmul, linalg.contract or linalg.generic first");
  write_if_changed(o.output, manifest_text);
}

void add_mlir_command(CLI::App& app, CliContext&) {
  auto o = std::make_shared<MlirOptions>();
  CLI::App* c = app.add_subcommand(
      "mlir", "what a library for a module of MLIR needs beside its functions; the build calls it");
  c->add_option("--manifest", o->manifest, "deepgen.mlir/1, as `deepgen import` writes it")->required();
  c->add_option("--namespace", o->ns, "of the library")->required();
  c->add_option("--shim", o->shim, "C++ source to write: the functions over memrefs");
  c->add_option("--header", o->header, "with --shim: the library's header, as it is included");
  c->add_option("--module", o->module, "with --calls: the module of the manifest");
  c->add_option("--calls", o->calls, "module to write: with a call for each product");
  c->footer("Example:\n  deepgen mlir --manifest x.mlir.json --namespace kernels --module x.mlir --calls "
            "x.calls.mlir");
  c->callback([o] { run_mlir(*o); });
}

} // namespace deepgen
