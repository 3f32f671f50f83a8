// What the epilogue reads of a matrix of D's shape: by TMA to the buffers through which D leaves, in the form
// in which D's elements will be there, so that each thread finds its own where it will write.
#include "templates/nvidia/hopper_ws/hopper_ws_store.h"

#include "templates/ir/hopper_ir.h"

namespace deepgen {

void HopperStore::initialise(HopperIr& ir, const HopperTiling& t, Value memory) {
  if (t.staging.reads.empty()) return;
  ir.branch(ir.less(ir.thread(), t.read_barriers()), [&] {
    Value first = ir.add(memory, t.read_barriers_offset());
    ir.barrier_init(ir.add(first, ir.shift_left(ir.thread(), 3)), 1);
    ir.fence_barrier_init();
  });
}

Value HopperStore::read_barrier(int64_t pass) const {
  Value number = ir.add(ir.mul(stager(), t.staging.buffers), pass % t.staging.buffers);
  return ir.add(at.memory, ir.add(ir.shift_left(number, 3), t.read_barriers_offset()));
}

/// By the leader, when the buffer is free.
void HopperStore::fetch(int64_t pass) {
  const auto [m_tile, first8] = place_of(pass);
  Value to = buffer_of(pass), barrier = read_barrier(pass);
  ir.arrive_expecting(barrier, t.staging.copied_bytes());
  for (int64_t box = 0; box < t.staging.boxes; ++box)
    ir.load_tile(arguments.at("map_" + t.staging.reads), ir.add(to, box * t.staging.box_bytes), barrier,
                 coordinates(m_tile, first8, box));
}

void HopperStore::fetch() {
  ir.branch(leader, [&] {
    ir.wait_stores_read(0);
    for (int64_t pass = 0; pass < std::min(t.staging.buffers, t.staging.passes); ++pass) fetch(pass);
  });
}

/// What a later pass of the tile reads, into the buffer of this one; of the one before, where that is soon
/// enough: its store need hardly be waited for.
void HopperStore::fetch_behind(int64_t pass) {
  const int64_t buffers = t.staging.buffers, behind = buffers > 2 ? 1 : 0, freed = pass - behind;
  if (freed < 0 || freed + buffers >= t.staging.passes) return;
  if (at.row_end) synchronize(); // all threads read rows
  ir.branch(leader, [&] {
    ir.wait_stores_read(behind);
    fetch(freed + buffers);
  });
}

void HopperStore::take(Value buffer, int64_t first8, int64_t count8, std::vector<Fragment>& fragments) const {
  const int64_t size = size_of(p.d);
  mlir::Type type = ir.memory_type(p.d);
  Values pairs; // in the order of group(): for each 8 columns two
  for (int64_t j = 0; j < count8; j += size == 2 ? 2 : 1) {
    if (size == 2) {
      const bool pair = j + 1 < count8;
      for (Value word :
           ir.load_matrix(ir.pointer_to(matrix_row(buffer, first8 + j, pair)), pair ? 4 : 2, t.swap))
        pairs.push_back(ir.bitcast(ir.lanes(2, type), word));
      continue;
    }
    for (int64_t half = 0; half < 2; ++half) {
      auto load = [&](int64_t i, int64_t count) {
        return ir.load(ir.lanes(count, type), ir.pointer_to(element(buffer, first8 + j, half, i)),
                       count * size);
      };
      pairs.push_back(t.swap ? ir.pack({load(0, 1), load(1, 1)}) : load(0, 2));
    }
  }
  for (size_t i = 0; i < fragments.size(); ++i)
    fragments[i].given = t.swap ? Values{ir.extract(pairs[i / 2], int64_t(i % 2))} : ir.unpack(pairs[i]);
}

} // namespace deepgen
