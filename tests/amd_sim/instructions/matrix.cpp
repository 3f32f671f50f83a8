// Matrix operations (MFMA, WMMA) and dot products.
#include "tests/amd_sim/instructions/floats.h"
#include "tests/amd_sim/instructions/matrix_layout.h"
#include "tests/amd_sim/instructions/small_floats.h"
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/workgroup.h"

namespace deepgen::amd_sim {
namespace {

/// Bits of an item of a lane's operand, whose components may hold several.
uint64_t item_of(const Wave& w, const Operand& o, const Place& p, int bits) {
  const int at = p.item * bits;
  return w.in(o, uint32_t(at / o.bits))[p.lane] >> at % o.bits & mask_of(uint32_t(bits));
}

double value_of(Element e, uint64_t bits, bool fnuz) {
  switch (e) {
  case Element::f64:
    return F64::get(bits);
  case Element::f32:
    return F32::get(bits);
  case Element::xf32: // f32 with 10 bits of fraction
    return F32::get(bits & 0xffffe000u);
  case Element::f16:
    return F16::get(bits);
  case Element::bf16:
    return Bf16::get(bits);
  case Element::fp8:
    return decode_small({4, fnuz}, bits);
  case Element::bf8:
    return decode_small({5, fnuz}, bits);
  case Element::i8:
    return int8_t(bits);
  default:
    return int32_t(bits);
  }
}

uint64_t bits_from(Element e, double x) {
  switch (e) {
  case Element::f64:
    return F64::put(x);
  case Element::f16:
    return F16::put(float(x));
  case Element::bf16:
    return Bf16::put(float(x));
  case Element::i32:
    return uint32_t(int64_t(x));
  default:
    return F32::put(float(x));
  }
}

/// Zero for what is subnormal in the type: f16, or bf16 and f32, which have the same exponents.
double without_subnormal(Element e, double x) {
  const double smallest = e == Element::f16 ? 0x1p-14 : 0x1p-126;
  return std::fabs(x) < smallest ? std::copysign(0.0, x) : x;
}

/// Whether the instruction does so with its operands and sums.
bool flushes(const Wave& w, Element e) {
  return w.group_chip().flushes && (e == Element::f16 || e == Element::bf16);
}

struct Matrices {
  std::vector<double> a, b; ///< [row][k], [column][k]
};

/// What WMMA on gfx11 reads from both halves of the wave must be the same.
void check_halves(const Wave& w, const MatrixOp& op, const Operand& o, const Place& p) {
  const int bits = bits_of(op.a);
  if (op.kind == MatrixOp::wmma_gfx11 && item_of(w, o, p, bits) != item_of(w, o, {p.lane + 16, p.item}, bits))
    throw Fault("lanes " + std::to_string(p.lane) + " and " + std::to_string(p.lane + 16) +
                " must hold the same elements of A or B");
}

/// The integer operations of gfx11 and later say whether A and B are signed.
struct Signs {
  bool a = true, b = true;
};

Matrices gather(const Wave& w, const Instruction& in, const MatrixOp& op, int block, Signs signs) {
  const Operand &a = in.in[in.kind >> 4 & 15], &b = in.in[in.kind >> 8 & 15];
  const bool fnuz = w.group.program.chip.fnuz;
  Matrices x;
  x.a.resize(size_t(op.m * op.k)), x.b.resize(size_t(op.n * op.k));
  const auto fill = [&](std::vector<double>& out, const Operand& o, int rows, Element e, bool is_signed) {
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < op.k; ++k) {
        const Place p = op.a_at(r, k, block);
        check_halves(w, op, o, p);
        const uint64_t bits = item_of(w, o, p, bits_of(e));
        const double x = e == Element::i8 && !is_signed ? double(bits) : value_of(e, bits, fnuz);
        out[size_t(r * op.k + k)] = flushes(w, e) ? without_subnormal(e, x) : x;
      }
  };
  fill(x.a, a, op.m, op.a, signs.a);
  fill(x.b, b, op.n, op.b, signs.b);
  return x;
}

/// in.kind: which operands are A, B and C (4 bits each from bit 4 on); numbers: of Program::matrix_ops, the
/// item's shift in D, and whether integers of A and B are signed.

void multiply(Wave& w, const Instruction& in) {
  if (w.active != w.all_lanes())
    throw Fault("divergent matrix operation: " + std::to_string(std::popcount(w.active)) + " of " +
                std::to_string(w.lanes) + " lanes are here, but it computes with all");
  const MatrixOp& op = w.group.program.matrix_ops[size_t(in.numbers[0])];
  const Operand& c = in.in[in.kind >> 12 & 15];
  const int bits = bits_of(op.d), shift = int(in.numbers[1]);
  std::vector<std::vector<uint64_t>> out(in.result.count, std::vector<uint64_t>(64));
  for (uint32_t i = 0; i < in.result.count; ++i) std::copy_n(w.in(c, i), w.lanes, out[i].begin());
  for (int block = 0; block < op.blocks; ++block) {
    const Matrices x = gather(w, in, op, block, {in.numbers[2] != 0, in.numbers[3] != 0});
    for (int i = 0; i < op.m; ++i)
      for (int j = 0; j < op.n; ++j) {
        Place p = op.d_at(i, j, block);
        p.item += shift;
        double sum = value_of(op.d, item_of(w, c, p, bits), false);
        if (flushes(w, op.a)) sum = without_subnormal(op.d, sum);
        for (int k = 0; k < op.k; ++k) sum += x.a[size_t(i * op.k + k)] * x.b[size_t(j * op.k + k)];
        if (flushes(w, op.a)) sum = without_subnormal(op.d, sum);
        out[size_t(p.item)][size_t(p.lane)] = bits_from(op.d, sum);
      }
  }
  for (uint32_t i = 0; i < in.result.count; ++i) w.put(in.result, i, out[i].data());
  ++w.group.matrix_operations;
}

/// fdot2(a, b, c, clamp): c and one product after the other, each sum rounded, as AMD's ISA documents write
/// it. Subnormal f32 are zeros in any mode (LLVM's reason for when it makes the instruction of
/// multiply-adds). Subnormal f16 and bf16 count, but on a chip that flushes.
template <typename F, Element E>
void dot2(Wave& w, const Instruction& in) {
  const auto factor = [&](size_t operand, uint32_t c, int l) {
    const double x = F::get(w.in(in.in[operand], c)[l]);
    return flushes(w, E) ? without_subnormal(E, x) : x;
  };
  const auto normal = [](float x) { return float(without_subnormal(Element::f32, x)); };
  w.compute(in.result, 0, [&](int l) {
    float sum = normal(F32::get(w.in(in.in[2])[l]));
    for (uint32_t c = 0; c < 2; ++c) sum = float(double(sum) + factor(0, c, l) * factor(1, c, l));
    return F32::put(normal(sum));
  });
}

/// sdot4, udot4 (a, b, c, clamp), sudot4(sign a, a, sign b, b, c, clamp), modulo 2^32.

/// numbers: the operands a, b and c, and whether a and b are signed.
void dot4(Wave& w, const Instruction& in) {
  const uint64_t *x = w.in(in.in[size_t(in.numbers[0])]), *y = w.in(in.in[size_t(in.numbers[1])]),
                 *z = w.in(in.in[size_t(in.numbers[2])]);
  const auto byte = [](uint64_t v, int i, int64_t is_signed) {
    const auto b = uint8_t(v >> 8 * i);
    return is_signed ? int64_t(int8_t(b)) : int64_t(b);
  };
  w.compute(in.result, 0, [&](int l) {
    auto sum = int64_t(z[l]);
    for (int i = 0; i < 4; ++i) sum += byte(x[l], i, in.numbers[3]) * byte(y[l], i, in.numbers[4]);
    return uint64_t(uint32_t(sum));
  });
}

int all_bits(const Operand& o) { return int(o.count) * int(o.bits); }

void expect_zero(const llvm::CallBase& call, unsigned first) {
  for (unsigned i = first; i < call.arg_size(); ++i)
    if (immediate(call, i)) throw Fault("a modifier of a matrix operation that is not simulated");
}

} // namespace

bool decode_matrix(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  std::string name = intrinsic_name(i);
  if (!name.starts_with("amdgcn.mfma.") && !name.starts_with("amdgcn.wmma.")) return false;
  name = name.substr(7);
  const auto& call = llvm::cast<llvm::CallBase>(i);
  const bool integer_wmma = name.starts_with("wmma.i32.");
  unsigned a = 0, b = 1, c = 2;
  std::vector<int64_t> numbers = {0, 0, 1, 1};
  if (integer_wmma) {
    a = 1, b = 3, c = 4;
    numbers[2] = immediate(call, 0), numbers[3] = immediate(call, 2);
    expect_zero(call, 5);
  } else if (name.starts_with("wmma.") && call.arg_size() > 3) {
    numbers[1] = immediate(call, 3) ? 1 : 0; // which half of the register
  } else {
    expect_zero(call, 3);
  }
  numbers[0] = d.matrix_op(MatrixOp(name, all_bits(out.in[a]), all_bits(out.result)));
  out.kind = a << 4 | b << 8 | c << 12;
  out.numbers = numbers;
  return out.run = multiply, true;
}

bool decode_dot(Decoder&, const llvm::Instruction& i, Instruction& out) {
  const std::string name = intrinsic_name(i);
  if (!name.starts_with("amdgcn.")) return false;
  const auto& call = llvm::cast<llvm::CallBase>(i);
  if (name == "amdgcn.fdot2" || name == "amdgcn.fdot2.f32.bf16") {
    expect_zero(call, 3);
    out.run = name == "amdgcn.fdot2" ? dot2<F16, Element::f16> : dot2<Bf16, Element::bf16>;
  } else if (name == "amdgcn.sdot4" || name == "amdgcn.udot4") {
    expect_zero(call, 3);
    const bool is_signed = name == "amdgcn.sdot4";
    out.numbers = {0, 1, 2, is_signed, is_signed}, out.run = dot4;
  } else if (name == "amdgcn.sudot4") {
    expect_zero(call, 5);
    out.numbers = {1, 3, 4, immediate(call, 0), immediate(call, 2)}, out.run = dot4;
  }
  return out.run != nullptr;
}

} // namespace deepgen::amd_sim
