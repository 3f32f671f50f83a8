#include "base/files/cache.h"
#include "base/files/files.h"
#include "base/files/lock_folder.h"
#include "base/text/error.h"
#include "base/text/failure.h"
#include "base/text/visible_output.h"
#include "generator/cli/cli.h"
#include "generator/cli/try_command.h"
#include "generator/codegen/compile.h"
#include "generator/remote/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

namespace deepgen {
namespace {

/// --codegen-id [-o FILE]: the file is a dependency of every kernel, so it must not change without need. The
/// one edge of a build tree that tells when there is no cache, or when somebody else has the place of its
/// locks: the others, many at once, go on without a word.
void print_codegen_id(const std::string& output, const std::string& folder) {
  const std::string id = codegen_id() + "\n";
  if (output.empty()) {
    std::cout << id;
    return;
  }
  Cache cache(CacheSettings::from_environment(folder));
  if (!cache.why_refused().empty())
    std::cerr << "deepgen: the cache " << cache.settings().folder << " is not used: " << cache.why_refused()
              << "\n";
  if (const std::string why = cache.why_no_store(); !why.empty())
    std::cerr << "deepgen: nothing new is kept in the cache " << cache.settings().folder << ": " << why
              << "\n";
  if (const LockFolder locks = find_lock_folder(); !locks.refused.empty())
    std::cerr << "deepgen: the locks of builds lie in " << locks.path << ", not in\n"
              << locks.refused << "\n";
  write_if_changed(output, id);
}

int run_and_tell(const std::vector<std::string>& arguments, int host_fault);

int run(std::vector<std::string> arguments) {
  CliContext context;
  context.groups = take_groups(arguments);
  CLI::App app("deepgen: GEMM kernels, tuned inside a CMake build", "deepgen");
  app.footer("Example: deepgen space count --problem "
             "\"gemm m=512 n=512 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4\"\n"
             "Every command explains itself: deepgen plan --help");
  bool id = false, version = false;
  std::string output, cache;
  app.add_flag("--codegen-id", id,
               "print what identifies the code generator; kernels are rebuilt when it changes");
  app.add_flag("--version", version, "print the versions of deepgen and LLVM");
  app.add_option("-o", output, "with --codegen-id: file to write, left alone when unchanged");
  app.add_option("--cache", cache,
                 "with --codegen-id -o: folder of the cache, to say when it cannot be written");
  app.require_subcommand(0, 1);
  for (auto add : {add_plan_command,        add_compile_command, add_select_command, add_header_command,
                   add_embed_command,       add_bundle_command,  add_lock_command,   add_report_command,
                   add_results_command,     add_export_command,  add_import_command, add_space_command,
                   add_top_command,         add_try_command,     add_dump_command,   add_doctor_command,
                   add_check_ptxas_command, add_cache_command,   add_sweep_command,  add_replay_command,
                   add_mlir_command})
    add(app, context);
  add_remote_commands(app, context.status, [](const std::vector<std::string>& words) {
    return run_and_tell(words, kHostFaultStatus);
  });
  std::reverse(arguments.begin(), arguments.end()); // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e); // --help
    std::string used;
    for (CLI::App* at = &app; !at->get_subcommands().empty();) {
      at = at->get_subcommands().front();
      used += " " + at->get_name();
    }
    throw Error(e.what(), "deepgen" + used, "", "see `deepgen" + used + " --help`");
  }
  if (version) std::cout << toolchain() << "\n";
  if (id) print_codegen_id(output, cache);
  if (!version && !id && app.get_subcommands().empty()) std::cout << app.help();
  return context.status;
}

int run_and_tell(const std::vector<std::string>& arguments, int host_fault) {
  try {
    return run(arguments);
  } catch (const HostFault& e) {
    std::cerr << "deepgen: " << describe(e) << "\n";
    return host_fault;
  } catch (const std::exception& e) {
    std::cerr << "deepgen: " << describe(e) << "\n";
    return 1;
  }
}

} // namespace

int deepgen_main(int argc, char** argv) {
  const VisibleOutput output;
  return run_and_tell({argv + 1, argv + argc}, 1);
}

} // namespace deepgen
