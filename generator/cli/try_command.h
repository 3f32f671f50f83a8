// try: rebuilds one candidate by its name and times it against the default config.
#pragma once

#include "base/search/plan.h"

namespace CLI {
class App;
}

namespace deepgen {

struct CliContext;
void add_try_command(CLI::App&, CliContext&);

/// A line for each candidate of the plan that a shell takes as it is, from any folder.
std::string candidate_commands(const Plan&, const std::string& problem_file, const std::string& device_file);

} // namespace deepgen
