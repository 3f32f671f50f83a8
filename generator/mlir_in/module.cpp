#include "generator/mlir_in/module.h"

#include "base/text/error.h"
#include "generator/mlir_in/source.h"
#include "workload/mlir/memref_source.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"

namespace deepgen::tensors {
namespace {

mlir::MemRefType dense_memref(mlir::Value tensor) {
  const auto type = mlir::cast<mlir::RankedTensorType>(tensor.getType());
  return mlir::MemRefType::get(type.getShape(), type.getElementType());
}

/// Puts calls in the place of chains.
class Caller {
public:
  Caller(Source& source, const Manifest& manifest, const std::string& ns)
      : s_(source), manifest_(manifest), ns_(ns), builder_(source.context.get()) {}

  void replace(const Chain& chain, const Entry& entry) {
    mlir::Operation* last = s_.operations[size_t(chain.last)];
    builder_.setInsertionPoint(last);
    llvm::SmallVector<mlir::Value> memrefs;
    mlir::Value d;
    for (const ChainOperand& o : chain.operands) {
      mlir::Value tensor = s_.values[size_t(o.value)];
      if (o.field == "d")
        memrefs.push_back(d = mlir::memref::AllocOp::create(builder_, last->getLoc(), dense_memref(tensor)));
      else
        memrefs.push_back(mlir::bufferization::ToBufferOp::create(
            builder_, last->getLoc(), dense_memref(tensor), tensor, /*read_only=*/true));
    }
    const std::string symbol = memref_symbol(ns_, entry);
    declare(last, symbol, memrefs);
    mlir::func::CallOp::create(builder_, last->getLoc(), mlir::TypeRange(), llvm::StringRef(symbol), memrefs);
    auto result =
        mlir::bufferization::ToTensorOp::create(builder_, last->getLoc(), last->getResult(0).getType(), d,
                                                /*restrict=*/true);
    last->getResult(0).replaceAllUsesWith(result);
    s_.values[size_t(chain.operands.back().value)] = result; // what later calls take
  }

  /// Operations that nobody asks for any more.
  void clear() {
    for (size_t i = s_.operations.size(); i-- > 0;) {
      mlir::Operation* op = s_.operations[i];
      const bool pure = s_.graph.operations[i].result >= 0 && !s_.graph.operations[i].memrefs;
      if (pure && op->use_empty()) op->erase();
    }
  }

private:
  void declare(mlir::Operation* user, const std::string& symbol, mlir::ValueRange arguments) {
    mlir::Operation* table =
        mlir::SymbolTable::getNearestSymbolTable(user->getParentOfType<mlir::func::FuncOp>()->getParentOp());
    const auto type = builder_.getFunctionType(arguments.getTypes(), {});
    if (mlir::Operation* there = mlir::SymbolTable::lookupSymbolIn(table, symbol)) {
      auto function = mlir::dyn_cast<mlir::func::FuncOp>(there);
      if (!function || !function.isExternal() || function.getFunctionType() != type)
        throw Error("the module has a symbol that a call needs", manifest_.source, symbol,
                    "another NAMESPACE");
      return;
    }
    mlir::OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(&table->getRegion(0).front());
    auto function = mlir::func::FuncOp::create(builder_, table->getLoc(), symbol, type);
    function.setPrivate();
    function->setAttr("llvm.emit_c_interface", builder_.getUnitAttr());
  }

  Source& s_;
  const Manifest& manifest_;
  std::string ns_;
  mlir::OpBuilder builder_;
};

} // namespace

bool reads_mlir() { return true; }

Analysis analyse_module(const std::string& text, const std::string& file, bool leave) {
  const Source source = read_source(text, file);
  return analyse(source.graph, file, text, leave);
}

std::string module_with_calls(const std::string& text, const std::string& file, const Manifest& manifest,
                              const std::string& ns) {
  Source source = read_source(text, file);
  const Analysis analysis = analyse(source.graph, file, text, !manifest.left.empty());
  if (!(analysis.manifest == manifest))
    throw Error("the module has other products than the manifest", file,
                "one of them has changed, or this is another version of DeepGen",
                "run `deepgen import " + file + "` again");
  Caller caller(source, manifest, ns);
  for (size_t i = 0; i < analysis.chains.size(); ++i)
    caller.replace(analysis.chains[i], analysis.manifest.functions[analysis.entry_of[i]]);
  caller.clear();
  if (mlir::failed(mlir::verify(*source.module)))
    throw Error("the module with calls is not valid", file, "", "please report this module");
  std::string result;
  llvm::raw_string_ostream stream(result);
  source.module->print(stream);
  return result + "\n";
}

} // namespace deepgen::tensors
