// Keys and values in pages: a block of keys comes in boxes that lie within a page each, and whose page each a
// lane looks up. No box is brought whose keys all lie behind the entry's end, or before what a window lets
// rows see, nor is its page looked up. Of keys nothing but scores that are masked is made of what stays in
// their places. Of values zeros take these: their weight is 0, but what a page holds there may be no number.
// Of 8-bit floats these zeros are there before the values are transposed, and the warps that do so wait for
// them.
#include "templates/nvidia/hopper_attention/hopper_attention_kernel.h"

namespace deepgen {

/// Lane i: the page of box i of a block of keys. Lanes beyond the boxes look up one again.
Value HopperAttentionKernel::look_up_pages(Value first) const {
  Value key = ir.add(first, ir.mul(ir.lane(), t.box));
  if (p.mask == AttentionMask::window) key = ir.max(key, block.first().from);
  return block.page_of(ir.min(key, ir.sub(block.keys(), ir.c(1))));
}

/// Of the last block, which comes first; 0 where there is none, as a table may have no entries then.
Value HopperAttentionKernel::look_up_first_pages(const KeyBlocks& blocks) const {
  return ir.branch(
      ir.less(blocks.from, blocks.to), {ir.i32},
      [&] { return Values{look_up_pages(ir.mul(ir.sub(blocks.to, ir.c(1)), t.keys))}; },
      [&] { return Values{ir.c(0)}; })[0];
}

HopperAttentionKernel::PageBoxes HopperAttentionKernel::page_boxes(Value first, Value ids) const {
  PageBoxes boxes;
  boxes.first = first, boxes.ids = ids;
  Value end = ir.divide(ir.add(ir.sub(block.keys(), first), t.box - 1), t.box);
  boxes.to = ir.min(end, ir.c(t.keys / t.box)), boxes.from = ir.c(0);
  if (p.mask == AttentionMask::window) {
    Value seen = block.first().from;
    boxes.from = ir.min(ir.divide(ir.max(ir.sub(seen, first), ir.c(0)), t.box), boxes.to);
  }
  return boxes;
}

/// Whether the last block of keys, which comes first, is not whole.
Value HopperAttentionKernel::is_cut(const KeyBlocks& blocks) const {
  return ir.both(ir.less(blocks.from, blocks.to), ir.less(block.keys(), ir.mul(blocks.to, t.keys)));
}

/// By one lane; where each tells of what it has cleared, the others arrive.
void HopperAttentionKernel::expect(const Source& s, Value full,
                                   const std::function<void()>& expecting) const {
  if (!told_by_lanes(s)) return once(expecting);
  ir.branch(ir.elect(), expecting, [&] { ir.arrive(full); });
}

/// Where a page has a whole block of keys, each block has a box: it begins with a key of the entry.
void HopperAttentionKernel::load_boxes(const Source& s, Value to, Value full, const PageBoxes& boxes) const {
  Value head = block.key_head(), map = arguments.at(std::string("map_") + s.name);
  const auto load_box = [&](Value row, Value page) {
    Value token = ir.bit_and(ir.add(boxes.first, row), p.page_size - 1);
    Value place = ir.add(to, ir.shift_left(row, 7));
    for (int64_t slice = 0; slice < s.slices; ++slice)
      ir.load_tile(map, ir.add(place, slice * s.rows * 128), full,
                   {ir.c(t.slice * slice), token, head, page});
  };
  if (t.box == t.keys && p.mask != AttentionMask::window)
    return expect(s, full, [&] {
      ir.arrive_expecting(full, s.bytes);
      load_box(ir.c(0), boxes.ids);
    });
  const int64_t bytes = s.slices * t.box * 128;
  expect(s, full, [&] { ir.arrive_expecting(full, ir.mul(ir.sub(boxes.to, boxes.from), bytes)); });
  ir.rolled_loop(boxes.from, boxes.to, 1, [&](Value i) {
    Value page = ir.shuffle_index(boxes.ids, i);
    once([&] { load_box(ir.mul(i, t.box), page); });
  });
}

/// Rows of values that no row sees become zeros.
void HopperAttentionKernel::clear_rows(const Source& s, Value stage, Value from, Value end) const {
  clear(s, value_stage(stage), from, end);
  if (told_by_lanes(s)) return; // what warps transpose, they load as these were written
  ir.fence_async();
  ir.warp_barrier();
}

/// Where the entry ends within the block, a page's rows behind the end come with the others.
void HopperAttentionKernel::load_values(const Source& s, Value stage, const PageBoxes& boxes,
                                        Value cut) const {
  if (p.mask == AttentionMask::window)
    ir.branch(ir.less(ir.c(0), boxes.from),
              [&] { clear_rows(s, stage, ir.c(0), ir.mul(boxes.from, t.box)); });
  load_boxes(s, value_stage(stage), ir.select(cut, landed(), values_full(stage)), boxes);
}

/// Who reads them does not hear of the block until they are cleared. `landing`: the parity of landed().
void HopperAttentionKernel::clear_behind_end(const Source& s, Value stage, const PageBoxes& boxes, Value cut,
                                             Value landing) const {
  Value full = values_full(stage);
  ir.branch(cut, [&] {
    ir.wait(landed(), landing);
    clear_rows(s, stage, ir.sub(block.keys(), boxes.first), ir.c(t.keys));
    told_by_lanes(s) ? ir.arrive(full) : once([&] { ir.arrive(full); });
  });
}

/// Rows of a tile become zeros, in pieces of 16 bytes, of a row of each slice by 8 lanes.
void HopperAttentionKernel::clear(const Source& s, Value to, Value from, Value end) const {
  Value zeros = ir.pack(Values(4, ir.c(0)));
  Value first = ir.add(ir.shift_left(from, 7), ir.shift_left(ir.lane(), 4));
  ir.rolled_loop(first, ir.shift_left(end, 7), 32 * 16, [&](Value at) {
    for (int64_t slice = 0; slice < s.slices; ++slice)
      ir.store(zeros, ir.pointer_to(ir.add(ir.add(to, at), slice * s.rows * 128)), 16);
  });
}

} // namespace deepgen
