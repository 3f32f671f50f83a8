// What a generated library's tables say of sizes that are known at a call alone: ranges, and the rules by
// which tiles, grids and scratch follow from sizes.
#pragma once

#include "generator/embed/embed.h"

#include <optional>

namespace deepgen {

/// The ranges of a problem, by name, in order: {"m", 1, 8192}.
struct RangeOfSize {
  std::string name;
  Size size;
  int64_t least, most;
};
std::vector<RangeOfSize> ranges_of(const Problem&);
/// An operand's rows, columns or entries in a call: "64", "m", "2 * n". `by` is its field of that name.
std::string size_expression(int64_t number, std::optional<Size> by, const Problem&);

/// deepgen_function::sizes: "{{1, 8192}, {4096, 4096}, {4096, 4096}, {1, 1}}".
std::string function_sizes(const Problem&);

/// ", for m=1..16"; "" where it takes any sizes.
std::string taken_text(const Kernel&);

/// The lists that a kernel's row points to; "" for a kernel of a problem without ranges. `id` begins their
/// names.
std::string size_tables(const Kernel&, const std::string& id);
/// The last fields of the row, from a comma on.
std::string size_fields(const Kernel&, const std::string& id);

/// The same for the grids of a GPU kernel's launches.
std::string grid_rule_tables(const Kernel&, const std::string& id);
std::string grid_rules_name(const Launch&, const std::string& id); ///< or "nullptr"

} // namespace deepgen
