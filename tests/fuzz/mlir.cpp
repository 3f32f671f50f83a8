// The reader of modules, in a program of its own, as MLIR is part of it.
#include "generator/mlir_in/module.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

/// What is read of a text can be written, read again and put back as calls; nothing crashes.
void run_mlir(const std::string& input) {
  tensors::Analysis analysis;
  try {
    analysis = tensors::analyse_module(input, "x.mlir", true);
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
    return;
  }
  const std::string text = analysis.manifest.serialize();
  const tensors::Manifest again = tensors::Manifest::parse(text, "manifest");
  fuzz::require(again == analysis.manifest, "a manifest changes when it is read again");
  if (analysis.chains.empty()) return;
  const std::string calls = tensors::module_with_calls(input, "x.mlir", again, "kernels");
  fuzz::require(calls.find("call @kernels_") != std::string::npos, "a module without calls");
}
const fuzz::Target mlir_target("mlir", run_mlir);

} // namespace
} // namespace deepgen
