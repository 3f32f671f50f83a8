// The command line of `deepgen`: each add_ function declares one group of commands; deepgen_main runs one of
// them.
#pragma once

#include "generator/cli/groups.h"

namespace CLI {
class App;
}

namespace deepgen {

/// Runs the tool: 0 on success; errors go to stderr as "deepgen: ..." and give 1. A library function, so that
/// a test executable can register a template of its own and then be the tool.
int deepgen_main(int argc, char** argv);

/// What commands share while one of them runs.
struct CliContext {
  std::vector<Group> groups; ///< the repeated "--problem ..." groups of select, embed and lock
  int status = 0;            ///< exit status of a command that completed
};

void add_plan_command(CLI::App&, CliContext&);
void add_sweep_command(CLI::App&, CliContext&);
void add_replay_command(CLI::App&, CliContext&);
void add_report_command(CLI::App&, CliContext&);
void add_results_command(CLI::App&, CliContext&);
void add_export_command(CLI::App&, CliContext&);
void add_import_command(CLI::App&, CliContext&);
void add_mlir_command(CLI::App&, CliContext&);
void add_compile_command(CLI::App&, CliContext&);
void add_dump_command(CLI::App&, CliContext&);
void add_select_command(CLI::App&, CliContext&);
void add_header_command(CLI::App&, CliContext&);
void add_embed_command(CLI::App&, CliContext&);
void add_bundle_command(CLI::App&, CliContext&);
void add_lock_command(CLI::App&, CliContext&);
void add_space_command(CLI::App&, CliContext&);
void add_top_command(CLI::App&, CliContext&);
void add_doctor_command(CLI::App&, CliContext&);
void add_cache_command(CLI::App&, CliContext&);
void add_check_ptxas_command(CLI::App&, CliContext&);

} // namespace deepgen
