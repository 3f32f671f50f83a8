// The warp that fills shared memory. Whole tiles come by TMA. Where a table cuts an entry off, what is behind
// its end is another entry's, or nobody's: then lanes copy the rows of a tile that are left, and fill up with
// zeros, so that no value that is not the entry's meets the weight 0.
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

namespace deepgen {

void HopperAttentionKernel::produce() {
  if (t.producer_registers) ir.registers(false, t.producer_registers);
  const auto work = [&] {
    walk(Values(p.paged() ? 5 : 4, ir.c(0)), [&](mlir::ValueRange carried) { return fill(carried); });
  };
  const auto bring = [&] { by_warp() ? work() : ir.branch(ir.elect(), work); };
  if (!t.narrow) return ir.branch(ir.less(ir.warp(), 1), bring);
  ir.branch(ir.less(ir.warp(), 1), bring, [&] { turn_values(); });
}

/// By one lane.
void HopperAttentionKernel::once(const std::function<void()>& body) const {
  by_warp() ? ir.branch(ir.elect(), body) : body();
}

/// Blocks of keys from the last one on: those that are masked or cut off come first. The first one need not
/// wait for Q's place, which the rows before take up longest. Rows that see no keys have no Q.
Values HopperAttentionKernel::fill(mlir::ValueRange carried) {
  const Source q = {"q", p.q, t.rows, t.q_slices, p.head_dim, t.q_bytes},
               key = {"key", p.kv, t.keys, t.q_slices, p.head_dim, t.key_bytes},
               value = {"value", p.kv, t.keys, t.value_slices, p.value_dim, t.value_bytes};
  const KeyBlocks blocks = key_blocks();
  const RingPlace of_q{carried[0], carried[1]};
  Value cut = p.paged() ? is_cut(blocks) : nullptr;
  Values start(carried.slice(2, 2));
  if (p.paged()) start.push_back(look_up_first_pages(blocks));
  const Values ring =
      ir.rolled_loop(ir.c(0), ir.sub(blocks.to, blocks.from), 1, start, [&](Value i, mlir::ValueRange at) {
        const RingPlace place{at[0], at[1]};
        Value number = ir.sub(ir.sub(blocks.to, i), ir.c(1)), first = ir.mul(number, t.keys),
              left = ir.sub(block.keys(), first), free = ir.bit_xor(place.parity, 1);
        Values going_on;
        PageBoxes boxes;
        if (p.paged()) { // pages of the next block are on their way while this one's are used
          boxes = page_boxes(first, at[2]);
          going_on = {look_up_pages(ir.mul(ir.max(ir.sub(number, ir.c(1)), blocks.from), t.keys))};
        }
        ir.wait(key_empty(place.stage), free);
        if (p.paged())
          load_boxes(key, key_stage(place.stage), key_full(place.stage), boxes);
        else
          load(key, key_stage(place.stage), key_full(place.stage), first, left);
        ir.branch(ir.less(i, 1), [&] {
          ir.wait(q_empty(of_q.stage), ir.bit_xor(of_q.parity, 1));
          if (!t.pack)
            return load(q, q_stage(of_q.stage), q_full(of_q.stage), block.begin(), block.rows_left());
          gather_packed(q, q_stage(of_q.stage));
          if (!behind_values()) gathered(q, q_full(of_q.stage));
        });
        ir.wait(t.narrow ? raw_empty(place.stage) : value_empty(place.stage), free);
        Value ends = p.paged() ? ir.both(cut, ir.less(i, 1)) : nullptr;
        if (p.paged())
          load_values(value, place.stage, boxes, ends);
        else
          load(value, value_stage(place.stage), values_full(place.stage), first, left);
        if (behind_values()) ir.branch(ir.less(i, 1), [&] { gathered(q, q_full(of_q.stage)); });
        if (p.paged()) clear_behind_end(value, place.stage, boxes, ends, carried[4]);
        const RingPlace after = next(place);
        going_on.insert(going_on.begin(), {after.stage, after.parity});
        return going_on;
      });
  Values after = places(after_q(of_q, blocks), {ring[0], ring[1]});
  if (p.paged()) after.push_back(ir.bit_xor(carried[4], ir.select(cut, ir.c(1), ir.c(0))));
  return after;
}

/// The tile that begins with a token of the entry, of which there are `left` from there on.
void HopperAttentionKernel::load(const Source& s, Value to, Value full, Value token, Value left) {
  const auto whole = [&] {
    const auto tile = [&] { copy(s, to, full, token); };
    if (!told_by_lanes(s)) return once(tile);
    ir.branch(ir.elect(), tile, [&] { ir.arrive(full); });
  };
  if (!p.varlen) return whole();
  Value dense = s.name[0] == 'q' ? dense_queries : dense_keys;
  ir.branch(ir.bit_or(dense, ir.at_least(left, s.rows)), whole, [&] { gather(s, to, full, token, left); });
}

void HopperAttentionKernel::copy(const Source& s, Value to, Value full, Value token) const {
  const bool q = s.name[0] == 'q';
  Value head = q ? block.head() : block.key_head();
  Value row = ir.add(token, q ? block.first_query() : block.first_key());
  ir.arrive_expecting(full, s.bytes);
  for (int64_t slice = 0; slice < s.slices; ++slice)
    ir.load_tile(arguments.at(std::string("map_") + s.name), ir.add(to, slice * s.rows * 128), full,
                 {ir.c(t.slice * slice), row, head, block.entry()});
}

/// Of tokens of the operand, one behind the other.
void HopperAttentionKernel::gather(const Source& s, Value to, Value full, Value token, Value left) const {
  Value pitch = block.pitch(s.name, s.type);
  Value from = s.name[0] == 'q' ? block.address("q", s.type, token, block.head())
                                : ir.offset(block.keys_address(s.name), ir.mul(ir.to_i64(token), pitch));
  gather_rows(s, to, ir.c(s.rows * 8 * s.slices), left,
              [&](Value row) { return ir.offset(from, ir.mul(ir.to_i64(row), pitch)); });
  gathered(s, full);
}

/// Packed, rows of the tile are of several heads, of which a token's follow each other. Few are brought, as
/// calls that are packed have few; the others become zeros, so that no row depends on what was there before.
void HopperAttentionKernel::gather_packed(const Source& q, Value to) const {
  Value left = ir.min(block.rows_left(), ir.c(q.rows));
  gather_rows(q, to, ir.mul(left, 8 * q.slices), left, [&](Value in_block) {
    const AttentionBlock::Row row = block.row(in_block);
    return block.address("q", q.type, row.token, row.head);
  });
  clear(q, to, left, ir.c(q.rows));
}

/// In pieces of 16 bytes, to where TMA puts them: of rows from `left` on zeros.
void HopperAttentionKernel::gather_rows(const Source& s, Value to, Value pieces, Value left,
                                        const std::function<Value(Value row)>& address) const {
  const int64_t in_row = 8 * s.slices;
  ir.rolled_loop(ir.lane(), pieces, 32, [&](Value piece) {
    Value row = ir.divide(piece, in_row), column = ir.remainder(piece, in_row);
    Value place = ir.bit_xor(ir.bit_and(column, 7), ir.bit_and(row, 7));
    place = ir.add(ir.shift_left(row, 7), ir.shift_left(place, 4));
    place = ir.add(ir.add(to, place), ir.mul(ir.shift_right_bits(column, 3), s.rows * 128));
    Value inside = ir.both(ir.less(row, left), ir.less(column, s.elements * size_of(s.type) / 16));
    Value source = ir.offset(address(row), ir.shift_left(column, 4));
    ir.assembly(nullptr, "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r",
                {place, source, ir.select(inside, ir.c(16), ir.c(0))}, true);
  });
}

/// Tells of it when what the warp has copied is there.
void HopperAttentionKernel::gathered(const Source& s, Value full) const {
  ir.commit_copies();
  ir.wait_copies(0);
  if (!t.narrow || s.name[0] != 'v')
    ir.fence_async(); // what warps transpose, they load as these were written
  if (told_by_lanes(s)) return ir.arrive(full);
  ir.warp_barrier();
  once([&] { ir.arrive(full); });
}

} // namespace deepgen
