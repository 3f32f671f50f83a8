#include "templates/amd/lds_swizzle.h"

#include "templates/ir/gpu_ir.h"

#include <algorithm>

namespace deepgen {

int64_t LdsSwizzle::rows() const { return std::max<int64_t>(1, banks / row_bytes); }
int64_t LdsSwizzle::pieces() const { return std::min(row_bytes, banks) / 16; }

int64_t LdsSwizzle::of(int64_t row) const {
  const int64_t turn = row / rows() % pieces();
  return four_rows() ? (turn >> 1) | ((turn ^ turn >> 1) & 1) << 1 : turn;
}

Value LdsSwizzle::of(GpuIr& ir, Value row) const {
  Value turn = ir.remainder(ir.divide(row, rows()), pieces());
  if (!four_rows()) return turn;
  Value high = ir.shift_right_bits(turn, 1);
  return ir.bit_or(high, ir.shift_left(ir.bit_and(ir.bit_xor(turn, high), 1), 1));
}

} // namespace deepgen
