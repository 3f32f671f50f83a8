#include "templates/amd/amd_matrix_shape.h"

#include "base/kernel/amd.h"
#include "base/text/error.h"
#include "templates/core/sizes.h"
#include "templates/ir/amd_ir.h"

namespace deepgen {
namespace {

struct Row {
  const char* arch;
  Type type;
  const char *small, *large; ///< of 16 x 16 and 32 x 32
  int64_t lane_bytes;
  double rate;
};

// AMD's documents of the ISA of CDNA 2, 3 and 4 and of RDNA 3 and 4; rates from their white papers (of RDNA
// for a work-group processor, which is two compute units).
constexpr Row kRows[] = {{"gfx90a", Type::f16, "f32.16x16x16f16", "f32.32x32x8f16", 8, 1024},
                         {"gfx90a", Type::bf16, "f32.16x16x16bf16.1k", "f32.32x32x8bf16.1k", 8, 1024},
                         {"gfx90a", Type::f32, "f32.16x16x4f32", "f32.32x32x2f32", 4, 256},
                         {"gfx90a", Type::f64, "f64.16x16x4f64", "", 8, 256},
                         {"gfx90a", Type::i8, "i32.16x16x16i8", "i32.32x32x8i8", 4, 1024},
                         {"gfx942", Type::f16, "f32.16x16x16f16", "f32.32x32x8f16", 8, 2048},
                         {"gfx942", Type::bf16, "f32.16x16x16bf16.1k", "f32.32x32x8bf16.1k", 8, 2048},
                         {"gfx942", Type::f32, "f32.16x16x4f32", "f32.32x32x2f32", 4, 256},
                         {"gfx942", Type::f64, "f64.16x16x4f64", "", 8, 256},
                         {"gfx942", Type::i8, "i32.16x16x32.i8", "i32.32x32x16.i8", 8, 4096},
                         {"gfx950", Type::f16, "f32.16x16x32.f16", "f32.32x32x16.f16", 16, 4096},
                         {"gfx950", Type::bf16, "f32.16x16x32.bf16", "f32.32x32x16.bf16", 16, 4096},
                         {"gfx950", Type::f32, "f32.16x16x4f32", "f32.32x32x2f32", 4, 256},
                         {"gfx950", Type::f64, "f64.16x16x4f64", "", 8, 128},
                         {"gfx950", Type::i8, "i32.16x16x64.i8", "i32.32x32x32.i8", 16, 8192},
                         {"gfx950", Type::e4m3, "f32.16x16x32.", "f32.32x32x16.", 8, 4096},
                         {"gfx1100", Type::f16, "f32.16x16x16.f16", "", 32, 1024},
                         {"gfx1100", Type::bf16, "f32.16x16x16.bf16", "", 32, 1024},
                         {"gfx1100", Type::i8, "i32.16x16x16.iu8", "", 16, 1024},
                         {"gfx1201", Type::f16, "f32.16x16x16.f16", "", 16, 2048},
                         {"gfx1201", Type::bf16, "f32.16x16x16.bf16", "", 16, 2048},
                         {"gfx1201", Type::i8, "i32.16x16x16.iu8", "", 8, 4096},
                         {"gfx1201", Type::e4m3, "f32.16x16x16.", "", 8, 4096}};

std::string short_name(Type t) { return t == Type::e4m3 ? "fp8" : "bf8"; }

} // namespace

Type staged_type(const std::string& arch, Type type, Type other) {
  if (type == Type::tf32) return Type::f32;
  if (!is_fp8(type) || arch == "gfx950" || arch == "gfx1201") return type;
  return arch == "gfx90a" && (type == Type::e5m2 || other == Type::e5m2) ? Type::bf16 : Type::f16;
}

MatrixShape::MatrixShape(const std::string& arch, Type a, Type b, int64_t shape) : size(shape) {
  const Type other = staged_type(arch, b, a);
  staged = staged_type(arch, a, b), element = size_of(staged);
  for (const Row& row : kRows) {
    if (arch != row.arch || (is_fp8(staged) ? Type::e4m3 : staged) != row.type) continue;
    name = shape == 16 ? row.small : row.large;
    if (is_fp8(staged)) name += short_name(other) + "." + short_name(staged); // P is B
    lane_bytes = row.lane_bytes, rate = row.rate;
  }
  doubles = staged == Type::f64;
  wave = find_amd(arch)->wave;
  values = shape * shape / wave;
  groups = arch == "gfx1100" ? 1 : wave / shape; // there both halves of a wave hold all of K
}

/// A lane's group is g, the number of its value i.
std::vector<MatrixShape::Field> MatrixShape::fields(bool paired) const {
  if (paired)
    return {{0, 2, 0}, {3, 2, 2}, {2, 1, 4}}; // n: i 2, instruction 1, g 2; row: i 2, g 2, instruction 1
  if (size == 32) return {{0, 2, 0}, {4, 1, 2}, {2, 2, 3}}; // n: i 4, g 1; row: i 2, g 1, i 2
  if (doubles) return {{2, 2, 0}, {0, 2, 2}};               // n: i 2, g 2; row: g 2, i 2
  if (groups == 1) return {{3, 1, 0}, {0, 3, 1}};           // n: i 3, g 1; row: g 1, i 3
  return {{0, 4, 0}};                                       // the same
}

int64_t MatrixShape::row_of_column(int64_t n, bool paired) const {
  int64_t row = n & -(paired ? 32 : size);
  for (const Field& f : fields(paired)) row |= (n >> f.from & ((1 << f.bits) - 1)) << f.to;
  return row;
}

Value MatrixShape::row_of_column(GpuIr& ir, Value n, bool paired) const {
  Value row = ir.bit_and(n, -(paired ? 32 : size));
  for (const Field& f : fields(paired))
    row = ir.bit_or(row, ir.shift_left(ir.bit_and(ir.shift_right_bits(n, f.from), (1 << f.bits) - 1), f.to));
  return row;
}

int64_t MatrixShape::column_of_row(int64_t row, bool paired) const {
  int64_t n = row & -(paired ? 32 : size);
  for (const Field& f : fields(paired)) n |= (row >> f.to & ((1 << f.bits) - 1)) << f.from;
  return n;
}

Value MatrixShape::column_of_row(GpuIr& ir, Value row, bool paired) const {
  Value n = ir.bit_and(row, -(paired ? 32 : size));
  for (const Field& f : fields(paired))
    n = ir.bit_or(n, ir.shift_left(ir.bit_and(ir.shift_right_bits(row, f.to), (1 << f.bits) - 1), f.from));
  return n;
}

mlir::Type MatrixShape::operand_type(GpuIr& ir, Type type) const {
  if (type == Type::bf16 && (lane_bytes == 8 || wave == 32)) return ir.lanes(lane_bytes / 2, ir.i16);
  if (type == Type::f16 || type == Type::bf16) return ir.lanes(lane_bytes / 2, ir.memory_type(type));
  if (type == Type::f32 || type == Type::f64) return ir.memory_type(type);
  if (lane_bytes == 8 && wave == 64) return ir.i64;
  return ir.lanes(lane_bytes / 4, ir.i32);
}

mlir::Type MatrixShape::sum_type(GpuIr& ir) const {
  return ir.lanes(values, doubles ? ir.f64 : staged == Type::i8 ? ir.i32 : ir.f32);
}

Value MatrixShape::operand(AmdIr& ir, const Value* pieces, int64_t instruction) const {
  mlir::Type type = operand_type(ir, staged);
  const int64_t words = lane_bytes / 4;
  if (words <= 4) return ir.bitcast(type, ir.slice(*pieces, instruction * words, words));
  Values both = ir.unpack(pieces[0]);
  llvm::append_range(both, ir.unpack(pieces[1]));
  return ir.bitcast(type, ir.pack(both));
}

Value MatrixShape::multiply(AmdIr& ir, const Value* p, const Value* q, Value sum, int64_t instruction) const {
  Value x = operand(ir, p, instruction), y = operand(ir, q, instruction);
  mlir::Type type = sum_type(ir);
  Value none = ir.c(0);
  if (wave == 64) return ir.intrinsic(type, "llvm.amdgcn.mfma." + name, {x, y, sum, none, none, none});
  Value is_signed = ir.c(ir.b.getI1Type(), 1), clamped = ir.c(ir.b.getI1Type(), 0);
  const std::string wmma = "llvm.amdgcn.wmma." + name;
  if (staged == Type::i8) return ir.intrinsic(type, wmma, {is_signed, x, is_signed, y, sum, clamped});
  return ir.intrinsic(type, wmma, {x, y, sum});
}

} // namespace deepgen
