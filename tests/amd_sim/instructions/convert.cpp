// Conversions between types, and the reinterpretation of bits.
#include "tests/amd_sim/instructions/floats.h"
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/wave.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

void copy(Wave& w, const Instruction& in) {
  const uint64_t mask = mask_of(in.result.bits);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) { return x[l] & mask; });
  }
}

void sign_extend(Wave& w, const Instruction& in) {
  const uint64_t mask = mask_of(in.result.bits);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) { return uint64_t(extend(x[l], in.in[0].bits)) & mask; });
  }
}

/// The components' bits in a row, cut anew.
void bitcast(Wave& w, const Instruction& in) {
  const uint32_t from = in.in[0].bits, to = in.result.bits;
  if (from == to) return copy(w, in);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    uint64_t out[64] = {};
    for (uint32_t done = 0; done < to;) {
      const uint32_t at = c * to + done, skip = at % from, take = std::min(from - skip, to - done);
      const uint64_t* x = w.in(in.in[0], at / from);
      for (int l = 0; l < w.lanes; ++l) out[l] |= (x[l] >> skip & mask_of(take)) << done;
      done += take;
    }
    w.put(in.result, c, out);
  }
}

template <typename From, typename To>
void between_floats(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) { return To::put(typename To::T(From::get(x[l]))); });
  }
}

/// Numbers too large for the integer are poison, or saturate: in.kind.
template <typename From, bool Signed>
void to_integer(Wave& w, const Instruction& in) {
  const double most = std::ldexp(1.0, int(in.result.bits) - Signed), least = Signed ? -most : 0;
  const uint64_t mask = mask_of(in.result.bits), poison = 0xbadbadbadbadbadbu & mask;
  const uint64_t largest = Signed ? mask >> 1 : mask, smallest = Signed ? ~(mask >> 1) & mask : 0;
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) {
      const double v = std::trunc(double(From::get(x[l])));
      if (v >= least && v < most) return (Signed ? uint64_t(int64_t(v)) : uint64_t(v)) & mask;
      if (!in.kind) return poison;
      return std::isnan(v) ? uint64_t(0) : v < 0 ? smallest : largest;
    });
  }
}

template <typename To, bool Signed>
void from_integer(Wave& w, const Instruction& in) {
  using T = typename To::T;
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c,
              [&](int l) { return To::put(Signed ? T(extend(x[l], in.in[0].bits)) : T(x[l])); });
  }
}

/// cvt.pkrtz: two f32 to f16, towards zero.
void pack_towards_zero(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < 2; ++c) {
    const uint64_t* x = w.in(in.in[c]);
    w.compute(in.result, c, [&](int l) {
      const float v = F32::get(x[l]);
      const uint64_t near = F16::put(v);
      return std::fabs(F16::get(near)) > std::fabs(v) && std::isfinite(v) ? near - 1 : near;
    });
  }
}

Run between(uint32_t from, uint32_t to) {
  return with_float(from, [to]<typename From>(From) {
    return with_float(to, []<typename To>(To) -> Run { return between_floats<From, To>; });
  });
}

Run of_cast(const llvm::CastInst& cast) {
  using I = llvm::Instruction;
  const llvm::Type *from = cast.getSrcTy(), *to = cast.getDestTy();
  switch (cast.getOpcode()) {
  case I::Trunc:
  case I::ZExt:
  case I::PtrToInt:
  case I::PtrToAddr:
  case I::IntToPtr:
    return copy;
  case I::SExt:
    return sign_extend;
  case I::BitCast:
    return bitcast;
  case I::FPTrunc:
  case I::FPExt:
    return between(float_kind(from), float_kind(to));
  case I::FPToSI:
    return with_float(float_kind(from), []<typename F>(F) -> Run { return to_integer<F, true>; });
  case I::FPToUI:
    return with_float(float_kind(from), []<typename F>(F) -> Run { return to_integer<F, false>; });
  case I::SIToFP:
    return with_float(float_kind(to), []<typename F>(F) -> Run { return from_integer<F, true>; });
  case I::UIToFP:
    return with_float(float_kind(to), []<typename F>(F) -> Run { return from_integer<F, false>; });
  default:
    return nullptr;
  }
}

} // namespace

bool decode_convert(Decoder&, const llvm::Instruction& i, Instruction& out) {
  if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&i)) {
    out.run = of_cast(*cast);
    const bool words = out.in[0].count * out.in[0].bits == out.result.count * out.result.bits;
    if (out.run == copy && out.in[0].count != out.result.count) out.run = words ? bitcast : nullptr;
    return out.run != nullptr;
  }
  const std::string name = intrinsic_name(i);
  if (llvm::isa<llvm::FreezeInst>(i))
    out.run = copy;
  else if (name == "amdgcn.cvt.pkrtz")
    out.run = pack_towards_zero;
  else if (name == "fptosi.sat" || name == "fptoui.sat") {
    out.kind = 1;
    with_float(float_kind(i.getOperand(0)->getType()), [&]<typename F>(F) {
      out.run = name == "fptosi.sat" ? to_integer<F, true> : to_integer<F, false>;
    });
  }
  return out.run != nullptr;
}

} // namespace deepgen::amd_sim
