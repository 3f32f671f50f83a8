#include "templates/nvidia/hopper_ws/hopper_ws_store.h"

#include "templates/core/sizes.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/ir/epilogue.h"
#include "templates/ir/hopper_ir.h"

#include <numeric>

namespace deepgen {

HopperStore::HopperStore(HopperIr& ir, const Gemm& p, const HopperTiling& t,
                         const GpuIr::Arguments& arguments, const HopperPlace& at, const GatedSums& sums)
    : ir(ir), p(p), t(t), arguments(arguments), at(at), sums(sums),
      bounds{at.row_end || p.ranged(Size::m) || p.m % t.cluster_rows() != 0,
             p.ranged(Size::n) || p.n % t.cluster_columns() != 0, at.row_end},
      thread(ir.opaque(ir.bit_and(ir.thread(), 127))), lane(ir.bit_and(thread, 31)),
      warp(ir.shuffle_index(ir.shift_right_bits(thread, 5), ir.c(0))),
      leader(ir.less(t.swap ? thread : lane, 1)), epilogue(ir, p, arguments, at.entry, t.align_d) {
  if (reads()) epilogue.give(t.staging.reads);
}

Values HopperStore::group(int64_t m_tile, int64_t column8) const {
  const size_t first = size_t(m_tile * t.bn / 2 + column8 * 4);
  if (!scaled.empty()) return Values(scaled.begin() + first, scaled.begin() + first + 4);
  return {sums[first], sums[first + 1], sums[first + 2], sums[first + 3]};
}

Value HopperStore::tile_row(int64_t m_tile) const {
  Value row = ir.add(ir.mul(warp, 16), 64 * m_tile);
  return t.pingpong ? row : ir.add(row, ir.mul(at.consumer, t.warpgroup_rows));
}

/// Fragments in the order of group(): for each 8 columns two of two elements, or four of one.
std::vector<Fragment> HopperStore::fragments(int64_t m_tile, int64_t first8, int64_t count8) const {
  Value row = ir.add(tile_row(m_tile), ir.shift_right_bits(lane, 2)),
        pair = ir.shift_left(ir.bit_and(lane, 3), 1);
  Value m[2];
  for (int64_t half = 0; half < 2; ++half) m[half] = ir.add(at.m0, ir.add(row, 8 * half));
  std::vector<Fragment> out;
  for (int64_t j = first8; j < first8 + count8; ++j) {
    const Values s = group(m_tile, j);
    Value column = ir.add(pair, 8 * j), n[2] = {ir.add(at.n0, column), nullptr};
    if (t.swap) n[1] = ir.add(at.n0, ir.add(column, 1));
    for (size_t half = 0; half < 2; ++half)
      if (t.swap)
        for (size_t i = 0; i < 2; ++i) out.push_back({n[i], m[half], {s[2 * half + i]}, {}, !scaled.empty()});
      else
        out.push_back({m[half], n[0], {s[2 * half], s[2 * half + 1]}, {}, !scaled.empty()});
  }
  return out;
}

/// Where ptxas spilled (benchmarks/gpu/results/h200_spills): 976 configs of ping-pong tiles, 144 to 192 sums.
bool HopperStore::forgets_addresses(const Gemm& p, int64_t sums, bool swap) {
  constexpr int64_t kMany = 128, kMost = 160;
  if (p.gate || sums <= kMany) return false;
  if (swap) return sums > kMost || size_of(p.d) != 2 || has_operand(p.epilogue, OperandShape::row);
  return size_of(p.d) == 1 ||
         (size_of(p.d) == 2 && sums > kMost && has_operand(p.epilogue, OperandShape::column));
}

void HopperStore::emit() {
  if (t.split()) return store_partial_sums();
  if (!sums.gated() && t.scales_at_once(p)) scale();
  const bool anew = forgets_addresses(p, t.sums(), t.swap);
  for (int64_t pass = 0; pass < t.m_tiles() * (t.bn / 8 / columns8()); ++pass) {
    if (anew && pass > 0) lane = ir.opaque(lane);
    store_pass(place_of(pass).first, place_of(pass).second, columns8(), pass);
  }
  if (reads() && at.row_end) synchronize(); // all threads read rows, and TMA will write there
}

/// A few columns of C at a time: ptxas moves no load across the barrier.
void HopperStore::scale() {
  const int64_t of_row = t.bn / 8, each = std::gcd(of_row, 4), in_row = of_row / each;
  Values all;
  for (int64_t m_tile = 0; m_tile < t.m_tiles(); ++m_tile)
    for (int64_t j = 0; j < of_row; ++j) llvm::append_range(all, group(m_tile, j));
  scaled = epilogue.scale(all, bounds, t.m_tiles() * in_row, [&](int64_t part) {
    ir.warp_barrier();
    return fragments(part / in_row, part % in_row * each, each);
  });
}

std::pair<int64_t, int64_t> HopperStore::place_of(int64_t pass) const {
  return {pass % t.m_tiles(), pass / t.m_tiles() * columns8()};
}

void HopperStore::store_partial_sums() {
  const GpuSplitK split(p, t.splits);
  for (int64_t m_tile = 0; m_tile < t.m_tiles(); ++m_tile)
    for (int64_t j = 0; j < t.bn / 8; j += 2)
      split.store(ir, arguments, at.split, at.entry, fragments(m_tile, j, std::min<int64_t>(2, t.bn / 8 - j)),
                  bounds, at.weight);
}

void HopperStore::leave_sums(Value to, int64_t pitch) {
  for (int64_t m_tile = 0; m_tile < t.m_tiles(); ++m_tile)
    for (int64_t j = 0; j < t.bn / 8; ++j)
      for (const Fragment& f : fragments(m_tile, j, 1)) {
        Value address = ir.add(to, ir.shift_left(ir.add(ir.mul(f.row, pitch), f.column), 2));
        ir.store(ir.pack(f.values), ir.pointer_to(address), 4 * int64_t(f.values.size()));
      }
}

/// Through one buffer: a warp's 16 rows of D (a warpgroup's 64 columns when swapped).
void HopperStore::store_pass(int64_t m_tile, int64_t first8, int64_t count8, int64_t pass) {
  Value to = buffer_of(pass);
  if (reads()) to = ir.opaque(to); // else addresses are kept from one pass through a buffer to the next
  await_buffer(pass);
  // A few at a time: what the epilogue needs beside the sums takes registers.
  const int64_t each = t.sums() > 128 ? 2 : 4;
  for (int64_t j = 0; j < count8; j += each) {
    const int64_t count = std::min(each, count8 - j);
    std::vector<Fragment> each_sum = fragments(m_tile, first8 + j, count);
    if (reads()) take(to, j, count, each_sum);
    stage(to, epilogue.results(each_sum, bounds), j, count);
  }
  if (t.stores_tiles()) ir.fence_async();
  synchronize();
  if (t.stores_tiles() && at.row_end)
    ir.branch(
        is_whole(m_tile), [&] { copy_tile(to, m_tile, first8); },
        [&] {
          copy_rows(to, m_tile, first8);
          ir.branch(leader, [&] { ir.commit_stores(); }); // of nothing: groups are counted by buffer
        });
  else if (t.stores_tiles())
    copy_tile(to, m_tile, first8);
  else
    copy_rows(to, m_tile, first8);
  if (reads()) fetch_behind(pass);
}

Value HopperStore::stager() const { return t.swap ? at.consumer : ir.add(ir.mul(at.consumer, 4), warp); }

Value HopperStore::buffer_of(int64_t pass) const {
  Value owner = stager();
  const int64_t buffers = t.staging.buffers, buffer = pass % buffers;
  return ir.add(ir.add(at.memory, t.staging_offset + buffer * t.staging.buffer_bytes()),
                ir.mul(owner, buffers * t.staging.buffer_bytes()));
}

/// Until nothing reads the buffer any more; or until it holds what the pass reads, which was asked for then.
void HopperStore::await_buffer(int64_t pass) const {
  const int64_t buffers = t.staging.buffers;
  if (reads()) {
    const int64_t use = pass / buffers, uses = ceil_div(t.staging.passes - pass % buffers, buffers);
    Value parity = uses % 2 ? ir.bit_xor(at.parity, use % 2) : ir.c(use % 2);
    return ir.wait(read_barrier(pass), parity);
  }
  // The last pass of the tile before may have used this buffer, where they are odd in number.
  const int64_t in_flight = pass == 0 ? 0 : buffers - 1;
  if (pass < buffers && t.once(p)) return; // nothing was there before
  if (t.stores_tiles()) ir.branch(leader, [&] { ir.wait_stores_read(in_flight); });
  synchronize();
}

void HopperStore::synchronize() const {
  if (t.swap)
    ir.named_barrier(ir.add(at.consumer, 1), 128);
  else
    ir.warp_barrier();
}

Value HopperStore::staged(Value buffer, Value row, Value byte) const {
  const int64_t width = t.staging.row_bytes;
  Value box, in_row = byte;
  if (t.staging.boxes > 1) box = ir.divide(byte, width), in_row = ir.remainder(byte, width);
  Value unit = ir.shift_right_bits(in_row, 4);
  // The address's bits 4.. are combined with its bits 7..: the units of a row with the row's number.
  if (t.staging.swizzle == 128) unit = ir.bit_xor(unit, ir.bit_and(row, 7));
  if (t.staging.swizzle == 64) unit = ir.bit_xor(unit, ir.bit_and(ir.shift_right_bits(row, 1), 3));
  if (t.staging.swizzle == 32) unit = ir.bit_xor(unit, ir.bit_and(ir.shift_right_bits(row, 2), 1));
  Value offset = ir.add(ir.mul(row, width), ir.add(ir.shift_left(unit, 4), ir.bit_and(in_row, 15)));
  if (box) offset = ir.add(offset, ir.mul(box, t.staging.box_bytes));
  return ir.add(buffer, offset);
}

void HopperStore::stage(Value buffer, mlir::ValueRange elements, int64_t first8, int64_t count8) const {
  if (size_of(p.d) != 2) return stage_elements(buffer, elements, first8, count8);
  Values words;
  for (size_t i = 0; i < elements.size(); ++i)
    if (!t.swap)
      words.push_back(ir.bitcast(ir.i32, elements[i]));
    else if (i % 2)
      words.push_back(ir.bitcast(ir.i32, ir.pack({elements[i - 1], elements[i]})));
  stage_matrices(buffer, words, first8, count8);
}

/// 16-bit elements: each instruction takes 16 columns of wgmma's N of 16 rows of its M.
void HopperStore::stage_matrices(Value buffer, mlir::ValueRange words, int64_t first8, int64_t count8) const {
  for (int64_t j = 0; j < count8; j += 2) {
    const bool pair = j + 1 < count8;
    ir.store_matrix(matrix_row(buffer, first8 + j, pair), words.slice(size_t(2 * j), pair ? 4 : 2), t.swap);
  }
}

/// Low rows, high rows, then the next 8 columns.
Value HopperStore::matrix_row(Value buffer, int64_t column8, bool pair) const {
  Value low = ir.bit_and(lane, 7), eight = ir.bit_and(ir.shift_right_bits(lane, 3), 1),
        sixteen = ir.shift_right_bits(lane, 4);
  Value row = t.swap ? ir.add(ir.add(low, ir.shift_left(sixteen, 3)), 8 * column8)
                     : ir.add(low, ir.shift_left(eight, 3));
  Value byte = t.swap ? ir.add(ir.mul(warp, 32), ir.shift_left(eight, 4))
                      : ir.add(ir.shift_left(sixteen, 4), 16 * column8);
  // Of the two matrices, lanes 16 to 31 do not count, but their addresses should exist.
  if (!pair) {
    if (t.swap)
      row = ir.add(low, 8 * column8);
    else
      byte = ir.c(16 * column8);
  }
  return staged(buffer, row, byte);
}

void HopperStore::stage_elements(Value buffer, mlir::ValueRange elements, int64_t first8,
                                 int64_t count8) const {
  const int64_t size = size_of(p.d);
  for (int64_t j = 0; j < count8; ++j)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < (t.swap ? 2 : 1); ++i) {
        Value to = element(buffer, first8 + j, half, i);
        if (t.swap)
          ir.store(elements[size_t(4 * j + 2 * half + i)], ir.pointer_to(to), size);
        else
          ir.store(elements[size_t(2 * j + half)], ir.pointer_to(to), 2 * size);
      }
}

Value HopperStore::element(Value buffer, int64_t column8, int64_t half, int64_t i) const {
  const int64_t size = size_of(p.d);
  Value g = ir.shift_right_bits(lane, 2), pair = ir.shift_left(ir.bit_and(lane, 3), 1);
  Value row = ir.add(t.swap ? ir.add(ir.mul(warp, 16), g) : g, 8 * half);
  Value column = ir.add(pair, 8 * column8 + i);
  return t.swap ? staged(buffer, column, ir.mul(row, size)) : staged(buffer, row, ir.mul(column, size));
}

Value HopperStore::is_whole(int64_t m_tile) const {
  Value first = t.swap ? at.n0 : ir.add(at.m0, tile_row(m_tile));
  return ir.less(ir.add(first, t.staging.rows - 1), at.row_end);
}

void HopperStore::copy_tile(Value buffer, int64_t m_tile, int64_t first8) {
  ir.branch(leader, [&] {
    for (int64_t box = 0; box < t.staging.boxes; ++box)
      ir.store_tile(arguments.at("map_d"), ir.add(buffer, box * t.staging.box_bytes),
                    coordinates(m_tile, first8, box));
    ir.commit_stores();
  });
}

Values HopperStore::coordinates(int64_t m_tile, int64_t first8, int64_t box) const {
  // A warpgroup's 64 columns start with its first warp's, which the leader is in.
  Value m = ir.add(at.m0, tile_row(m_tile)), n = ir.add(at.n0, 8 * first8);
  Values to = {ir.add(t.swap ? m : n, box * t.staging.columns), t.swap ? n : m};
  if (p.batch > 1) to.push_back(at.entry);
  return to;
}

/// Rows that TMA cannot address: by the threads that staged them.
void HopperStore::copy_rows(Value buffer, int64_t m_tile, int64_t first8) {
  const int64_t size = size_of(p.d), in_all = t.staging.boxes * t.staging.columns * size,
                threads = t.swap ? 128 : 32;
  const int64_t chunk = std::gcd(in_all, t.align_d), in_row = in_all / chunk, total = t.staging.rows * in_row;
  mlir::Type type = ir.lanes(chunk / size, ir.memory_type(p.d));
  Value warp_row = tile_row(m_tile), first = lane;
  if (t.swap) warp_row = ir.sub(warp_row, ir.mul(warp, 16)), first = thread;
  const int64_t rounds = ceil_div(total, threads);
  int64_t together = std::min<int64_t>(rounds, 8); // hides the latency of shared memory
  while (rounds % together) --together;
  ir.rolled_loop(first, ir.c(rounds * threads), threads * together, [&](Value index) {
    Values lines, bytes, elements;
    for (int64_t i = 0; i < together; ++i) {
      Value item = ir.add(index, threads * i);
      if (total % threads) item = ir.min(item, ir.c(total - 1)); // the last ones twice
      lines.push_back(ir.divide(item, in_row));
      bytes.push_back(ir.mul(ir.remainder(item, in_row), chunk));
      elements.push_back(ir.load(type, ir.pointer_to(staged(buffer, lines.back(), bytes.back())), chunk));
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      Value in_line = ir.divide(bytes[i], size);
      if (t.swap)
        epilogue.write(ir.add(at.n0, lines[i]), ir.add(ir.add(at.m0, warp_row), in_line), elements[i],
                       bounds);
      else
        epilogue.write(ir.add(at.m0, ir.add(warp_row, lines[i])), ir.add(ir.add(at.n0, 8 * first8), in_line),
                       elements[i], bounds);
    }
  });
}

} // namespace deepgen
