// Modules of MLIR, read: text to a Graph, and back to text with calls in the place of chains. What includes
// MLIR is behind this header.
#pragma once

#include "workload/mlir/analysis.h"

namespace deepgen::tensors {

/// Whether this deepgen reads MLIR (-DDEEPGEN_WITH_MLIR_IN).
bool reads_mlir();
/// The products of a module. Throws Error with the place in the text when it is no valid module for this
/// version of MLIR, and as analyse() does. MLIR's reader is run on text that somebody else wrote: call it in
/// a process of its own.
Analysis analyse_module(const std::string& text, const std::string& file, bool leave);
/// The module with a call for each chain. Throws Error when its products are not those of the manifest.
std::string module_with_calls(const std::string& text, const std::string& file, const Manifest&,
                              const std::string& ns);

} // namespace deepgen::tensors
