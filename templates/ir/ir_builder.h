// Ir: the few operations that vector-level kernels are made of, over MLIR's llvm, scf, arith and vector
// dialects. Memory is addressed through bare pointers (llvm.ptr), so that leading dimensions may be runtime
// values and a kernel's signature is the plain C one; loops are scf, arithmetic is arith and vector.
#pragma once

#include "base/problem/gemm.h"
#include "templates/ir/value.h"
#include "templates/ir/vector_isa.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace deepgen {

class Ir {
public:
  Ir(mlir::ModuleOp module, VectorIsa isa);

  mlir::OpBuilder b;
  mlir::Location loc;
  const VectorIsa isa;
  mlir::Type i64, i1, pointer, element, vector;

  // Integers (i64; other widths work too, constants take the other operand's) and conditions (i1).
  Value constant(int64_t);
  Value constant_like(Value, int64_t);
  Value add(Value, Value);
  Value add(Value, int64_t);
  Value sub(Value, Value);
  Value mul(Value, Value);
  Value mul(Value, int64_t);
  Value min(Value, Value);
  Value remainder(Value, int64_t);   ///< of a non-negative value by a constant
  Value shift_right(Value, int64_t); ///< a non-negative value divided by a power of two
  Value equal(Value, Value);
  Value not_equal(Value, Value);
  Value widen(Value condition); ///< i1 to i64
  Value select(Value condition, Value yes, Value no);

  // Memory. Offsets count elements of the kernel's type.
  Value at(Value base, Value offset);
  Value at(Value base, int64_t offset);
  Value at_byte(Value base, int64_t offset);
  Value load(mlir::Type, Value address, int64_t alignment);
  Value load_scalar(Value address) { return load(element, address, size_of(isa.element)); }
  /// The first `count` lanes (all of them when count == lanes); the others are zero and not read.
  Value load_vector(Value address, int64_t count);
  void store_vector(Value, Value address, int64_t count);
  /// The same where `count` is an i64: none where it is less than 1, all where it is more than the lanes.
  Value load_vector(Value address, Value count);
  void store_vector(Value, Value address, Value count);
  void store_scalar(Value, Value address);
  /// `near`: into the first level of caches, not only into the second.
  void prefetch(Value address, bool write, bool near = true);

  // Vectors and scalars. The first three make the kernel's type; arithmetic takes any float type.
  Value scalar(double);
  Value splat(double);
  Value splat(Value scalar);
  Value constant_like(Value, double);             ///< of that value's type, scalar or vector
  Value broadcast_like(Value scalar, Value like); ///< the scalar itself when `like` is one
  Value fma(Value x, Value y, Value z);           ///< x * y + z; two roundings where the level has no FMA
  /// Of `t`, by Horner's rule; the constant term comes first.
  Value polynomial(Value t, llvm::ArrayRef<double> ascending);
  Value addf(Value, Value);
  Value subf(Value, Value);
  Value mulf(Value, Value);
  Value divf(Value, Value);
  Value shuffle(Value, Value, llvm::ArrayRef<int64_t> lanes);
  Value sum_lanes(Value);           ///< scalar; the compiler chooses an order
  Value sum_lanes_by_halves(Value); ///< scalar; in one order, wherever it stands
  Value insert(Value scalar, Value into, int64_t lane);
  Value is_not(Value, double); ///< i1: unequal, also true for NaN

  // Control flow.
  using Body = std::function<Values(Value index, mlir::ValueRange carried)>;
  Values loop(Value from, Value to, Value step, mlir::ValueRange carried, const Body& body);
  Values loop(Value from, Value to, int64_t step, mlir::ValueRange carried, const Body& body);
  void loop(Value from, Value to, int64_t step, const std::function<void(Value)>& body);
  Values branch(Value condition, mlir::TypeRange types, const std::function<Values()>& yes,
                const std::function<Values()>& no);
  void branch(Value condition, const std::function<void()>& yes, const std::function<void()>& no = nullptr);
  /// Code for each value of x that is in [from, to], which has no other.
  void choose(Value x, int64_t from, int64_t to, const std::function<void(int64_t)>& body);

  /// Defines `name` once (later calls return at once) and leaves the insertion point where it was. Parameters
  /// are pointers or i64; helpers are private and not inlined, so that register allocation sees one tile at a
  /// time.
  void function(const std::string& name, llvm::ArrayRef<mlir::Type> parameters, bool is_private,
                const std::function<void(mlir::ValueRange)>& body);
  void call(const std::string& name, mlir::ValueRange arguments);

private:
  Value mask(int64_t count);
  Value mask(Value count);
  mlir::ModuleOp module_;
};

} // namespace deepgen
