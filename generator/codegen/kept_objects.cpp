#include "generator/codegen/kept_objects.h"

#include "base/files/kept_file.h"
#include "base/text/sha256.h"
#include "generator/codegen/codegen.h"
#include "generator/object_hash.inc"

#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <optional>

namespace deepgen {
namespace {

std::string compiled(llvm::Module& module, int64_t isa) {
  optimize(module, isa);
  return emit_code(module, isa, false);
}

/// Of the IR, which names its functions' CPU and features, and of what makes code of it. Not of the
/// templates, which change in every third commit: what they decide is in the IR.
std::string name_of(const llvm::Module& module) {
  std::string text = std::string("llvm ") + DEEPGEN_LLVM_VERSION + " sources " + kObjectHash + "\n";
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return sha256_hex(text);
}

} // namespace

std::string object_of(llvm::Module& module, int64_t isa) {
  const char* folder = std::getenv("DEEPGEN_KEEP_OBJECTS");
  if (!folder || !*folder) return compiled(module, isa);
  const std::string path = std::string(folder) + "/" + name_of(module) + ".o";
  if (std::optional<std::string> kept = kept_file(path)) return *kept;
  std::string object = compiled(module, isa);
  keep_file(path, object);
  return object;
}

} // namespace deepgen
