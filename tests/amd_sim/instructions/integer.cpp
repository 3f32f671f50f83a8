// Integers: arithmetic, comparisons, and the intrinsics on them. Values of n bits are kept in their lower n
// bits, the others zero.
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/wave.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

template <auto F>
void unary(Wave& w, const Instruction& in) {
  const uint32_t bits = in.in[0].bits;
  const uint64_t mask = mask_of(in.result.bits);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) { return F(x[l], bits) & mask; });
  }
}

template <auto F>
void binary(Wave& w, const Instruction& in) {
  const uint32_t bits = in.in[0].bits;
  const uint64_t mask = mask_of(in.result.bits);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *y = w.in(in.in[1], c);
    w.compute(in.result, c, [&](int l) { return F(x[l], y[l], bits) & mask; });
  }
}

template <auto F>
void ternary(Wave& w, const Instruction& in) {
  const uint32_t bits = in.in[0].bits;
  const uint64_t mask = mask_of(in.result.bits);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *y = w.in(in.in[1], c), *z = w.in(in.in[2], c);
    w.compute(in.result, c, [&](int l) { return F(x[l], y[l], z[l], bits) & mask; });
  }
}

// An amount of bits or more is poison, as dividing by zero is undefined: nothing may be made of the result.
constexpr uint64_t kBad = 0xbadbadbadbadbadbu;

uint64_t add(uint64_t x, uint64_t y, uint32_t) { return x + y; }
uint64_t sub(uint64_t x, uint64_t y, uint32_t) { return x - y; }
uint64_t mul(uint64_t x, uint64_t y, uint32_t) { return x * y; }
uint64_t udiv(uint64_t x, uint64_t y, uint32_t) { return y ? x / y : kBad; }
uint64_t urem(uint64_t x, uint64_t y, uint32_t) { return y ? x % y : kBad; }
uint64_t sdiv(uint64_t x, uint64_t y, uint32_t b) {
  return y ? extend(y, b) == -1 ? 0 - x : uint64_t(extend(x, b) / extend(y, b)) : kBad;
}
uint64_t srem(uint64_t x, uint64_t y, uint32_t b) {
  return y ? extend(y, b) == -1 ? 0 : uint64_t(extend(x, b) % extend(y, b)) : kBad;
}
uint64_t shl(uint64_t x, uint64_t y, uint32_t b) { return y < b ? x << y : kBad; }
uint64_t lshr(uint64_t x, uint64_t y, uint32_t b) { return y < b ? x >> y : kBad; }
uint64_t ashr(uint64_t x, uint64_t y, uint32_t b) { return y < b ? uint64_t(extend(x, b) >> y) : kBad; }
uint64_t land(uint64_t x, uint64_t y, uint32_t) { return x & y; }
uint64_t lor(uint64_t x, uint64_t y, uint32_t) { return x | y; }
uint64_t lxor(uint64_t x, uint64_t y, uint32_t) { return x ^ y; }
uint64_t umin(uint64_t x, uint64_t y, uint32_t) { return std::min(x, y); }
uint64_t umax(uint64_t x, uint64_t y, uint32_t) { return std::max(x, y); }
uint64_t smin(uint64_t x, uint64_t y, uint32_t b) { return extend(x, b) < extend(y, b) ? x : y; }
uint64_t smax(uint64_t x, uint64_t y, uint32_t b) { return extend(x, b) > extend(y, b) ? x : y; }
uint64_t uadd_sat(uint64_t x, uint64_t y, uint32_t b) {
  return std::min(x + y < x ? ~uint64_t(0) : x + y, mask_of(b));
}
uint64_t usub_sat(uint64_t x, uint64_t y, uint32_t) { return x > y ? x - y : 0; }
uint64_t mul_u24(uint64_t x, uint64_t y, uint32_t) { return (x & 0xffffff) * (y & 0xffffff); }
uint64_t mul_i24(uint64_t x, uint64_t y, uint32_t) { return uint64_t(extend(x, 24) * extend(y, 24)); }

template <bool Signed>
uint64_t sat(__int128 x, uint32_t b) {
  const __int128 most = Signed ? (__int128(1) << (b - 1)) - 1 : (__int128(1) << b) - 1;
  return uint64_t(std::clamp(x, Signed ? -most - 1 : __int128(0), most));
}
uint64_t sadd_sat(uint64_t x, uint64_t y, uint32_t b) {
  return sat<true>(__int128(extend(x, b)) + extend(y, b), b);
}
uint64_t ssub_sat(uint64_t x, uint64_t y, uint32_t b) {
  return sat<true>(__int128(extend(x, b)) - extend(y, b), b);
}

uint64_t abs(uint64_t x, uint32_t b) { return extend(x, b) < 0 ? 0 - x : x; }
uint64_t popcount(uint64_t x, uint32_t) { return uint64_t(std::popcount(x)); }
uint64_t ctlz(uint64_t x, uint32_t b) { return uint64_t(std::countl_zero(x)) - (64 - b); }
uint64_t cttz(uint64_t x, uint32_t b) { return std::min<uint64_t>(uint64_t(std::countr_zero(x)), b); }
uint64_t bswap(uint64_t x, uint32_t b) { return __builtin_bswap64(x) >> (64 - b); }
uint64_t bitreverse(uint64_t x, uint32_t b) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < b; ++i) out |= (x >> i & 1) << (b - 1 - i);
  return out;
}
uint64_t funnel_left(uint64_t x, uint64_t y, uint64_t n, uint32_t b) {
  n %= b;
  return n ? x << n | y >> (b - n) : x;
}
uint64_t funnel_right(uint64_t x, uint64_t y, uint64_t n, uint32_t b) {
  n %= b;
  return n ? x << (b - n) | y >> n : y;
}
uint64_t ubfe(uint64_t x, uint64_t offset, uint64_t width, uint32_t) {
  return (x >> (offset & 31)) & mask_of(uint32_t(width & 31));
}
uint64_t sbfe(uint64_t x, uint64_t offset, uint64_t width, uint32_t) {
  const auto bits = uint32_t(width & 31);
  return bits ? uint64_t(extend(x >> (offset & 31), bits)) : 0;
}
/// v_perm_b32: each byte of the selector picks one of the eight bytes {x, y}, y's first.
uint64_t perm(uint64_t x, uint64_t y, uint64_t selector, uint32_t) {
  const uint64_t both = x << 32 | y;
  uint64_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t s = selector >> 8 * i & 0xff;
    uint64_t byte = 0;
    if (s <= 7)
      byte = both >> 8 * s & 0xff;
    else if (s <= 11) // the sign of byte 1, 3, 5 or 7
      byte = both >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
    else
      byte = s == 12 ? 0 : 0xff;
    out |= byte << 8 * i;
  }
  return out;
}
uint64_t alignbyte(uint64_t x, uint64_t y, uint64_t n, uint32_t) { return (x << 32 | y) >> 8 * (n & 3); }
uint64_t alignbit(uint64_t x, uint64_t y, uint64_t n, uint32_t) { return (x << 32 | y) >> (n & 31); }

using llvm::CmpInst;
template <CmpInst::Predicate P>
uint64_t compare(uint64_t x, uint64_t y, uint32_t b) {
  const int64_t s = extend(x, b), t = extend(y, b);
  switch (P) {
  case CmpInst::ICMP_EQ:
    return x == y;
  case CmpInst::ICMP_NE:
    return x != y;
  case CmpInst::ICMP_UGT:
    return x > y;
  case CmpInst::ICMP_UGE:
    return x >= y;
  case CmpInst::ICMP_ULT:
    return x < y;
  case CmpInst::ICMP_ULE:
    return x <= y;
  case CmpInst::ICMP_SGT:
    return s > t;
  case CmpInst::ICMP_SGE:
    return s >= t;
  case CmpInst::ICMP_SLT:
    return s < t;
  default:
    return s <= t;
  }
}

Run comparison(CmpInst::Predicate p) {
  switch (p) {
#define DEEPGEN_COMPARE(name)                                                                                \
  case CmpInst::name:                                                                                        \
    return binary<compare<CmpInst::name>>;
    DEEPGEN_COMPARE(ICMP_EQ)
    DEEPGEN_COMPARE(ICMP_NE)
    DEEPGEN_COMPARE(ICMP_UGT)
    DEEPGEN_COMPARE(ICMP_UGE)
    DEEPGEN_COMPARE(ICMP_ULT)
    DEEPGEN_COMPARE(ICMP_ULE)
    DEEPGEN_COMPARE(ICMP_SGT)
    DEEPGEN_COMPARE(ICMP_SGE)
    DEEPGEN_COMPARE(ICMP_SLT)
    DEEPGEN_COMPARE(ICMP_SLE)
#undef DEEPGEN_COMPARE
  default:
    return nullptr;
  }
}

Run of_opcode(unsigned opcode) {
  using I = llvm::Instruction;
  switch (opcode) {
  case I::Add:
    return binary<add>;
  case I::Sub:
    return binary<sub>;
  case I::Mul:
    return binary<mul>;
  case I::UDiv:
    return binary<udiv>;
  case I::SDiv:
    return binary<sdiv>;
  case I::URem:
    return binary<urem>;
  case I::SRem:
    return binary<srem>;
  case I::Shl:
    return binary<shl>;
  case I::LShr:
    return binary<lshr>;
  case I::AShr:
    return binary<ashr>;
  case I::And:
    return binary<land>;
  case I::Or:
    return binary<lor>;
  case I::Xor:
    return binary<lxor>;
  default:
    return nullptr;
  }
}

struct Entry {
  std::string_view name;
  Run run;
};

constexpr Entry intrinsics[] = {
    {"umin", binary<umin>},
    {"umax", binary<umax>},
    {"smin", binary<smin>},
    {"smax", binary<smax>},
    {"uadd.sat", binary<uadd_sat>},
    {"usub.sat", binary<usub_sat>},
    {"sadd.sat", binary<sadd_sat>},
    {"ssub.sat", binary<ssub_sat>},
    {"abs", unary<abs>},
    {"ctpop", unary<popcount>},
    {"ctlz", unary<ctlz>},
    {"cttz", unary<cttz>},
    {"bswap", unary<bswap>},
    {"bitreverse", unary<bitreverse>},
    {"fshl", ternary<funnel_left>},
    {"fshr", ternary<funnel_right>},
    {"amdgcn.ubfe", ternary<ubfe>},
    {"amdgcn.sbfe", ternary<sbfe>},
    {"amdgcn.perm", ternary<perm>},
    {"amdgcn.alignbyte", ternary<alignbyte>},
    {"amdgcn.alignbit", ternary<alignbit>},
    {"amdgcn.mul.u24", binary<mul_u24>},
    {"amdgcn.mul.i24", binary<mul_i24>},
};

} // namespace

bool decode_integer(Decoder&, const llvm::Instruction& i, Instruction& out) {
  if (const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&i)) {
    out.run = comparison(compare->getPredicate());
    return out.run != nullptr && out.in[0].count == out.result.count;
  }
  out.run = of_opcode(i.getOpcode());
  if (out.run) return true;
  const std::string name = intrinsic_name(i);
  for (const Entry& e : intrinsics)
    if (name == e.name) out.run = e.run;
  return out.run != nullptr;
}

} // namespace deepgen::amd_sim
