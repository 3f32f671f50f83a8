#include "tests/amd_sim/instructions/small_floats.h"

#include "tests/amd_sim/instructions/floats.h"
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/wave.h"

#include <limits>

namespace deepgen::amd_sim {
namespace {

double decode_once(SmallFormat f, uint64_t bits) {
  const int fraction_bits = 7 - f.exponent_bits, top = (1 << f.exponent_bits) - 1;
  const int exponent = int(bits >> fraction_bits) & top, fraction = int(bits) & ((1 << fraction_bits) - 1);
  const bool nan = f.fnuz                 ? bits == 0x80
                   : f.exponent_bits == 4 ? (bits & 0x7f) == 0x7f
                                          : exponent == top && fraction;
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  const double sign = bits & 0x80 ? -1 : 1;
  if (!f.fnuz && f.exponent_bits == 5 && exponent == top)
    return sign * std::numeric_limits<double>::infinity();
  const int bias = (1 << (f.exponent_bits - 1)) - (f.fnuz ? 0 : 1);
  const int whole = exponent ? fraction + (1 << fraction_bits) : fraction;
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
}

const std::array<double, 256>& table(SmallFormat f) {
  static const auto all = [] {
    std::array<std::array<double, 256>, 4> tables;
    for (size_t t = 0; t < 4; ++t)
      for (size_t i = 0; i < 256; ++i) tables[t][i] = decode_once({t & 1 ? 5 : 4, t >= 2}, i);
    return tables;
  }();
  return all[(f.exponent_bits == 5 ? 1 : 0) + (f.fnuz ? 2 : 0)];
}

SmallFormat format_of(const Wave& w, uint32_t kind) { return {int(kind), w.group_chip().fnuz}; }

/// cvt.f32.fp8(bytes, which).
void widen(Wave& w, const Instruction& in) {
  const uint64_t* x = w.in(in.in[0]);
  for (uint32_t c = 0; c < in.result.count; ++c)
    w.compute(in.result, c, [&](int l) {
      const auto byte = uint32_t(in.numbers[0]) * in.result.count + c;
      return F32::put(float(decode_small(format_of(w, in.kind), x[l] >> 8 * byte & 0xff)));
    });
}

/// cvt.pk.fp8.f32(x, y, old, upper half).
void pack(Wave& w, const Instruction& in) {
  const uint64_t *x = w.in(in.in[0]), *y = w.in(in.in[1]), *old = w.in(in.in[2]);
  const SmallFormat f = format_of(w, in.kind);
  const int shift = in.numbers[0] ? 16 : 0;
  w.compute(in.result, 0, [&](int l) {
    const uint64_t two = encode_small(f, F32::get(x[l])) | encode_small(f, F32::get(y[l])) << 8;
    return (old[l] & ~(uint64_t(0xffff) << shift)) | two << shift;
  });
}

} // namespace

double decode_small(SmallFormat f, uint64_t bits) { return table(f)[bits & 0xff]; }

uint64_t encode_small(SmallFormat f, double x) {
  const std::array<double, 256>& values = table(f);
  if (std::isnan(x)) return f.fnuz ? 0x80 : 0x7f;
  const double size = std::fabs(x);
  uint64_t most = 0x7f; // positive numbers grow with their bits
  while (!std::isfinite(values[most])) --most;
  uint64_t low = 0;
  for (uint64_t step = 0x40; step; step /= 2)
    if (low + step <= most && values[low + step] <= size) low += step;
  if (low < most) {
    const double below = size - values[low], above = values[low + 1] - size;
    if (above < below || (above == below && low % 2)) ++low;
  }
  return std::signbit(x) && !(f.fnuz && low == 0) ? low | 0x80 : low;
}

bool decode_small_float(Decoder&, const llvm::Instruction& i, Instruction& out) {
  const std::string name = intrinsic_name(i);
  if (!name.starts_with("amdgcn.cvt.")) return false;
  const auto& call = llvm::cast<llvm::CallBase>(i);
  for (const char* format : {"fp8", "bf8"}) {
    out.kind = format[0] == 'f' ? 4 : 5;
    if (name == std::string("amdgcn.cvt.f32.") + format || name == std::string("amdgcn.cvt.pk.f32.") + format)
      out.numbers = {immediate(call, 1)}, out.run = widen;
    else if (name == std::string("amdgcn.cvt.pk.") + format + ".f32")
      out.numbers = {immediate(call, 3)}, out.run = pack;
    if (out.run) return true;
  }
  return false;
}

} // namespace deepgen::amd_sim
