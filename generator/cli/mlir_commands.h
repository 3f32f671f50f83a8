// Modules of MLIR on the command line.
#pragma once

#include <string>

namespace deepgen {

bool is_mlir_file(const std::string& path);
bool is_scheduler_file(const std::string& path); ///< auto-scheduler.cfg, an INI

struct MlirImport {
  std::string module, output;
  bool leave = false; ///< operations that are no product of ours stay in the module
};
/// Writes the manifest and prints what is in it.
void import_mlir(const MlirImport&);
/// The same of the module that an auto-scheduler.cfg names; and `search`, the search file that it asks for.
void import_scheduler(const std::string& file, MlirImport, const std::string& search);

} // namespace deepgen
