#include "templates/nvidia/mma_sync/mma_sync_store.h"

#include "templates/gpu/gpu_split_k.h"
#include "templates/ir/nv_ir.h"

#include <numeric>

namespace deepgen {

MmaStore::MmaStore(NvIr& ir, const Gemm& p, const MmaTiling& t, const GpuIr::Arguments& arguments,
                   const MmaPlace& at, const GatedSums& sums)
    : ir(ir), p(p), t(t), arguments(arguments), at(at), sums(sums),
      bounds{at.row_end || p.ranged(Size::m) || p.m % t.bm != 0, p.ranged(Size::n) || p.n % t.columns != 0,
             at.row_end},
      epilogue(ir, p, arguments, at.entry, t.align_d) {}

void MmaStore::emit() {
  if (t.by_warps)
    store_by_warps();
  else
    store_by_blocks();
}

void MmaStore::store_rows(llvm::ArrayRef<Fragment> fragments) {
  if (t.split())
    GpuSplitK(p, t.splits).store(ir, arguments, at.split, at.entry, fragments, bounds, at.weight);
  else
    epilogue.store(fragments, bounds);
}

// Each warp stores its own tile. A lane has two columns of 8 at a time: of 4 bytes an element, four lanes
// write whole sectors. Narrower elements pass through a part of shared memory that is the warp's own, and
// leave in rows.

Values MmaStore::row_of_sums(int64_t i, int64_t half, int64_t j) const {
  const size_t first = size_t((i * n_tiles() + j) * 4 + 2 * half);
  if (!scaled.empty()) return {scaled[first], scaled[first + 1]};
  return {sums[first], sums[first + 1]};
}

/// Not doubles and integers: a call of 2048 x 2048 x 2048 took 3 % longer, one of i8 1 %
/// (benchmarks/gpu/results/h200_one_tile).
bool MmaStore::scales_at_once() const {
  constexpr int64_t kMostSums = 128; // of a thread
  return p.accumulate == Type::f32 && !t.split() && !sums.gated() && m_tiles() * n_tiles() * 4 <= kMostSums;
}

/// A few rows of C at a time: ptxas moves no load across the barrier.
void MmaStore::scale(llvm::function_ref<Value(int64_t, int64_t)> rows, const Values& columns) {
  Values all;
  for (int64_t i = 0; i < m_tiles() * n_tiles() * 4; ++i) all.push_back(sums[size_t(i)]);
  scaled = epilogue.scale(all, bounds, m_tiles(), [&](int64_t i) {
    ir.warp_barrier();
    std::vector<Fragment> out;
    for (int64_t j = 0; j < n_tiles(); ++j)
      for (int64_t half = 0; half < 2; ++half)
        out.push_back({rows(i, half), columns[size_t(j)], row_of_sums(i, half, j)});
    return out;
  });
}

void MmaStore::store_by_warps() {
  Value lane = ir.lane(), g = ir.shift_right_bits(lane, 2), pair = ir.shift_left(ir.bit_and(lane, 3), 1);
  Value first_row = ir.add(at.m0, ir.mul(at.warp_m, t.wm)), row = ir.add(first_row, g);
  Value column = ir.add(ir.add(at.n0, ir.mul(at.warp_n, t.warp_columns)), pair);
  Values columns;
  for (int64_t j = 0; j < n_tiles(); ++j) columns.push_back(ir.add(column, 8 * j));
  const auto rows = [&](int64_t i, int64_t half) { return ir.add(row, 16 * i + 8 * half); };
  if (scales_at_once()) scale(rows, columns);
  Value area, to;
  if (t.warp_pitch) {
    area = ir.offset(at.memory, ir.mul(ir.warp(), t.pass_tiles * 16 * t.warp_pitch));
    to = ir.offset(area, ir.add(ir.mul(g, t.warp_pitch), ir.mul(pair, size_of(p.d))));
    ir.wait_copies(0);
    ir.barrier(); // all warps have read the last tiles
  }
  for (int64_t i = 0; i < m_tiles(); ++i) {
    const int64_t in_pass = i % t.pass_tiles;
    if (t.warp_pitch && i > 0 && in_pass == 0) ir.warp_barrier();
    for (int64_t half = 0; half < 2; ++half) {
      std::vector<Fragment> fragments;
      Value here = rows(i, half);
      for (int64_t j = 0; j < n_tiles(); ++j)
        fragments.push_back({here, columns[size_t(j)], row_of_sums(i, half, j), {}, !scaled.empty()});
      if (t.warp_pitch)
        stage_elements(ir.offset(to, (16 * in_pass + 8 * half) * t.warp_pitch), fragments);
      else
        store_rows(fragments);
    }
    if (t.warp_pitch && in_pass + 1 == t.pass_tiles) {
      ir.warp_barrier();
      copy_rows(area, ir.add(first_row, 16 * (i - in_pass)));
    }
  }
}

void MmaStore::stage_elements(Value to, llvm::ArrayRef<Fragment> fragments) {
  const Values elements = epilogue.results(fragments, bounds);
  for (size_t j = 0; j < elements.size(); ++j)
    ir.store(elements[j], ir.offset(to, int64_t(j) * 8 * size_of(p.d)), 2 * size_of(p.d));
}

void MmaStore::copy_rows(Value from, Value first_row) {
  const int64_t size = size_of(p.d),
                chunk = std::gcd(t.warp_columns * size, std::min<int64_t>(16, t.align_d));
  const int64_t in_row = t.warp_columns * size / chunk, total = t.pass_tiles * 16 * in_row,
                rounds = (total + 31) / 32;
  int64_t together = std::min<int64_t>(rounds, 8);
  while (rounds % together) --together;
  mlir::Type type = ir.lanes(chunk / size, ir.memory_type(p.d));
  Value first_column = ir.add(at.n0, ir.mul(at.warp_n, t.warp_columns));
  ir.rolled_loop(ir.lane(), ir.c(rounds * 32), 32 * together, [&](Value index) {
    Values rows, columns, elements;
    for (int64_t i = 0; i < together; ++i) {
      Value item = ir.add(index, 32 * i);
      if (total % 32) item = ir.min(item, ir.c(total - 1)); // the last ones twice
      Value row = ir.divide(item, in_row), column = ir.remainder(item, in_row);
      Value address = ir.add(ir.mul(row, t.warp_pitch), ir.mul(column, chunk));
      elements.push_back(ir.load(type, ir.offset(from, address), chunk));
      rows.push_back(ir.add(first_row, row));
      columns.push_back(ir.add(first_column, ir.mul(column, chunk / size)));
    }
    for (size_t i = 0; i < elements.size(); ++i) epilogue.write(rows[i], columns[i], elements[i], bounds);
  });
}

// The block stores together: accumulators pass through shared memory, where those of several warps along K
// are added, and operands of the epilogue are read in rows too.

void MmaStore::store_by_blocks() {
  ir.wait_copies(0);
  for (int64_t pass = 0; pass < m_tiles() / t.pass_tiles; ++pass) {
    ir.barrier();
    stage_sums(pass);
    ir.barrier();
    store_pass(pass);
  }
}

/// Writes the accumulators of some rows of every warp to shared memory, one copy for each warp along K.
void MmaStore::stage_sums(int64_t pass) {
  Value lane = ir.lane(), g = ir.shift_right_bits(lane, 2), four = ir.bit_and(lane, 3);
  const bool pairs_a = t.a.load == FragmentLoad::matrix_bytes,
             pairs_b = t.b.load == FragmentLoad::matrix_bytes;
  Value row = ir.add(ir.mul(at.warp_m, 16 * t.pass_tiles), pairs_a ? ir.shift_left(g, 1) : g);
  row = ir.add(row, ir.mul(at.warp_k, t.staging_rows));
  Value column = ir.add(ir.mul(at.warp_n, t.warp_columns), ir.shift_left(four, pairs_b ? 2 : 1));
  Value to = ir.offset(at.memory, ir.mul(ir.add(ir.mul(row, t.staging_pitch), column), t.accumulator_bytes));
  for (int64_t i = 0; i < t.pass_tiles; ++i)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t j = 0; j < n_tiles(); j += pairs_b ? 2 : 1) {
        const size_t first = size_t(((pass * t.pass_tiles + i) * n_tiles() + j) * 4 + 2 * h);
        Values values = {sums[first], sums[first + 1]};
        if (pairs_b) values = {sums[first], sums[first + 4], sums[first + 1], sums[first + 5]};
        const int64_t rows = i * 16 + (pairs_a ? h : 8 * h);
        ir.store(ir.pack(values), ir.offset(to, (rows * t.staging_pitch + j * 8) * t.accumulator_bytes),
                 std::min<int64_t>(16, int64_t(values.size()) * t.accumulator_bytes));
      }
}

Values MmaStore::staged_sums(Value row, Value column) {
  const int64_t lanes = std::min(t.vector, 16 / t.accumulator_bytes);
  mlir::Type type = ir.lanes(lanes, ir.memory_type(p.accumulate));
  Value from =
      ir.offset(at.memory, ir.mul(ir.add(ir.mul(row, t.staging_pitch), column), t.accumulator_bytes));
  Values out;
  for (int64_t first = 0; first < t.vector; first += lanes) {
    Values total;
    for (int64_t k = 0; k < t.k_warps; ++k) {
      const int64_t offset = (k * t.staging_rows * t.staging_pitch + first) * t.accumulator_bytes;
      Values part = ir.unpack(ir.load(type, ir.offset(from, offset), lanes * t.accumulator_bytes));
      for (size_t i = 0; i < part.size(); ++i)
        if (k == 0)
          total.push_back(part[i]);
        else
          total[i] = ir.add_sums(total[i], part[i]);
    }
    out.append(total);
  }
  return out;
}

void MmaStore::store_pass(int64_t pass) {
  const int64_t in_row = t.columns / t.vector, total = t.staging_rows * in_row;
  const int64_t rounds = (total + t.threads - 1) / t.threads;
  // Several at once hide the latency of C and other operands, where accumulators of later passes leave the
  // registers.
  const bool crowded = t.pass_tiles * 16 != t.wm && t.wm * t.wn > 2048;
  int64_t together = total % t.threads ? 1 : std::max<int64_t>(1, (crowded ? 8 : 16) / t.vector);
  while (rounds % together) together /= 2;
  ir.rolled_loop(ir.thread(), ir.c(total), t.threads * together, [&](Value index) {
    llvm::SmallVector<Fragment, 2> fragments;
    for (int64_t i = 0; i < together; ++i) {
      Value item = ir.add(index, i * t.threads);
      Value row = ir.divide(item, in_row), column = ir.mul(ir.remainder(item, in_row), t.vector);
      Values values = staged_sums(row, column);
      Value in_d = row;
      if (t.pass_tiles * 16 != t.wm)
        in_d = ir.add(
            ir.add(ir.mul(ir.divide(row, 16 * t.pass_tiles), t.wm), ir.remainder(row, 16 * t.pass_tiles)),
            pass * 16 * t.pass_tiles);
      fragments.push_back({ir.add(at.m0, in_d), ir.add(at.n0, column), values});
    }
    store_rows(fragments);
  });
}

} // namespace deepgen
