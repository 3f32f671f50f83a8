// The main loop of mma_sync: tiles of A and B go around a ring of stages in shared memory while fragments of
// the ones that have arrived are multiplied.
#pragma once

#include "templates/ir/nv_ir.h"
#include "templates/nvidia/mma_sync/mma_sync.h"
#include "templates/nvidia/mma_sync/mma_sync_fill.h"

#include <functional>

namespace deepgen {

class MmaLoop {
public:
  /// What the loop works on: A, then B or both weights of a gate.
  struct Operands {
    std::vector<TileFill> fill;
    std::vector<FragmentReader> reader;
  };
  /// The block's tiles of K: the first of them and the number.
  struct Range {
    Value split; ///< null when there is one
    Value first_tile, tile_count;
    SizeValue k; ///< of the problem
  };
  MmaLoop(NvIr&, const Gemm&, const MmaTiling&, Value memory, const Range&, Operands);
  /// The sums with all products added. Waits for the launch before, where that may still run, when it first
  /// reads.
  Values run(Values sums);

private:
  /// Where the loop stands: offsets of the stages that are read and written next, and the tile that is copied
  /// next.
  struct Position {
    Value reading, writing;
    Values from;
  };
  void wait_for_predecessor();
  void fill_ring();
  Values sum_up();
  void whole_tile_at_once(Values fragments);
  Values sum_up_doubles();
  Values body(Value index, mlir::ValueRange now);
  Values turn_of_doubles(Value index, mlir::ValueRange now, bool first);
  Position take_state(mlir::ValueRange now, Values& fragments);
  Values state(Value reading, const Position&, mlir::ValueRange fragments);
  void start(Value coming, const Position&);
  void start_part(Value coming, const Position&, int64_t part);
  void begin_words(Value index, mlir::ValueRange from, Value at);
  void begin_copies(Value index, mlir::ValueRange from, Value at);
  void copy(Value left, mlir::ValueRange from, Value at);
  void finish(Value at);
  Values next(mlir::ValueRange from);
  Values read(Value at, int64_t step);
  void multiply_step(mlir::ValueRange fragments,
                     const std::function<void(int64_t column)>& after_column = {});
  Values multiply_and_read(mlir::ValueRange fragments, Value at, int64_t step);
  Value k_left(Value tile_index, bool always);
  Value following(Value stage_offset);

  Value stage(Value offset) { return ir_.offset(memory_, offset); }
  /// Of an operand's tile in a stage.
  int64_t tile_offset(size_t operand) const {
    return operand == 0 ? 0 : t_.a.bytes() + int64_t(operand - 1) * t_.b.bytes();
  }
  bool through_registers(size_t operand) const {
    return TileFill::through_registers(operand == 0 ? t_.align_a : t_.align_b);
  }
  int64_t m_tiles() const { return t_.wm / 16; }
  int64_t n_tiles() const { return t_.wn / 8; }
  /// Tiles that are on their way while one is multiplied.
  int64_t ahead() const { return std::max<int64_t>(1, t_.ring - 1); }
  int64_t parts() const;

  NvIr& ir_;
  const Gemm& p_;
  const MmaTiling& t_;
  Value memory_;
  Range range_;
  std::vector<TileFill> fill_;
  std::vector<FragmentReader> reader_;
  std::vector<Values> in_flight_; ///< registers of each operand between begin() and finish()
  Values sums_, from_;
};

} // namespace deepgen
