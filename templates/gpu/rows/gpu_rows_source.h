// GpuRowsSource: the elements of one row, as the threads that share it go over them: from global memory, and
// from registers or shared memory where the config keeps them there.
#pragma once

#include "templates/gpu/rows/gpu_rows.h"
#include "templates/ir/gpu_ir.h"

namespace deepgen {

/// The row of a thread.
struct GpuRow {
  Value number;       ///< i64; inside of the problem
  Value inside;       ///< i1: it is no other thread's; null: always
  Value lane, thread; ///< i32: of the row's threads, and of the block's
};

/// One vector of a thread's.
struct GpuRowsVector {
  Value x;          ///< X + residual in f32; of a vector that is not there, some other's
  Value column;     ///< i32, of its first element
  Value inside;     ///< i1; null: always
  int64_t turn = 0; ///< where all are in registers: which one
};

class GpuRowsSource {
public:
  GpuRowsSource(GpuIr&, const Rows&, const GpuRowsTiling&, const GpuIr::Arguments&, const GpuRow&);

  /// Calls `body` for the thread's vectors in order, for those together that are read together; the first
  /// pass reads X and the residual. The body may overwrite what is in registers: `x` is what the next pass
  /// gets.
  using Visit = std::function<Values(std::vector<GpuRowsVector>&, mlir::ValueRange carried)>;
  Values pass(const Values& carried, const Visit& body);

  /// Loads the row that registers hold, for fetched() of the source that goes over it; nothing waits for it.
  Values fetch();
  /// The first pass has the row from here.
  void fetched(mlir::ValueRange loads) { fetched_.assign(loads.begin(), loads.end()); }

  /// An address in a row of an operand of this type.
  Value address(const std::string& operand, Type, Value column);
  /// The elements at the vector's columns of an operand with X's type, in f32.
  Value vector_of(const std::string& operand, const GpuRowsVector&);
  /// Stores f32 elements as the operand's type, where the vector and its row are there.
  void store(const std::string& operand, Type, const GpuRowsVector&, Value elements);

private:
  struct Raw {
    Value x, residual; ///< as they are in memory; a residual if there is one
  };
  Value load(Value address, CachePolicy); ///< as it is in memory
  Value widened(Value raw);
  Raw read(const GpuRowsVector&);
  std::vector<Raw> read_all(const std::vector<GpuRowsVector>&);
  std::vector<GpuRowsVector> group_from(Value first_turn, int64_t whole, int64_t count, bool guarded);
  Value from_shared(Value turn);
  void to_shared(Value elements, Value turn);
  Value slot(Value turn, int64_t part, int64_t bytes);
  GpuRowsVector place(Value first_turn, int64_t further, bool guarded);
  Values visit(std::vector<GpuRowsVector>& group, const Values& carried, const Visit& body, Value first_turn);

  GpuIr& ir;
  const Rows& p;
  const GpuRowsTiling& t;
  const GpuIr::Arguments& args;
  const GpuRow row_;
  bool first_pass_ = true;
  std::vector<GpuRowsVector> held_;
  Values fetched_;
};

} // namespace deepgen
