// A deepgen that was built without MLIR's reader.
#include "base/text/error.h"
#include "generator/mlir_in/module.h"

namespace deepgen::tensors {
namespace {

[[noreturn]] void refuse(const std::string& file) {
  throw Error("this deepgen reads no MLIR", file, "it was built with -DDEEPGEN_WITH_MLIR_IN=OFF",
              "build it with -DDEEPGEN_WITH_MLIR_IN=ON; libraries of committed manifests need no reader");
}

} // namespace

bool reads_mlir() { return false; }
Analysis analyse_module(const std::string&, const std::string& file, bool) { refuse(file); }
std::string module_with_calls(const std::string&, const std::string& file, const Manifest&,
                              const std::string&) {
  refuse(file);
}

} // namespace deepgen::tensors
