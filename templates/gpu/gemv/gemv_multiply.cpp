// The arithmetic of GemvWarp: fused multiply-adds, or mma.sync on registers as they were loaded.
//
// Tensor cores: W's rows are the 16 rows of an instruction, the vectors its 8 columns. Which elements of K an
// instruction's registers stand for is free as long as both operands agree, so a lane's loads of consecutive
// elements serve as they are, two registers at a time. Where rows of W do not run along K, a lane loads two
// registers' worth of consecutive elements of K from each of its rows' runs and pairs them; that permutes the
// rows instead.
#include "templates/gpu/gemv/gemv_warp.h"

#include "base/text/error.h"
#include "templates/ir/ir_record.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace deepgen {
namespace {

namespace llvmd = mlir::LLVM;

/// Shape and types of the instruction, as PTX spells them.
std::string mma_name(Type a, Type b) {
  const auto types = [&](const std::string& d) {
    return d + "." + to_string(a) + "." + to_string(b) + "." + d;
  };
  switch (a) {
  case Type::f16:
  case Type::bf16:
    return "m16n8k16.row.col." + types("f32");
  case Type::tf32:
    return "m16n8k8.row.col." + types("f32");
  case Type::e4m3:
  case Type::e5m2:
    return "m16n8k32.row.col." + types("f32");
  case Type::i8:
    return "m16n8k32.row.col.s32.s8.s8.s32";
  default:
    throw Error("no mma.sync of " + to_string(a));
  }
}

} // namespace

Values GemvWarp::chunks(Value piece) {
  Values words = ir.unpack(piece), out;
  if (t.size < 8) return words;
  for (size_t i = 0; i < words.size(); i += 2)
    out.push_back(ir.bitcast(ir.f64, ir.pack({words[i], words[i + 1]})));
  return out;
}

Values GemvWarp::decode(Type type, Value chunk) {
  if (type == Type::f64) return {chunk};
  const int64_t count =
      std::max<int64_t>(1, mlir::cast<mlir::IntegerType>(chunk.getType()).getWidth() / 8 / t.size);
  // The upper half of an f32. Shifting and masking beats a conversion: it runs at the full rate on every
  // arch.
  if (type == Type::bf16 && count == 2)
    return {ir.bitcast(ir.f32, ir.shift_left(chunk, 16)), ir.bitcast(ir.f32, ir.bit_and(chunk, 0xffff0000))};
  return ir.unpack(ir.decode(type, ir.bitcast(ir.lanes(count, ir.memory_type(type)), chunk)));
}

Value GemvWarp::fma(Value x, Value y, Value sum) {
  if (!mlir::isa<mlir::IntegerType>(sum.getType())) return ir.multiply_add(x, y, sum);
  return ir.add_sums(mlir::arith::MulIOp::create(ir.b, ir.loc, x, y), sum);
}

Values GemvWarp::multiply(Values sums, const Values& pieces, Value k) {
  const int64_t run = t.mma && !t.k_major ? t.lane_k : 1; // positions that one instruction takes
  for (int64_t j = 0; j < t.positions; j += run) {
    if (rest_ && position(j) >= rest_) break;
    if (t.mma)
      multiply_mma(sums, pieces, j, k);
    else
      multiply_fma(sums, pieces, j, k);
  }
  return sums;
}

/// Sums are [row][vector].
void GemvWarp::multiply_fma(Values& sums, const Values& pieces, int64_t j, Value k) {
  std::vector<Values> vectors, weights;
  for (int64_t v = 0; v < t.vectors; ++v) vectors.push_back(chunks(load_vector(v, position(j), k)));
  for (int64_t g = 0; g < t.groups; ++g) weights.push_back(chunks(pieces[size_t(g * t.positions + j)]));
  if (!t.k_major) {
    int64_t row = 0;
    for (Value chunk : weights[0])
      for (Value w : decode(t.weight_type, chunk)) {
        for (int64_t v = 0; v < t.vectors; ++v) {
          Value& sum = sums[size_t(row * t.vectors + v)];
          sum = fma(w, decode(t.vector_type, vectors[size_t(v)][0])[0], sum);
        }
        ++row;
      }
    return;
  }
  const bool dot = t.weight_type == Type::i8 && t.vec >= 4;
  for (size_t i = 0; i < weights[0].size(); ++i) {
    std::vector<Values> decoded;
    for (int64_t v = 0; v < t.vectors && !dot; ++v)
      decoded.push_back(decode(t.vector_type, vectors[size_t(v)][i]));
    for (int64_t g = 0; g < t.groups; ++g) {
      Value* sum = &sums[size_t(g * t.vectors)];
      if (dot) {
        for (int64_t v = 0; v < t.vectors; ++v)
          sum[v] = ir.dot4(weights[size_t(g)][i], vectors[size_t(v)][i], sum[v]);
        continue;
      }
      const Values w = decode(t.weight_type, weights[size_t(g)][i]);
      for (int64_t v = 0; v < t.vectors; ++v)
        for (size_t e = 0; e < w.size(); ++e) sum[v] = fma(w[e], decoded[size_t(v)][e], sum[v]);
    }
  }
}

/// Sums are [tile][8 columns][4 registers of the instruction's D].
void GemvWarp::multiply_mma(Values& sums, const Values& pieces, int64_t j, Value k) {
  const auto round = [&](Value w) {
    return t.weight_type == Type::tf32 ? ir.bitcast(ir.i32, nv().round_tf32(ir.bitcast(ir.f32, w))) : w;
  };
  const auto registers = [&](Value piece) {
    Values out;
    for (Value w : ir.unpack(piece)) out.push_back(round(w));
    return out;
  };
  std::vector<Values> vectors;
  for (int64_t c = 0; c < t.columns / 8; ++c) vectors.push_back(registers(load_vector(c, position(j), k)));
  const auto piece = [&](int64_t group, int64_t at) {
    return registers(pieces[size_t(group * t.positions + at)]);
  };
  const auto halves = [&](size_t first) {
    std::vector<Values> b;
    for (const Values& v : vectors) b.push_back({v[first], v[first + 1]});
    return b;
  };
  if (t.k_major) {
    for (int64_t tile = 0; tile < t.groups / 2; ++tile) {
      const Values upper = piece(2 * tile, j), lower = piece(2 * tile + 1, j);
      for (size_t i = 0; i + 1 < upper.size(); i += 2)
        mma(sums, tile, {upper[i], lower[i], upper[i + 1], lower[i + 1]}, halves(i));
    }
    return;
  }
  int64_t tile = 0;
  for (int64_t group = 0; group < t.groups; ++group) {
    std::vector<Values> along; // one Values per element of K
    for (int64_t q = 0; q < t.lane_k; ++q) along.push_back(piece(group, j + q));
    if (t.size == 4) { // one element is a register: rows are words
      for (size_t i = 0; i + 1 < along[0].size(); i += 2)
        mma(sums, tile++, {along[0][i], along[0][i + 1], along[1][i], along[1][i + 1]}, halves(0));
      continue;
    }
    const auto pair = [&](Value x, Value y, int64_t select) {
      return nv().assembly(ir.i32, "prmt.b32 $0, $1, $2, " + std::to_string(select) + ";", "=r,r,r", {x, y},
                           false);
    };
    for (size_t i = 0; i < along[0].size(); ++i) { // a word is an element of K of two rows
      const auto row = [&](size_t q, int64_t select) { return pair(along[q][i], along[q + 1][i], select); };
      mma(sums, tile++, {row(0, 0x5410), row(0, 0x7632), row(2, 0x5410), row(2, 0x7632)}, halves(0));
    }
  }
}

void GemvWarp::mma(Values& sums, int64_t tile, mlir::ValueRange a, const std::vector<Values>& b) {
  const bool integer = t.weight_type == Type::i8;
  const std::string d = integer ? "=r,=r,=r,=r" : "=f,=f,=f,=f";
  mlir::Type type = gemv_accumulator(ir, t);
  mlir::Type record = record_of(4, type);
  for (size_t c = 0; c < b.size(); ++c) {
    Value* sum = &sums[(size_t(tile) * b.size() + c) * 4];
    Values operands(a.begin(), a.end());
    operands.append(b[c].begin(), b[c].end());
    operands.append(sum, sum + 4);
    Value out = nv().assembly(record,
                              "mma.sync.aligned." + mma_name(t.weight_type, t.vector_type) +
                                  " {$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$10,$11,$12,$13};",
                              d + ",r,r,r,r,r,r,0,1,2,3", operands, true);
    llvm::copy(fields_of(ir, out), sum);
  }
}

void GemvWarp::store(const Values& sums, Value slots) {
  if (t.mma)
    store_mma(sums, slots);
  else
    store_fma(sums, slots);
}

/// Lane 4g+l holds columns 2l, 2l+1 of rows g and g+8 of a tile.
void GemvWarp::store_mma(const Values& sums, Value slots) {
  Value g = ir.shift_right_bits(lane_, 2), column = ir.shift_left(ir.bit_and(lane_, 3), 1);
  for (int64_t tile = 0; tile < t.width / 16; ++tile)
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t per_group = t.elements / 2; // tiles, where rows of W are permuted
      Value row = t.k_major ? ir.add(g, 16 * tile + 8 * half)
                            : ir.add(ir.mul(ir.add(g, tile / per_group * 8), t.elements),
                                     tile % per_group * 2 + half);
      Value at = ir.offset(slots, ir.shift_left(ir.add(ir.mul(row, t.columns), column), 2));
      for (int64_t c = 0; c < t.columns / 8; ++c) {
        const Value* sum = &sums[size_t((tile * t.columns / 8 + c) * 4 + half * 2)];
        ir.store(ir.pack({sum[0], sum[1]}), ir.offset(at, 32 * c), 8);
      }
    }
}

/// Lanes that share rows add their sums. As long as a lane has several, two lanes exchange halves of them, so
/// that each goes on with half as many; sums end up spread over the lanes.
void GemvWarp::store_fma(Values sums, Value slots) {
  const size_t each = sums.size();
  size_t lanes = 1; // that the sums are spread over; padded, so that all halves are whole
  while (lanes < each && lanes < size_t(t.lanes_k)) lanes *= 2;
  sums.resize((each + lanes - 1) / lanes * lanes, sums[0]);
  const bool padded = sums.size() > each;
  Value index = ir.c(0), writes; // of the lane's first sum; null: every lane writes
  for (int64_t mask = 16; mask >= 32 / t.lanes_k; mask /= 2) {
    Value upper = ir.not_equal(ir.bit_and(lane_, mask), ir.c(0));
    if (lanes == 1) {
      sums[0] = ir.add_sums(sums[0], ir.shuffle_xor(sums[0], mask));
      Value lower = ir.equal(ir.bit_and(lane_, mask), ir.c(0));
      writes = writes ? ir.both(writes, lower) : lower;
      continue;
    }
    const size_t half = sums.size() / 2;
    Values kept;
    for (size_t i = 0; i < half; ++i) {
      Value low = sums[i], high = sums[i + half];
      Value given = ir.select(upper, low, high);
      kept.push_back(ir.add_sums(ir.select(upper, high, low), ir.shuffle_xor(given, mask)));
    }
    index = ir.add(index, ir.select(upper, ir.c(int64_t(half)), ir.c(0)));
    sums = kept, lanes /= 2;
  }
  const int64_t bytes = t.size == 8 ? 8 : 4;
  Value first = index;
  if (!t.k_major)
    first = ir.add(index, ir.mul(ir.bit_and(lane_, 32 / t.lanes_k - 1), t.elements * t.columns));
  const auto put = [&] {
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto one = [&] {
        ir.store(sums[i], ir.offset(slots, ir.mul(ir.add(first, int64_t(i)), bytes)), bytes);
      };
      if (padded)
        ir.branch(ir.less(ir.add(index, int64_t(i)), int64_t(each)), one);
      else
        one();
    }
  };
  if (writes)
    ir.branch(writes, put);
  else
    put();
}

} // namespace deepgen
