// Records: what an instruction with several results of one type gives back.
#pragma once

#include "templates/ir/ir_builder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {

inline mlir::Type record_of(int64_t count, mlir::Type type) {
  return mlir::LLVM::LLVMStructType::getLiteral(type.getContext(),
                                                llvm::SmallVector<mlir::Type>(size_t(count), type));
}

inline Values fields_of(Ir& ir, Value record) {
  Values out;
  const auto type = mlir::cast<mlir::LLVM::LLVMStructType>(record.getType());
  for (int64_t i = 0; i < int64_t(type.getBody().size()); ++i)
    out.push_back(mlir::LLVM::ExtractValueOp::create(ir.b, ir.loc, record, i));
  return out;
}

} // namespace deepgen
