// Integers, bits and predicates. Registers hold their value without sign, the upper bits zero.
#include "tests/ptx_sim/machine/lanes.h"
#include "tests/ptx_sim/program/decode.h"

namespace deepgen::ptx_sim {
namespace {

using U = uint64_t;

template <int Bits>
constexpr U cut(U x) {
  if constexpr (Bits == 64)
    return x;
  else
    return x & ((U(1) << Bits) - 1);
}
template <int Bits>
constexpr int64_t wide(U x) {
  return int64_t(x << (64 - Bits)) >> (64 - Bits);
}

// Of a number of bits.
template <int B>
constexpr auto add = [](U x, U y) { return cut<B>(x + y); };
template <int B>
constexpr auto sub = [](U x, U y) { return cut<B>(x - y); };
template <int B>
constexpr auto mul_lo = [](U x, U y) { return cut<B>(x * y); };
template <int B>
constexpr auto mad_lo = [](U x, U y, U z) { return cut<B>(x * y + z); };
template <int B>
constexpr auto neg = [](U x) { return cut<B>(U(0) - x); };
template <int B>
constexpr auto bit_not = [](U x) { return cut<B>(~x); };
template <int B>
constexpr auto bit_and = [](U x, U y) { return cut<B>(x & y); };
template <int B>
constexpr auto bit_or = [](U x, U y) { return cut<B>(x | y); };
template <int B>
constexpr auto bit_xor = [](U x, U y) { return cut<B>(x ^ y); };
template <int B>
constexpr auto shl = [](U x, U y) { return uint32_t(y) < B ? cut<B>(x << (y & 63)) : 0; };
template <int B>
constexpr auto shr = [](U x, U y) { return uint32_t(y) < B ? cut<B>(x) >> (y & 63) : 0; };
template <int B>
constexpr auto shr_signed =
    [](U x, U y) { return cut<B>(U(wide<B>(x) >> (uint32_t(y) < B ? uint32_t(y) : B - 1))); };
template <int B>
constexpr auto div_u = [](U x, U y) { return cut<B>(y) ? cut<B>(x) / cut<B>(y) : cut<B>(~U(0)); };
template <int B>
constexpr auto rem_u = [](U x, U y) { return cut<B>(y) ? cut<B>(x) % cut<B>(y) : cut<B>(x); };
template <int B>
constexpr auto div_s = [](U x, U y) {
  return cut<B>(y) == 0     ? cut<B>(~U(0))
         : wide<B>(y) == -1 ? cut<B>(U(0) - x)
                            : cut<B>(U(wide<B>(x) / wide<B>(y)));
};
template <int B>
constexpr auto rem_s = [](U x, U y) {
  return cut<B>(y) == 0 ? cut<B>(x) : wide<B>(y) == -1 ? U(0) : cut<B>(U(wide<B>(x) % wide<B>(y)));
};
template <int B>
constexpr auto min_u = [](U x, U y) { return std::min(cut<B>(x), cut<B>(y)); };
template <int B>
constexpr auto max_u = [](U x, U y) { return std::max(cut<B>(x), cut<B>(y)); };
template <int B>
constexpr auto min_s = [](U x, U y) { return cut<B>(U(std::min(wide<B>(x), wide<B>(y)))); };
template <int B>
constexpr auto max_s = [](U x, U y) { return cut<B>(U(std::max(wide<B>(x), wide<B>(y)))); };
template <int B>
constexpr auto mul_wide_u = [](U x, U y) { return cut<2 * B>(cut<B>(x) * cut<B>(y)); };
template <int B>
constexpr auto mul_wide_s = [](U x, U y) { return cut<2 * B>(U(wide<B>(x) * wide<B>(y))); };
template <int B>
constexpr auto mad_wide_u = [](U x, U y, U z) { return cut<2 * B>(cut<B>(x) * cut<B>(y) + z); };
template <int B>
constexpr auto mad_wide_s = [](U x, U y, U z) { return cut<2 * B>(U(wide<B>(x) * wide<B>(y)) + z); };
constexpr auto mul_hi_u64 = [](U x, U y) { return U((static_cast<unsigned __int128>(x) * y) >> 64); };
constexpr auto mul_hi_s64 = [](U x, U y) {
  return U((static_cast<__int128>(int64_t(x)) * int64_t(y)) >> 64);
};
constexpr auto mul_hi_u32 = [](U x, U y) { return (cut<32>(x) * cut<32>(y)) >> 32; };
constexpr auto mul_hi_s32 = [](U x, U y) { return cut<32>(U((wide<32>(x) * wide<32>(y)) >> 32)); };
constexpr auto min_relu_s32 = [](U x, U y) {
  return U(std::max<int64_t>(0, std::min<int64_t>(wide<32>(x), wide<32>(y))));
};
constexpr auto max_relu_s32 = [](U x, U y) {
  return U(std::max<int64_t>(0, std::max<int64_t>(wide<32>(x), wide<32>(y))));
};
constexpr auto popc_b32 = [](U x) { return U(std::popcount(uint32_t(x))); };
constexpr auto abs_s32 = [](U x) { return cut<32>(U(std::abs(wide<32>(x)))); };
template <int B>
constexpr auto select = [](U x, U y, U p) { return p & 1 ? cut<B>(x) : cut<B>(y); };

// Conditions.
template <int B>
constexpr auto eq = [](U x, U y) { return U(cut<B>(x) == cut<B>(y)); };
template <int B>
constexpr auto ne = [](U x, U y) { return U(cut<B>(x) != cut<B>(y)); };
template <int B>
constexpr auto lt_u = [](U x, U y) { return U(cut<B>(x) < cut<B>(y)); };
template <int B>
constexpr auto le_u = [](U x, U y) { return U(cut<B>(x) <= cut<B>(y)); };
template <int B>
constexpr auto gt_u = [](U x, U y) { return U(cut<B>(x) > cut<B>(y)); };
template <int B>
constexpr auto ge_u = [](U x, U y) { return U(cut<B>(x) >= cut<B>(y)); };
template <int B>
constexpr auto lt_s = [](U x, U y) { return U(wide<B>(x) < wide<B>(y)); };
template <int B>
constexpr auto le_s = [](U x, U y) { return U(wide<B>(x) <= wide<B>(y)); };
template <int B>
constexpr auto gt_s = [](U x, U y) { return U(wide<B>(x) > wide<B>(y)); };
template <int B>
constexpr auto ge_s = [](U x, U y) { return U(wide<B>(x) >= wide<B>(y)); };

// Pieces.
constexpr auto bfe_u32 = [](U x, U at, U length) {
  at &= 255, length &= 255;
  return at > 31 || length == 0 ? 0 : cut<32>(x) >> at & ((U(1) << std::min<U>(length, 32)) - 1);
};
constexpr auto bfe_u64 = [](U x, U at, U length) {
  at &= 255, length &= 255;
  return at > 63 || length == 0 ? U(0) : x >> at & (length > 63 ? ~U(0) : (U(1) << length) - 1);
};
constexpr auto bfe_s32 = [](U x, U at, U length) {
  at &= 255, length &= 255;
  if (length == 0) return U(0);
  const int64_t shifted = wide<32>(x) >> std::min<U>(at, 31);
  return length >= 32 ? cut<32>(U(shifted))
                      : cut<32>(U(int64_t(U(shifted) << (64 - length)) >> (64 - length)));
};
constexpr auto bfi = [](U piece, U x, U at, U length) {
  at &= 255, length &= 255;
  const U mask = at > 31 ? 0 : cut<32>(((U(1) << std::min<U>(length, 32)) - 1) << at);
  return (cut<32>(x) & ~mask) | (at > 31 ? 0 : piece << at & mask);
};
constexpr auto shf_r_wrap = [](U low, U high, U by) {
  return cut<32>((cut<32>(low) | cut<32>(high) << 32) >> (by & 31));
};
constexpr auto shf_l_wrap = [](U low, U high, U by) {
  return ((cut<32>(low) | cut<32>(high) << 32) << (by & 31)) >> 32;
};
constexpr auto prmt = [](U x, U y, U selector) {
  const U all = cut<32>(x) | cut<32>(y) << 32;
  U out = 0;
  for (int i = 0; i < 4; ++i) {
    const U which = selector >> (4 * i);
    const U byte = all >> (8 * (which & 7)) & 255;
    out |= (which & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
  }
  return out;
};
constexpr auto prmt_f4e = [](U x, U y, U at) {
  return cut<32>((cut<32>(x) | cut<32>(y) << 32) >> (8 * (at & 3)));
};
constexpr auto dp4a_s32 = [](U x, U y, U sum) {
  for (int i = 0; i < 32; i += 8) sum += U(wide<8>(x >> i) * wide<8>(y >> i));
  return cut<32>(sum);
};
constexpr auto lop3 = [](U x, U y, U z, U table) {
  U out = 0;
  for (int i = 0; i < 8; ++i)
    if (table >> i & 1) out |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z);
  return cut<32>(out);
};
template <auto f>
void quaternary(Warp& w, const Instruction& in) {
  uint64_t out[32];
  for (int l = 0; l < 32; ++l)
    out[l] =
        f(w.in(in.operands[1])[l], w.in(in.operands[2])[l], w.in(in.operands[3])[l], w.in(in.operands[4])[l]);
  w.put(in.operands[0], out);
}

/// All widths of an operation, with the letters that the type may begin with.
template <Run R16, Run R32, Run R64>
struct Widths {
  static Run of(int bytes) { return bytes == 2 ? R16 : bytes == 4 ? R32 : bytes == 8 ? R64 : nullptr; }
};
#define DEEPGEN_WIDTHS(shape, f) Widths<shape<f<16>>, shape<f<32>>, shape<f<64>>>::of

using ByWidth = Run (*)(int);
struct Family {
  const char* name; ///< without the type
  ByWidth plain, with_sign = nullptr;
};

constexpr Family families[] = {
    {"add", DEEPGEN_WIDTHS(binary, add)},
    {"sub", DEEPGEN_WIDTHS(binary, sub)},
    {"mul.lo", DEEPGEN_WIDTHS(binary, mul_lo)},
    {"mad.lo", DEEPGEN_WIDTHS(ternary, mad_lo)},
    {"neg", DEEPGEN_WIDTHS(unary, neg)},
    {"not", DEEPGEN_WIDTHS(unary, bit_not)},
    {"and", DEEPGEN_WIDTHS(binary, bit_and)},
    {"or", DEEPGEN_WIDTHS(binary, bit_or)},
    {"xor", DEEPGEN_WIDTHS(binary, bit_xor)},
    {"shl", DEEPGEN_WIDTHS(binary, shl)},
    {"shr", DEEPGEN_WIDTHS(binary, shr), DEEPGEN_WIDTHS(binary, shr_signed)},
    {"div", DEEPGEN_WIDTHS(binary, div_u), DEEPGEN_WIDTHS(binary, div_s)},
    {"rem", DEEPGEN_WIDTHS(binary, rem_u), DEEPGEN_WIDTHS(binary, rem_s)},
    {"min", DEEPGEN_WIDTHS(binary, min_u), DEEPGEN_WIDTHS(binary, min_s)},
    {"max", DEEPGEN_WIDTHS(binary, max_u), DEEPGEN_WIDTHS(binary, max_s)},
    {"selp", DEEPGEN_WIDTHS(ternary, select)},
    {"setp.eq", DEEPGEN_WIDTHS(binary, eq)},
    {"setp.ne", DEEPGEN_WIDTHS(binary, ne)},
    {"setp.lt", DEEPGEN_WIDTHS(binary, lt_u), DEEPGEN_WIDTHS(binary, lt_s)},
    {"setp.le", DEEPGEN_WIDTHS(binary, le_u), DEEPGEN_WIDTHS(binary, le_s)},
    {"setp.gt", DEEPGEN_WIDTHS(binary, gt_u), DEEPGEN_WIDTHS(binary, gt_s)},
    {"setp.ge", DEEPGEN_WIDTHS(binary, ge_u), DEEPGEN_WIDTHS(binary, ge_s)},
};
#undef DEEPGEN_WIDTHS

constexpr Entry others[] = {
    {"mul.wide.u16", binary<mul_wide_u<16>>},
    {"mul.wide.s16", binary<mul_wide_s<16>>},
    {"mul.wide.u32", binary<mul_wide_u<32>>},
    {"mul.wide.s32", binary<mul_wide_s<32>>},
    {"mad.wide.u32", ternary<mad_wide_u<32>>},
    {"mad.wide.s32", ternary<mad_wide_s<32>>},
    {"mad.wide.u16", ternary<mad_wide_u<16>>},
    {"mad.wide.s16", ternary<mad_wide_s<16>>},
    {"mul.hi.u32", binary<mul_hi_u32>},
    {"mul.hi.s32", binary<mul_hi_s32>},
    {"mul.hi.u64", binary<mul_hi_u64>},
    {"mul.hi.s64", binary<mul_hi_s64>},
    {"abs.s32", unary<abs_s32>},
    {"min.relu.s32", binary<min_relu_s32>},
    {"max.relu.s32", binary<max_relu_s32>},
    {"popc.b32", unary<popc_b32>},
    {"bfe.u32", ternary<bfe_u32>},
    {"bfe.s32", ternary<bfe_s32>},
    {"bfe.u64", ternary<bfe_u64>},
    {"shf.r.wrap.b32", ternary<shf_r_wrap>},
    {"shf.l.wrap.b32", ternary<shf_l_wrap>},
    {"prmt.b32", ternary<prmt>},
    {"prmt.b32.f4e", ternary<prmt_f4e>},
    {"dp4a.s32.s32", ternary<dp4a_s32>},
    {"lop3.b32", quaternary<lop3>},
    {"bfi.b32", quaternary<bfi>},
    {"and.pred", binary<bit_and<1>>},
    {"or.pred", binary<bit_or<1>>},
    {"xor.pred", binary<bit_xor<1>>},
    {"not.pred", unary<bit_not<1>>},
    {"selp.pred", ternary<select<1>>},
};

} // namespace

bool decode_arithmetic(const Opcode& op, Instruction& in) {
  if (find_entry(others, op.text, in)) return true;
  const std::string& type = op.last();
  if (op.parts.size() < 2 || (type[0] == 'f' && op.name() != "selp")) return false;
  const std::string name = op.text.substr(0, op.text.size() - type.size() - 1);
  for (const Family& f : families)
    if (name == f.name) {
      in.run = (f.with_sign && type[0] == 's' ? f.with_sign : f.plain)(type_bytes(type));
      return in.run != nullptr;
    }
  return false;
}

} // namespace deepgen::ptx_sim
