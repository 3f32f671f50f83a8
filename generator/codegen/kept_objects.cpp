#include "generator/codegen/kept_objects.h"

#include "base/files/kept_file.h"
#include "base/text/sha256.h"
#include "generator/object_hash.inc"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <optional>

namespace deepgen {
namespace {

/// Moves what has no effect in front of its first use, in the order of operands: one order for all that
/// differ in that alone. What reads memory moves as well, and is marked with how many writes came before it.
class InOrderOfUse {
public:
  explicit InOrderOfUse(mlir::Operation* root) {
    root->walk([&](mlir::Block* block) { mark(*block); });
    root->walk([&](mlir::Block* block) { sort(*block); });
  }

private:
  llvm::DenseSet<mlir::Operation*> free_; ///< to move, and not at their place yet

  static bool reads_alone(mlir::Operation& op) {
    auto effects = mlir::dyn_cast<mlir::MemoryEffectOpInterface>(op);
    return effects && effects.onlyHasEffect<mlir::MemoryEffects::Read>();
  }
  /// A yield has no effect, and what it is for no results of its own.
  static bool has_place(mlir::Operation& op) {
    return op.getNumRegions() > 0 || op.getNumResults() == 0 || op.hasTrait<mlir::OpTrait::IsTerminator>();
  }
  void mark(mlir::Block& block) {
    int64_t fixed = 0;
    mlir::Builder builder(block.getParentOp()->getContext());
    for (mlir::Operation& op : block) {
      const bool reads = !has_place(op) && reads_alone(op);
      if (reads) op.setAttr("deepgen.behind", builder.getI64IntegerAttr(fixed));
      if (reads || (!has_place(op) && mlir::isPure(&op)))
        free_.insert(&op);
      else
        ++fixed;
    }
  }

  void sort(mlir::Block& block) {
    std::vector<mlir::Operation*> fixed;
    for (mlir::Operation& op : block)
      if (!free_.contains(&op)) fixed.push_back(&op);
    for (mlir::Operation* op : fixed) place_operands(*op, *op);
    for (mlir::Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (free_.erase(&op) && op.use_empty()) op.erase();
  }
  /// In front of `before`, which is in their block.
  void place_operands(mlir::Operation& user, mlir::Operation& before) {
    const auto one = [&](mlir::Value value) {
      mlir::Operation* made = value.getDefiningOp();
      if (!made || made->getBlock() != before.getBlock() || !free_.erase(made)) return;
      place_operands(*made, before);
      made->moveBefore(&before);
    };
    for (mlir::Value value : user.getOperands()) one(value);
    for (mlir::Region& region : user.getRegions())
      region.walk([&](mlir::Operation* inner) {
        for (mlir::Value value : inner->getOperands()) one(value);
      });
  }
};

/// Not of the templates, which change in every third commit: what they decide is in the module.
std::string name_of(mlir::ModuleOp module, const std::string& target) {
  mlir::OwningOpRef<mlir::ModuleOp> sorted(module.clone());
  InOrderOfUse of_module(*sorted);
  std::string text =
      std::string("llvm ") + DEEPGEN_LLVM_VERSION + " sources " + kObjectHash + " for " + target + "\n";
  llvm::raw_string_ostream stream(text);
  sorted->print(stream);
  return sha256_hex(text);
}

} // namespace

std::string kept_code(mlir::ModuleOp module, const std::string& target,
                      const std::function<std::string()>& make) {
  const char* folder = std::getenv("DEEPGEN_KEEP_OBJECTS");
  if (!folder || !*folder) return make();
  const std::string path = std::string(folder) + "/" + name_of(module, target) + ".o";
  if (std::optional<std::string> kept = kept_file(path)) return *kept;
  std::string code = make();
  keep_file(path, code);
  return code;
}

} // namespace deepgen
