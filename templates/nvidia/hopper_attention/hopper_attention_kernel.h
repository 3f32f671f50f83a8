// The body of hopper_attention's kernel: one warp fills shared memory (hopper_attention_produce.cpp; from
// pages: hopper_attention_pages.cpp), the consumers multiply (hopper_attention_consume.cpp; swapped:
// hopper_attention_swap.cpp) and store (hopper_attention_store.cpp). Of 8-bit floats, three more warps
// transpose values in between (hopper_attention_turn.cpp). All walk over the same blocks of rows.
#pragma once

#include "templates/ir/hopper_ir.h"
#include "templates/nvidia/attention/mma_attention_softmax.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"
#include "templates/nvidia/hopper_attention/hopper_attention_columns.h"

namespace deepgen {

class HopperAttentionKernel {
public:
  HopperAttentionKernel(HopperIr&, const Attention&, const HopperAttentionTiling&, const GpuIr::Arguments&);
  void emit();

private:
  /// A position in the rings of Q, or of keys and values: the stage, and the parity of its round.
  struct RingPlace {
    Value stage, parity;
  };
  /// Blocks of keys that the block's rows see.
  struct KeyBlocks {
    Value from, to;
  };
  /// The same of a consumer's rows, which goes over those below `to - skipped`. All its rows see all of those
  /// below `whole` and, with a window, not below `seen`.
  struct OwnBlocks : KeyBlocks {
    Value skipped, whole, seen;
  };

  void start();
  /// Calls `body` with what is carried, for each block of rows that is this block's and has rows.
  void walk(mlir::ValueRange carried, const std::function<Values(mlir::ValueRange)>& body);
  AttentionBlock::Place locate(Value index, Value row_blocks, Value pairs) const;
  AttentionBlock::Place locate_part(Value index, Value row_blocks, Value pairs) const;
  KeyBlocks key_blocks() const;
  RingPlace next(RingPlace) const;
  RingPlace after_q(RingPlace, const KeyBlocks&) const; ///< the place of the next rows' Q
  static Values places(RingPlace q, RingPlace keys) { return {q.stage, q.parity, keys.stage, keys.parity}; }

  // The producer. What an operand's tile is of:
  struct Source {
    const char* name;
    Type type;
    int64_t rows, slices, elements, bytes;
  };
  void produce();
  Values fill(mlir::ValueRange carried);
  void load(const Source&, Value to, Value full, Value token, Value left);
  void copy(const Source&, Value to, Value full, Value token) const;
  void gather(const Source&, Value to, Value full, Value token, Value left) const;
  void gather_packed(const Source& q, Value to) const; ///< begins: gathered() ends it
  /// Packed rows of Q are waited for when the first values are on their way, where lanes copy none of these.
  bool behind_values() const { return t.pack && (p.paged() || !p.varlen); }
  void gather_rows(const Source&, Value to, Value pieces, Value left,
                   const std::function<Value(Value row)>& address) const;
  void gathered(const Source&, Value full) const;
  void once(const std::function<void()>& body) const;
  /// Lanes look up pages, or copy rows: the producer's whole warp goes along.
  bool by_warp() const { return p.varlen || p.paged() || t.pack; }
  /// Where others than tensor cores read what lanes may have copied (a Q that is negated, values that are
  /// transposed), each lane tells of its own: so racecheck sees it, too.
  bool told_by_lanes(const Source& s) const {
    return by_warp() && (s.name[0] == 'q' || (t.narrow && s.name[0] == 'v'));
  }

  // The warps that transpose values, of 8-bit floats.
  void turn_values();
  Values turn(mlir::ValueRange carried);
  void turn_tile(Value from, Value to) const;
  Value turning_lane() const; ///< i1: that tells for its warp

  // Keys and values in pages.
  /// The boxes of a block of keys that are brought: [from, to) of them.
  struct PageBoxes {
    Value ids; ///< lane i: the page of box i
    Value from, to;
    Value first; ///< key of the block
  };
  Value look_up_pages(Value first) const;
  Value look_up_first_pages(const KeyBlocks&) const;
  PageBoxes page_boxes(Value first, Value ids) const;
  void load_values(const Source&, Value stage, const PageBoxes&, Value cut) const;
  void clear_behind_end(const Source&, Value stage, const PageBoxes&, Value cut, Value landing) const;
  void clear_rows(const Source&, Value stage, Value from, Value end) const;
  void load_boxes(const Source&, Value to, Value full, const PageBoxes&) const;
  void expect(const Source&, Value full, const std::function<void()>& expecting) const;
  void clear(const Source&, Value to, Value from, Value end) const;
  Value is_cut(const KeyBlocks&) const;

  // A consumer. What it carries from one block of keys to the next; values are those of the block before.
  struct State {
    Values sums, weights, rows; ///< of the product, its first operand, the softmax's
    Values factors;             ///< what sums are to be multiplied by; none: they have been
    RingPlace place;
    Values all() const;
  };
  State state_of(mlir::ValueRange) const;
  void consume();
  void walk_consuming();
  Values attend(mlir::ValueRange carried);
  void negate_q();
  OwnBlocks own_blocks(const KeyBlocks&) const;
  RingPlace skip(Value blocks, RingPlace);
  Values start_rows() const { return columns ? columns->start() : softmax->start(); }
  void mask(Values& scores, Value first) const;
  void mask_last(Values& scores, Value to) const;
  State begin(const OwnBlocks&, RingPlace);
  State step(Value block_of_keys, const KeyBlocks&, bool masked, State);
  State steps(const OwnBlocks&, State);
  State finish(State);
  Values scores(Value stage);
  Values weigh(const State&);
  /// The product has ended: its result becomes part of the sums.
  Values added(Values product, const State&) const;
  Values rescaled(Values sums, const Values& factors) const;
  void release_q(Value block_of_keys, const KeyBlocks&);

  // The same of swapped operands.
  Values swapped_scores(Value stage);
  Values swapped_sums(const State&);
  State swapped_begin(const OwnBlocks&, RingPlace);
  State swapped_step(Value block_of_keys, const KeyBlocks&, bool masked, State);
  State swapped_finish(State);
  void store_swapped(const Values& sums, const Values& rows, bool whole);

  Values weights_of(const Values& exponentials) const;
  void take_turn(), pass_turn();
  Value is_first_thread() const; ///< of the warpgroup
  void release(Value barrier) { ir.arrive_if(is_first_thread(), barrier); }
  void store(const Values& sums, const Values& rows);
  void store_whole(const Values& sums, const Values& rows);
  void store_parts(const Values& sums, const Values& rows);
  void store_lse(Value quad, const AttentionSoftmax::End&, const AttentionBlock::Row&);
  void store_row(const Values& sums, int64_t index, const AttentionSoftmax::End&, const AttentionBlock::Row&);
  Values gathered_row(const Values& sums, int64_t index, Value factor);
  void store_turned(const Values& sums, int64_t index, Value factor, Type type, Value to);

  Value q_full(Value stage) const { return ir.add(barriers, ir.shift_left(stage, 4)); }
  Value q_empty(Value stage) const { return ir.add(q_full(stage), 8); }
  Value q_stage(Value stage) const { return ir.add(memory, ir.mul(stage, t.q_bytes)); }
  /// Of a ring: its barriers are full and empty in turn.
  Value barrier(int64_t ring, Value stage, int64_t which) const {
    return ir.add(ir.add(barriers, ir.shift_left(stage, 4)),
                  16 * t.q_stages + 16 * t.stages * ring + 8 * which);
  }
  Value key_full(Value stage) const { return barrier(0, stage, 0); }
  Value key_empty(Value stage) const { return barrier(0, stage, 1); }
  Value value_full(Value stage) const { return barrier(1, stage, 0); }
  Value value_empty(Value stage) const { return barrier(1, stage, 1); }
  /// Of values as they come, ahead of those that are transposed.
  Value raw_full(Value stage) const { return barrier(2, stage, 0); }
  Value raw_empty(Value stage) const { return barrier(2, stage, 1); }
  /// Of values as the producer brings them.
  Value values_full(Value stage) const { return t.narrow ? raw_full(stage) : value_full(stage); }
  /// Where values in pages come whose last rows are cleared before consumers hear of them.
  Value landed() const { return ir.add(barriers, 16 * t.q_stages + (t.narrow ? 48 : 32) * t.stages); }
  Value key_stage(Value stage) const {
    return ir.add(ir.add(memory, t.keys_offset), ir.mul(stage, t.key_bytes));
  }
  Value value_stage(Value stage) const {
    return ir.add(ir.add(memory, t.values_offset), ir.mul(stage, t.value_bytes));
  }
  Value weights_at() const { return ir.add(memory, t.weights_offset); }
  Value turned_stage(Value stage) const {
    return ir.add(ir.add(memory, t.turned_offset), ir.mul(stage, t.turned_bytes));
  }

  HopperIr& ir;
  const Attention& p;
  const HopperAttentionTiling& t;
  const int64_t together; ///< pairs of entry and head
  const GpuIr::Arguments& arguments;
  AttentionBlock block;
  const AttentionSoftmax* softmax = nullptr; ///< of a consumer's warp
  const AttentionColumns* columns = nullptr; ///< in its place, swapped
  Value memory, barriers;                    ///< i32 addresses of shared memory
  Value consumer;                            ///< its number
  Value q_place;                             ///< the stage of the present rows' Q
  Value dense_queries, dense_keys;           ///< i1: no table cuts entries off; null: none could
};

} // namespace deepgen
