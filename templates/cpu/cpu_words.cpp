#include "templates/cpu/cpu_words.h"

#include "templates/cpu/cpu_values.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace deepgen {
namespace {

namespace arith = mlir::arith;
namespace llvmd = mlir::LLVM;

std::string suffix(int64_t bytes) { return std::to_string(8 * bytes); }

/// As many elements as fill the level's vectors: the same instruction has three names.
const char* pairs_instruction(int64_t bytes) {
  return bytes == 64   ? "llvm.x86.avx512.pmaddw.d.512"
         : bytes == 32 ? "llvm.x86.avx2.pmadd.wd"
                       : "llvm.x86.sse2.pmadd.wd";
}

Value first_lanes(Ir& ir, int64_t lanes, int64_t count) {
  llvm::SmallVector<bool> exist(size_t(lanes), false);
  std::fill(exist.begin(), exist.begin() + count, true);
  const auto type = mlir::VectorType::get({lanes}, ir.i1);
  return arith::ConstantOp::create(ir.b, ir.loc,
                                   mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(exist)));
}

} // namespace

Words::Words(Ir& builder, const Dot& d)
    : dot(d), word(builder.b.getI32Type()), vector(mlir::VectorType::get({builder.isa.lanes()}, word)),
      sums(d.integer() ? vector : builder.vector), ir(builder) {}

Value Words::bits_as(mlir::Type lane, int64_t lanes, Value x) {
  const auto type = mlir::VectorType::get({lanes}, lane);
  return x.getType() == type ? x : llvmd::BitcastOp::create(ir.b, ir.loc, type, x);
}

Value Words::constant(uint32_t x) {
  const mlir::Attribute attribute = ir.b.getIntegerAttr(word, int64_t(int32_t(x)));
  return arith::ConstantOp::create(
      ir.b, ir.loc, mlir::DenseElementsAttr::get(mlir::cast<mlir::VectorType>(vector), attribute));
}
Value Words::zero_sums() { return dot.integer() ? none() : ir.splat(0.0); }

Value Words::load(Value address) { return ir.load(vector, address, 4); }
Value Words::load_word(Value address) {
  return ir.load(word, address, size_of(dot.a) < 4 && dot.raw() ? size_of(dot.a) : 4);
}
void Words::store(Value x, Value address, int64_t count) {
  ir.store_vector(bits_as(ir.element, ir.isa.lanes(), x), address, count);
}
Value Words::splat(Value x) { return mlir::vector::BroadcastOp::create(ir.b, ir.loc, vector, x); }
Value Words::shifted(Value x) { return arith::XOrIOp::create(ir.b, ir.loc, x, constant(0x80808080)); }

Value Words::multiply_add(Value sum, Value a, Value b) {
  const int64_t lanes = ir.isa.lanes(), bytes = ir.isa.bytes();
  const auto call = [&](const std::string& name, mlir::Type result, const Values& operands) {
    return llvmd::CallIntrinsicOp::create(ir.b, ir.loc, result, ir.b.getStringAttr(name), operands)
        .getResult(0);
  };
  if (dot.splits()) return split_multiply_add(sum, a, b);
  switch (dot.kind) {
  case DotKind::f32:
    return ir.fma(bits_as(ir.element, lanes, a), bits_as(ir.element, lanes, b), sum);
  case DotKind::pairs:
    return multiply_pairs(sum, a, b);
  case DotKind::bf16: {
    const mlir::Type half = ir.b.getBF16Type();
    return call("llvm.x86.avx512bf16.dpbf16ps." + suffix(bytes), sums,
                {sum, bits_as(half, 2 * lanes, a), bits_as(half, 2 * lanes, b)});
  }
  case DotKind::bytes:
  case DotKind::tiles:
    break;
  }
  const mlir::Type byte = ir.b.getI8Type();
  return call("llvm.x86.avx512.vpdpbusd." + suffix(bytes), sums,
              {sum, bits_as(byte, 4 * lanes, a), bits_as(byte, 4 * lanes, b)});
}

Value Words::multiply_pairs(Value sum, Value a, Value b) {
  const int64_t lanes = ir.isa.lanes();
  const mlir::Type half = ir.b.getI16Type();
  const Values operands = {bits_as(half, 2 * lanes, a), bits_as(half, 2 * lanes, b)};
  Value product = llvmd::CallIntrinsicOp::create(
                      ir.b, ir.loc, vector, ir.b.getStringAttr(pairs_instruction(ir.isa.bytes())), operands)
                      .getResult(0);
  return add(sum, product);
}

Value Words::widened(Value x, int64_t element) {
  const int64_t lanes = ir.isa.lanes();
  if (dot.b == Type::bf16)
    return bits_as(ir.element, lanes,
                   element ? Value(arith::AndIOp::create(ir.b, ir.loc, x, constant(0xffff0000)))
                           : Value(arith::ShLIOp::create(ir.b, ir.loc, x, constant(16))));
  if (element < 3) x = arith::ShLIOp::create(ir.b, ir.loc, x, constant(uint32_t(24 - 8 * element)));
  x = arith::ShRSIOp::create(ir.b, ir.loc, x, constant(24));
  return arith::SIToFPOp::create(ir.b, ir.loc, ir.vector, x);
}

Value Words::widened_bytes(Value address) {
  return arith::SIToFPOp::create(ir.b, ir.loc, ir.vector, load_bytes(address, ir.isa.lanes()));
}

Value Words::repeated(Value address, int64_t elements) {
  constexpr int64_t kGroup = 4;
  const auto group = mlir::VectorType::get({kGroup}, ir.element);
  Value four;
  if (elements == kGroup)
    four = ir.load(group, address, 4);
  else {
    Value zero = arith::ConstantOp::create(ir.b, ir.loc, ir.b.getZeroAttr(group));
    four = llvmd::MaskedLoadOp::create(ir.b, ir.loc, group, address, first_lanes(ir, kGroup, elements), zero,
                                       4u);
  }
  llvm::SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < ir.isa.lanes(); ++i) lanes.push_back(i % kGroup);
  return ir.shuffle(four, four, lanes);
}

Value Words::sum_pairs(Value x, Value y) {
  llvm::SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < ir.isa.lanes(); ++i) even.push_back(2 * i), odd.push_back(2 * i + 1);
  return ir.addf(ir.shuffle(x, y, even), ir.shuffle(x, y, odd));
}
Value Words::joined(const Values& four) {
  return sum_pairs(sum_pairs(four[0], four[1]), sum_pairs(four[2], four[3]));
}

/// Each half of a word of bf16 is the upper half of an f32. Of four bytes, pmaddwd takes the first and third
/// as i16, then the second and fourth.
Value Words::split_multiply_add(Value sum, Value a, Value b) {
  const int64_t lanes = ir.isa.lanes();
  if (dot.kind == DotKind::f32) {
    const auto lower = [&](Value x) { return Value(arith::ShLIOp::create(ir.b, ir.loc, x, constant(16))); };
    const auto upper = [&](Value x) {
      return Value(arith::AndIOp::create(ir.b, ir.loc, x, constant(0xffff0000)));
    };
    const auto fma = [&](Value x, Value y) {
      sum = ir.fma(bits_as(ir.element, lanes, x), bits_as(ir.element, lanes, y), sum);
    };
    fma(lower(a), lower(b)), fma(upper(a), upper(b));
    return sum;
  }
  const mlir::Type half = ir.b.getI16Type();
  const Value eight = bits_as(half, 2 * lanes, constant(0x00080008));
  const auto odd = [&](Type type, Value x) {
    x = bits_as(half, 2 * lanes, x);
    return type == Type::u8 ? Value(arith::ShRUIOp::create(ir.b, ir.loc, x, eight))
                            : Value(arith::ShRSIOp::create(ir.b, ir.loc, x, eight));
  };
  const auto even = [&](Type type, Value x) {
    return odd(type, arith::ShLIOp::create(ir.b, ir.loc, bits_as(half, 2 * lanes, x), eight));
  };
  sum = multiply_pairs(sum, even(dot.a, a), even(dot.b, b));
  return multiply_pairs(sum, odd(dot.a, a), odd(dot.b, b));
}

Value Words::add(Value x, Value y) {
  if (!dot.integer()) return ir.addf(x, y);
  return arith::AddIOp::create(ir.b, ir.loc, x, y); // modulo 2^32
}
Value Words::subtract(Value x, Value y) { return arith::SubIOp::create(ir.b, ir.loc, x, y); }

Value Words::load_sums(Value address, int64_t count) {
  Value x = ir.load_vector(address, count);
  return dot.integer() ? bits_as(word, ir.isa.lanes(), x) : x;
}
void Words::store_sums(Value x, Value address) { store(x, address, ir.isa.lanes()); }

Value Words::sum_lanes(Value x, bool by_halves) {
  if (!dot.integer()) return by_halves ? ir.sum_lanes_by_halves(x) : ir.sum_lanes(x);
  return mlir::vector::ReductionOp::create(ir.b, ir.loc, mlir::vector::CombiningKind::ADD, x);
}
Value Words::as_f32(Value x) {
  return dot.integer() ? arith::SIToFPOp::create(ir.b, ir.loc, ir.vector, x) : x;
}

Value Words::at(Type type, Value base, Value index) {
  return size_of(type) == 4 ? ir.at(base, index) : element_at(ir, type, base, index);
}

Value Words::stored(Type type, Value address, int64_t lanes, int64_t count) {
  const auto element = size_of(type) == 1 ? ir.b.getI8Type() : ir.b.getI16Type();
  const auto result = mlir::VectorType::get({lanes}, element);
  const auto alignment = unsigned(size_of(type));
  if (count == lanes) return llvmd::LoadOp::create(ir.b, ir.loc, result, address, alignment);
  Value mask = first_lanes(ir, lanes, count);
  Value zero = arith::ConstantOp::create(ir.b, ir.loc, ir.b.getZeroAttr(result));
  return llvmd::MaskedLoadOp::create(ir.b, ir.loc, result, address, mask, zero, alignment);
}

Value Words::along_k(Type type, Value address, int64_t elements) {
  const int64_t lanes = ir.isa.lanes(), all = lanes * dot.group();
  if (dot.kind == DotKind::f32 && !dot.splits())
    return bits_as(word, lanes, load_values(ir, type, address, elements));
  Value x = stored(type, address, all, elements);
  if (dot.kind == DotKind::pairs && !dot.splits()) {
    const auto halves = mlir::VectorType::get({all}, ir.b.getI16Type());
    x = type == Type::u8 ? Value(arith::ExtUIOp::create(ir.b, ir.loc, halves, x))
                         : Value(arith::ExtSIOp::create(ir.b, ir.loc, halves, x));
  }
  return bits_as(word, lanes, x);
}

Value Words::wide(Type type, Value x) {
  if (dot.kind == DotKind::pairs && !dot.splits() && type == Type::i8)
    return arith::AndIOp::create(ir.b, ir.loc, arith::ExtSIOp::create(ir.b, ir.loc, vector, x),
                                 constant(0xffff));
  return arith::ExtUIOp::create(ir.b, ir.loc, vector, x);
}

Value Words::across_k(Type type, const Values& rows, int64_t count) {
  const int64_t lanes = ir.isa.lanes(), bits = 32 / dot.group();
  if (dot.kind == DotKind::f32 && !dot.splits())
    return bits_as(word, lanes, load_values(ir, type, rows[0], count));
  Value all;
  for (size_t i = 0; i < rows.size(); ++i) {
    Value x = wide(type, stored(type, rows[i], lanes, count));
    if (i) x = arith::ShLIOp::create(ir.b, ir.loc, x, constant(uint32_t(bits * int64_t(i))));
    all = i ? Value(arith::OrIOp::create(ir.b, ir.loc, all, x)) : x;
  }
  return all;
}

/// Elements from, from + 1, ... of x, each with that of y behind it.
Value Words::interleaved(Value x, Value y, int64_t from, int64_t count) {
  const int64_t all = mlir::cast<mlir::VectorType>(x.getType()).getNumElements();
  llvm::SmallVector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) order.push_back(from + i), order.push_back(all + from + i);
  return ir.shuffle(x, y, order);
}

Values Words::across_columns(Type type, const Values& rows, int64_t vectors) {
  const int64_t lanes = ir.isa.lanes(), columns = vectors * lanes;
  Values in, out;
  for (Value row : rows) in.push_back(stored(type, row, columns, columns));
  // Of bytes first those of two rows, as elements of 16 bits, in parts of at most a vector.
  const int64_t part = in.size() == 2 ? columns : std::min(columns, 2 * lanes);
  const auto pairs = [&](size_t row, int64_t from) {
    return bits_as(ir.b.getI16Type(), part, interleaved(in[row], in[row + 1], from, part));
  };
  Values upper, lower;
  if (in.size() == 2)
    lower = {in[0]}, upper = {in[1]};
  else
    for (int64_t from = 0; from < columns; from += part)
      lower.push_back(pairs(0, from)), upper.push_back(pairs(2, from));
  for (int64_t at = 0; at < columns; at += lanes) {
    const auto from = size_t(at / part);
    out.push_back(bits_as(word, lanes, interleaved(lower[from], upper[from], at % part, lanes)));
  }
  return out;
}

Value Words::load_bytes(Value address, int64_t count) {
  return arith::ExtSIOp::create(ir.b, ir.loc, vector, stored(Type::i8, address, ir.isa.lanes(), count));
}

Value Words::part_of_word(Type type, Value address, int64_t elements) {
  const mlir::Type element = size_of(type) == 1 ? ir.b.getI8Type() : ir.b.getI16Type();
  Value all;
  for (int64_t i = 0; i < elements; ++i) {
    Value x = ir.load(element, at(type, address, i), size_of(type));
    x = arith::ExtUIOp::create(ir.b, ir.loc, word, x);
    if (i)
      x = arith::ShLIOp::create(ir.b, ir.loc, x,
                                arith::ConstantIntOp::create(ir.b, ir.loc, word, 8 * size_of(type) * i));
    all = i ? Value(arith::OrIOp::create(ir.b, ir.loc, all, x)) : x;
  }
  return all;
}

} // namespace deepgen
