// What a generated library's tables say of sizes that are known at a call alone: ranges, and the rules by
// which tiles, grids and scratch follow from sizes.
#pragma once

#include "generator/embed/embed.h"

namespace deepgen {

/// deepgen_function::sizes: "{{1, 8192}, {4096, 4096}, {4096, 4096}, {1, 1}}".
std::string function_sizes(const Problem&);

/// The lists that a kernel's row points to; "" for a kernel of a problem without ranges. `id` begins their
/// names.
std::string size_tables(const Kernel&, const std::string& id);
/// The last fields of the row, from a comma on.
std::string size_fields(const Kernel&, const std::string& id);

/// The same for the grids of a GPU kernel's launches.
std::string grid_rule_tables(const Kernel&, const std::string& id);
std::string grid_rules_name(const Launch&, const std::string& id); ///< or "nullptr"

} // namespace deepgen
