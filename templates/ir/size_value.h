// SizeValue: a size of the problem in a kernel's code, or a number that follows from sizes.
#pragma once

#include "mlir/IR/Value.h"

#include <cstdint>

namespace deepgen {

/// A constant, or, where the problem has a range of the size, a value of the call (i32). GpuIr has operations
/// that take it; of constants they make what they make of the number itself.
class SizeValue {
public:
  SizeValue(int64_t constant) : constant_(constant) {} // implicit, as both are sizes
  SizeValue(mlir::Value value) : value_(value) {}

  bool is_constant() const { return !value_; }
  int64_t constant() const { return constant_; } ///< of a constant
  mlir::Value value() const { return value_; }   ///< null: it is a constant
  /// Whether the number is not known to be a multiple.
  bool may_leave(int64_t divisor) const { return !is_constant() || constant_ % divisor != 0; }

private:
  int64_t constant_ = 0;
  mlir::Value value_;
};

} // namespace deepgen
