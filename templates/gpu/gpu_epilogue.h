// GpuEpilogue: from accumulators in registers to D in global memory.
#pragma once

#include "templates/gpu/gpu_sizes.h"

namespace deepgen {

/// Accumulators of consecutive columns of one row of D, in the accumulator's type. `row` and `column` are
/// i32. Values that belong to the same row or column should be the same Value, so that operands are loaded
/// once for all of them. `column` must be a multiple of the largest power of two that divides the number of
/// values.
struct Fragment {
  Value row, column;
  Values values;
  Values given{};      ///< as many elements of the matrix that GpuEpilogue::give() names
  bool scaled = false; ///< values are those of GpuEpilogue::scale()
};

/// Which coordinates of a fragment may lie outside of D (they are not negative).
struct Bounds {
  bool rows = false, columns = false;
  Value row_end = nullptr; ///< i32, at least 1: where rows end; null: at M
};

/// A step without operands. Approximate where D is so narrow that its rounding hides that.
Value gpu_function(GpuIr&, const Gemm&, EpilogueOp, Value x);

class GpuEpilogue {
public:
  /// Made where it dominates all stores, best behind the main loop. Of one batch entry (`entry`: i32; null
  /// without a batch). `align_d`: what Kernel::align_d will say.
  GpuEpilogue(GpuIr&, const Gemm&, const KernelArguments&, Value entry, int64_t align_d);

  /// Fragments that are stored together have their operands (C, residual, ...) loaded together, ahead of the
  /// first store: a few of them hide the latency, too many take registers.
  void store(llvm::ArrayRef<Fragment>, Bounds);

  /// store() in two halves, for those who rearrange elements in between: D's elements of each fragment, as
  /// one vector, and writing elements of consecutive columns, all of them inside or outside of D.
  Values results(llvm::ArrayRef<Fragment>, Bounds);
  void write(Value row, Value column, Value elements, Bounds);

  /// alpha times the sums, and beta times C beside, of all fragments of a thread at once: one branch around
  /// all of C, whose code calls without a beta jump over once. The fragments that `part` makes of the number
  /// of a part have the next sums; C of a part is loaded together.
  Values scale(mlir::ValueRange sums, Bounds, int64_t parts,
               llvm::function_ref<std::vector<Fragment>(int64_t)> part);

  /// From now on fragments bring their elements of this matrix of the epilogue: it is not loaded.
  void give(const std::string& matrix) { given_ = matrix; }

  /// True when a store reads matrices beside C, whose loads cost as much as D's stores.
  static bool reads_matrices(const Gemm&);

private:
  struct Piece; ///< as many columns as one access of D covers
  Value matrix_base(const std::string& name, Type);
  Value address(const std::string& name, Type, const Piece&);
  /// The value that `make` gave for the same key in the same block of code: vectors are read once for many
  /// rows.
  Value remember(const std::string& what, Value of, int64_t number, const std::function<Value()>& make);
  std::vector<Piece> pieces(llvm::ArrayRef<Fragment>, Bounds); ///< without their operands
  std::vector<Piece> loaded(llvm::ArrayRef<Fragment>, Bounds); ///< with them, and C
  void write(const Piece&, Value elements);
  void load_c(llvm::MutableArrayRef<Piece>);
  void load_operands(llvm::MutableArrayRef<Piece>);
  Values load_matrix(const std::string& name, Type, const Piece&);
  Values in_compute_type(Type, Value elements);
  Value load_vector_element(const std::string& name, Type, Value index);
  Value has_beta() const; ///< i1: it is not 0
  Value times_alpha(Value sum);
  Value with_c(Value scaled, Value c);
  Value finish(const Piece&, int64_t lane);

  GpuIr& ir_;
  const Gemm problem_;
  const KernelArguments arguments_;
  const GpuSizes sizes_;
  const Value entry_;
  const int64_t align_;
  const mlir::Type compute_;
  std::string given_;
  std::map<std::string, Value> bases_;
  std::map<std::tuple<std::string, void*, int64_t>, Value> known_;
  mlir::Block* known_in_ = nullptr;
};

} // namespace deepgen
