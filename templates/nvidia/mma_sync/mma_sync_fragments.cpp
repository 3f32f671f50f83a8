#include "templates/nvidia/mma_sync/mma_sync_fragments.h"
#include "templates/ir/ir_record.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "templates/ir/nv_ir.h"

#include <algorithm>
#include <numeric>

namespace deepgen {

namespace llvmd = mlir::LLVM;

// sm_90 also multiplies 8 and 16 steps of f64 at once; measured on an H200, that takes longer, and twice the
// registers.
MmaShape::MmaShape(Type a_type, Type b_type, int64_t capability)
    : a(a_type), b(b_type), doubles(a == Type::f64), halves(doubles && capability < 90), bytes(32),
      k(bytes / size_of(a)), a_values(doubles ? k / 2 : 4), b_values(doubles ? k / 4 : 2) {}

SharedTile::SharedTile(Type t, bool k, int64_t size, int64_t k_bytes)
    : type(t), k_contiguous(k), extent(size), element(size_of(t)) {
  load = type == Type::f64 || (type == Type::tf32 && !k) ? FragmentLoad::elements
         : k                                             ? FragmentLoad::matrix
         : element == 1                                  ? FragmentLoad::matrix_bytes
                                                         : FragmentLoad::matrix_transposed;
  rows = k ? extent : k_bytes / element;
  row_bytes = k ? k_bytes : extent * element;
  // ldmatrix reads 8 rows of 16 bytes at once, single elements come from 4 rows of 32 bytes: 128 bytes, each
  // of which must lie in another bank.
  chunk = load == FragmentLoad::elements ? 32 : 16;
  const int64_t together = 128 / chunk;
  classes = std::gcd(row_bytes / chunk, together);
  period = classes == 1 ? 1 : load == FragmentLoad::matrix_bytes ? 2 * together : together;
}

Value SharedTile::swizzle(NvIr& ir, Value row) const {
  if (classes == 1) return ir.c(0);
  // Rows 0 1 4 5 8 9 12 13 are read together, or 2 3 6 7 10 11 14 15: the bit between says nothing.
  Value key = load != FragmentLoad::matrix_bytes
                  ? row
                  : ir.bit_or(ir.shift_left(ir.shift_right_bits(row, 2), 1), ir.bit_and(row, 1));
  return ir.mul(ir.bit_and(ir.divide(key, 128 / chunk / classes), classes - 1), chunk);
}

Value SharedTile::address(NvIr& ir, Value row, Value column) const {
  return ir.add(ir.mul(row, row_bytes), ir.bit_xor(column, swizzle(ir, row)));
}

FragmentReader::FragmentReader(NvIr& ir, const SharedTile& tile, const MmaShape& shape, bool is_a,
                               Value first, int64_t tiles, Value k_first, int64_t steps)
    : ir_(ir), tile_(tile), shape_(shape), is_a_(is_a), tiles_(tiles), steps_(steps) {
  switch (tile.load) {
  case FragmentLoad::matrix:
    prepare_matrix(first, k_first);
    break;
  case FragmentLoad::elements:
    prepare_elements(first, k_first);
    break;
  default:
    prepare_transposed(first, k_first);
  }
}

// Each lane gives the address of one row of 16 bytes: lanes 0-7 of the first 8 x 8 matrix, and so on. The
// four of A are rows 0-7, 8-15 at the first 16 bytes of K, then both at the second; those of B two pieces of
// K for each of two tiles.
void FragmentReader::prepare_matrix(Value first, Value k_first) {
  Value lane = ir_.lane();
  Value low = ir_.bit_and(ir_.shift_right_bits(lane, 3), 1), high = ir_.shift_right_bits(lane, 4);
  Value row = ir_.add(first, ir_.add(ir_.bit_and(lane, 7), ir_.shift_left(is_a_ ? low : high, 3)));
  Value column = ir_.add(ir_.mul(k_first, tile_.element), ir_.shift_left(is_a_ ? high : low, 4));
  for (int64_t step = 0; step < steps_; ++step)
    offsets_.push_back(tile_.address(ir_, row, ir_.add(column, step * shape_.bytes)));
}

Values FragmentReader::read_matrix(Value stage, int64_t step) const {
  Values out;
  for (int64_t i = 0; i < tiles_; i += is_a_ ? 1 : 2) {
    Value at = ir_.offset(ir_.offset(stage, offsets_[size_t(step)]), i * (is_a_ ? 16 : 8) * tile_.row_bytes);
    out.append(ir_.load_matrix(at, is_a_ || i + 1 < tiles_ ? 4 : 2, false));
  }
  return out;
}

// Rows run along M or N. A matrix of 8 steps of K by 16 bytes comes out transposed. For 8-bit elements, which
// come out in pairs, row r of a matrix is the step 4 (r / 2) + r % 2 of K, or two more: a lane then has 4
// successive steps of two rows of A (or columns of B), 2g and 2g + 1, and calls them g and g + 8.
void FragmentReader::prepare_transposed(Value first, Value k_first) {
  Value lane = ir_.lane();
  Value low = ir_.bit_and(ir_.shift_right_bits(lane, 3), 1), high = ir_.shift_right_bits(lane, 4);
  Value r = ir_.bit_and(lane, 7), row, column = ir_.mul(first, tile_.element);
  if (tile_.load == FragmentLoad::matrix_bytes) {
    row = ir_.add(ir_.shift_left(ir_.shift_right_bits(r, 1), 2), ir_.bit_and(r, 1));
    row = ir_.add(row, ir_.add(ir_.shift_left(low, 1), ir_.shift_left(high, 4)));
  } else {
    row = ir_.add(r, ir_.shift_left(is_a_ ? high : low, 3));
    column = ir_.add(column, ir_.shift_left(is_a_ ? low : high, 4));
  }
  row = ir_.add(row, k_first);
  for (int64_t i = 0; i < tiles_; i += is_a_ ? 1 : 2)
    offsets_.push_back(tile_.address(ir_, row, ir_.add(column, i * (is_a_ ? 16 : 8) * tile_.element)));
}

Values FragmentReader::read_transposed(Value stage, int64_t step) const {
  auto permute = [&](Value x, Value y, int64_t selector) -> Value {
    return llvmd::CallIntrinsicOp::create(ir_.b, ir_.loc, ir_.i32, ir_.b.getStringAttr("llvm.nvvm.prmt"),
                                          mlir::ValueRange{x, y, ir_.c(selector)})
        .getResult(0);
  };
  Values out;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    Value at = ir_.offset(ir_.offset(stage, offsets_[i]), step * shape_.k * tile_.row_bytes);
    Values x = ir_.load_matrix(at, is_a_ || int64_t(2 * i + 1) < tiles_ ? 4 : 2, true);
    if (tile_.load != FragmentLoad::matrix_bytes) {
      out.append(x);
      continue;
    }
    constexpr int64_t kEven = 0x6420, kOdd = 0x7531;
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t half = is_a_ ? j / 2 : j % 2, parity = is_a_ ? j % 2 : j / 2;
      out.push_back(permute(x[size_t(2 * half)], x[size_t(2 * half + 1)], parity ? kOdd : kEven));
    }
  }
  return out;
}

// Lane (g, t) takes row g (and g + 8 of A), steps t, t + 4, ... of K.
void FragmentReader::prepare_elements(Value first, Value k_first) {
  Value lane = ir_.lane();
  Value g = ir_.add(first, ir_.shift_right_bits(lane, 2)), t = ir_.add(k_first, ir_.bit_and(lane, 3));
  if (tile_.k_contiguous)
    for (int64_t k = 0; k < steps_ * shape_.k; k += 4)
      offsets_.push_back(tile_.address(ir_, g, ir_.mul(ir_.add(t, k), tile_.element)));
  else
    for (int64_t i = 0; i < tiles_ * (is_a_ ? 2 : 1); ++i)
      offsets_.push_back(tile_.address(ir_, t, ir_.mul(ir_.add(g, 8 * i), tile_.element)));
}

Values FragmentReader::read_tile(Value stage, int64_t step, int64_t tile) const {
  mlir::Type type = tile_.element == 8 ? ir_.f64 : ir_.i32;
  const int64_t halves = is_a_ ? 2 : 1;
  Values out;
  for (int64_t k = 0; k < shape_.k; k += 4)
    for (int64_t h = 0; h < halves; ++h) {
      const int64_t eight = halves * tile + h;
      const int64_t variant = tile_.k_contiguous ? (step * shape_.k + k) / 4 : eight;
      const int64_t rest = tile_.k_contiguous ? eight * 8 : step * shape_.k + k;
      Value at = ir_.offset(ir_.offset(stage, offsets_[size_t(variant)]), rest * tile_.row_bytes);
      out.push_back(ir_.load(type, at, tile_.element));
    }
  return out;
}

Values FragmentReader::read_elements(Value stage, int64_t step) const {
  Values out;
  for (int64_t i = 0; i < tiles_; ++i) out.append(read_tile(stage, step, i));
  return out;
}

Values FragmentReader::read(Value stage, int64_t step) const {
  switch (tile_.load) {
  case FragmentLoad::matrix:
    return read_matrix(stage, step);
  case FragmentLoad::elements:
    return read_elements(stage, step);
  default:
    return read_transposed(stage, step);
  }
}

namespace {

std::string intrinsic(const MmaShape& shape) {
  const std::string prefix = "llvm.nvvm.mma.";
  switch (shape.a) {
  case Type::f64:
    return prefix + (shape.halves ? "m8n8k4" : "m16n8k" + std::to_string(shape.k)) + ".row.col.f64";
  case Type::f16:
    return prefix + "m16n8k16.row.col.f32.f32";
  case Type::bf16:
    return prefix + "m16n8k16.row.col.bf16";
  case Type::i8:
    return prefix + "m16n8k32.row.col.s8";
  case Type::e4m3:
  case Type::e5m2:
    return prefix + "m16n8k32.row.col.f32." + to_string(shape.a) + "." + to_string(shape.b) + ".f32";
  default:
    return prefix + "m16n8k8.row.col.tf32";
  }
}

void call(NvIr& ir, const std::string& name, mlir::ValueRange operands, llvm::MutableArrayRef<Value> sums) {
  Values all(operands);
  all.append(sums.begin(), sums.end());
  mlir::Type type = record_of(int64_t(sums.size()), sums[0].getType());
  Value out = llvmd::CallIntrinsicOp::create(ir.b, ir.loc, type, ir.b.getStringAttr(name), all).getResult(0);
  llvm::copy(fields_of(ir, out), sums.begin());
}

} // namespace

void multiply(NvIr& ir, const MmaShape& shape, mlir::ValueRange a, mlir::ValueRange b,
              llvm::MutableArrayRef<Value> sums) {
  const std::string name = intrinsic(shape);
  if (shape.halves) {
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t h = 0; h < 2; ++h) call(ir, name, {a[2 * k + h], b[k]}, sums.slice(2 * h, 2));
    return;
  }
  Values operands;
  for (mlir::ValueRange part : {a, b})
    for (Value x : part) operands.push_back(shape.a == Type::f16 ? ir.bitcast(ir.lanes(2, ir.f16), x) : x);
  call(ir, name, operands, sums);
}

} // namespace deepgen
