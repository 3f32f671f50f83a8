// Analysis: all matrix products of a module, as functions of a library and calls of them.
#pragma once

#include "workload/mlir/chain.h"
#include "workload/mlir/manifest.h"

namespace deepgen::tensors {

struct Analysis {
  Manifest manifest;
  std::vector<Chain> chains;      ///< in the order of the text
  std::vector<size_t> entry_of;   ///< for each chain that of manifest.functions
  std::vector<std::string> notes; ///< what a person should know: where chains end, what stays in the module
};

/// Throws Error that names the first operation which looks like a product and is none that DeepGen computes,
/// and counts the others; with `leave` these stay in the module. `file` is the module's name, `text` its
/// bytes.
Analysis analyse(const Graph&, const std::string& file, const std::string& text, bool leave);

} // namespace deepgen::tensors
