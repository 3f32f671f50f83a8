// Source: a module in memory, with the Graph that was made of it and MLIR's own values and operations by the
// Graph's numbers. Internal to mlir_in.
#pragma once

#include "workload/mlir/graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace deepgen::tensors {

struct Source {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Graph graph;
  std::vector<mlir::Value> values;
  std::vector<mlir::Operation*> operations;
  std::vector<mlir::func::FuncOp> functions;
};

/// Throws Error.
Source read_source(const std::string& text, const std::string& file);
/// What of a text could exhaust the stack of MLIR's reader: brackets within brackets. Throws Error.
void check_nesting(const std::string& text, const std::string& file);
/// The remedy for a text that MLIR refuses with these words.
std::string remedy_for(const std::string& why);

} // namespace deepgen::tensors
