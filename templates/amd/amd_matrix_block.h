// MatrixBlock: the kernel of an mfma or wmma config, as one block runs it. Two loops over K: in one, every
// wave reads the next step's fragments while it multiplies; in the other, two groups of four waves take turns
// (amd_matrix_turns.cpp).
#pragma once

#include "templates/amd/amd_matrix_fill.h"
#include "templates/gpu/gpu_epilogue.h"
#include "templates/ir/amd_ir.h"

#include <deque>

namespace deepgen {

constexpr int64_t kAllCopies = 63; ///< under way: none is waited for

class MatrixBlock {
public:
  MatrixBlock(AmdIr& builder, const Gemm& problem, const MatrixTiling& tiling, const GpuIr::Arguments& args)
      : ir(builder), p(problem), t(tiling), args_(args), sizes_(builder, problem, args),
        any_k_(problem.ranged(Size::k)) {}

  void emit(int64_t align_d);

private:
  /// What the loop over K carries.
  struct State {
    Values a, b; ///< where the thread's next pieces are
    Values loaded_a,
        loaded_b; ///< of the tile behind the one that is multiplied, unless it goes to LDS directly
    Value slot;   ///< offset of the stage that is multiplied
    Values later; ///< of three stages: the offsets of the other two, the next tile's and that of the one
                  ///< before this
    Values rows, columns; ///< fragments of its next step: pieces of 16 bytes a lane, of each instruction's
                          ///< rows of A, columns of B
    Values sums;
    Values pack() const;
    State unpacked(const Values&) const; ///< the same sizes, other values
  };
  /// Memory operations that are emitted between matrix instructions.
  using Queue = std::deque<std::function<void()>>;
  static void flush(Queue&);

  void find_tile();
  void find_lane();
  Value operand(const char* name, const MatrixSide&);
  Value pitch(const char* name, const MatrixSide&);
  int64_t row_tiles() const { return t.wm / t.size; }
  int64_t column_tiles() const { return t.wn / t.size; }
  Value next_slot(const State&);
  Value previous_slot(const State&);
  void next_stage(const State&, State& after);
  void read_step(State& into, Value slot, int64_t step, Queue&);
  void write_tile(const State&, Value slot, Queue&);
  void load_tile(State&, Queue&);
  void load_below_end(State&);
  void write_and_load_tile(const State&, Value slot, State& after, Queue&);
  void copy_tile(const State&, Value slot, Queue&);
  void move_on(State&, Value wanted); ///< to the next tile, if there is one
  void barrier(int64_t copies_left);  ///< ahead of which no more copies of the wave than these are under way,
                                      ///< of direct ones
  void multiply(const Values& rows, const Values& columns, Values& sums, Queue& between);
  void wait_for_tile(State&, Queue&);
  State first_state();
  void first_tile_to_shared(State&, Value depth_of_first, bool ragged);
  State tile(State, Value left);
  void last_tile(State&);
  Value in_second_group();
  State turn(State, Value left);
  void multiply_in_turn(const std::vector<State>& fragments, Values& sums, int64_t copies_left);
  void fetch_in_turn(const State&, State& after, Value left);
  void find_share();
  Values sum_up();
  void store(const Values& sums, int64_t align_d);
  std::vector<Fragment> fragments(const Values& sums, int64_t row_tile, Value row, const Values& columns);

  AmdIr& ir;
  const Gemm& p;
  const MatrixTiling& t;
  const GpuIr::Arguments& args_;
  const GpuSizes sizes_;
  const bool any_k_;                        ///< a call says K
  Value entry_, split_, block_m_, block_n_; ///< block_m, block_n: the tile's first row and column
  Value lane_row_, lane_group_, wave_m_,
      wave_n_; ///< wave_m, wave_n: the first row and column of the wave in the tile
  Values lds_a_,
      lds_b_; ///< where the lane reads the pieces of a row that one step after the other needs, in stage 0
  std::unique_ptr<MatrixFill> a_, b_;
  Value first_tile_, tiles_; ///< of the split
  SizeValue depth_ = 0;      ///< elements of K in the first tile of all
};

} // namespace deepgen
