// Arithmetic of f32 and f64, and conversions.
#include "tests/ptx_sim/machine/lanes.h"
#include "tests/ptx_sim/program/decode.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <cmath>

namespace deepgen::ptx_sim {
namespace {

using U = uint64_t;

template <typename T>
T value(U bits) {
  if constexpr (sizeof(T) == 4)
    return to_float(bits);
  else
    return to_double(bits);
}

template <typename T>
constexpr auto add = [](U x, U y) { return to_bits(value<T>(x) + value<T>(y)); };
template <typename T>
constexpr auto sub = [](U x, U y) { return to_bits(value<T>(x) - value<T>(y)); };
template <typename T>
constexpr auto mul = [](U x, U y) { return to_bits(value<T>(x) * value<T>(y)); };
template <typename T>
constexpr auto div = [](U x, U y) { return to_bits(value<T>(x) / value<T>(y)); };
template <typename T>
constexpr auto fma = [](U x, U y, U z) { return to_bits(std::fma(value<T>(x), value<T>(y), value<T>(z))); };
template <typename T>
constexpr auto neg = [](U x) { return to_bits(-value<T>(x)); };
template <typename T>
constexpr auto abs = [](U x) { return to_bits(std::fabs(value<T>(x))); };
template <typename T>
constexpr auto rcp = [](U x) { return to_bits(1 / value<T>(x)); };
template <typename T>
constexpr auto sqrt = [](U x) { return to_bits(std::sqrt(value<T>(x))); };
constexpr auto ex2 = [](U x) { return to_bits(std::exp2(to_float(x))); };
constexpr auto lg2 = [](U x) { return to_bits(std::log2(to_float(x))); };
constexpr auto tanh32 = [](U x) { return to_bits(std::tanh(to_float(x))); };
/// One NaN is passed over; `NaN`: it is not.
template <typename T, bool NaN>
constexpr auto min = [](U a, U b) {
  const T x = value<T>(a), y = value<T>(b);
  return to_bits(NaN && (std::isnan(x) || std::isnan(y)) ? x + y : std::fmin(x, y));
};
template <typename T, bool NaN>
constexpr auto max = [](U a, U b) {
  const T x = value<T>(a), y = value<T>(b);
  return to_bits(NaN && (std::isnan(x) || std::isnan(y)) ? x + y : std::fmax(x, y));
};

template <typename T>
constexpr auto eq = [](U x, U y) { return U(value<T>(x) == value<T>(y)); };
template <typename T>
constexpr auto neu = [](U x, U y) { return U(value<T>(x) != value<T>(y)); };
template <typename T>
constexpr auto ne = [](U x, U y) { return U(std::islessgreater(value<T>(x), value<T>(y))); };
template <typename T>
constexpr auto lt = [](U x, U y) { return U(value<T>(x) < value<T>(y)); };
template <typename T>
constexpr auto le = [](U x, U y) { return U(value<T>(x) <= value<T>(y)); };
template <typename T>
constexpr auto gt = [](U x, U y) { return U(value<T>(x) > value<T>(y)); };
template <typename T>
constexpr auto ge = [](U x, U y) { return U(value<T>(x) >= value<T>(y)); };
template <typename T>
constexpr auto equ = [](U x, U y) { return U(!std::islessgreater(value<T>(x), value<T>(y))); };
template <typename T>
constexpr auto ltu = [](U x, U y) { return U(!(value<T>(x) >= value<T>(y))); };
template <typename T>
constexpr auto leu = [](U x, U y) { return U(!(value<T>(x) > value<T>(y))); };
template <typename T>
constexpr auto gtu = [](U x, U y) { return U(!(value<T>(x) <= value<T>(y))); };
template <typename T>
constexpr auto geu = [](U x, U y) { return U(!(value<T>(x) < value<T>(y))); };
template <typename T>
constexpr auto nan = [](U x, U y) { return U(std::isunordered(value<T>(x), value<T>(y))); };
template <typename T>
constexpr auto num = [](U x, U y) { return U(!std::isunordered(value<T>(x), value<T>(y))); };

struct Family {
  const char* name; ///< without the type
  Run f32, f64;
};
#define DEEPGEN_BOTH(name, shape, f) {name, shape<f<float>>, shape<f<double>>}
constexpr Family families[] = {
    DEEPGEN_BOTH("add.rn", binary, add),
    DEEPGEN_BOTH("sub.rn", binary, sub),
    DEEPGEN_BOTH("mul.rn", binary, mul),
    DEEPGEN_BOTH("add", binary, add),
    DEEPGEN_BOTH("sub", binary, sub),
    DEEPGEN_BOTH("mul", binary, mul),
    DEEPGEN_BOTH("div.rn", binary, div),
    DEEPGEN_BOTH("fma.rn", ternary, fma),
    DEEPGEN_BOTH("neg", unary, neg),
    DEEPGEN_BOTH("abs", unary, abs),
    DEEPGEN_BOTH("rcp.rn", unary, rcp),
    DEEPGEN_BOTH("sqrt.rn", unary, sqrt),
    DEEPGEN_BOTH("setp.eq", binary, eq),
    DEEPGEN_BOTH("setp.ne", binary, ne),
    DEEPGEN_BOTH("setp.lt", binary, lt),
    DEEPGEN_BOTH("setp.le", binary, le),
    DEEPGEN_BOTH("setp.gt", binary, gt),
    DEEPGEN_BOTH("setp.ge", binary, ge),
    DEEPGEN_BOTH("setp.equ", binary, equ),
    DEEPGEN_BOTH("setp.neu", binary, neu),
    DEEPGEN_BOTH("setp.ltu", binary, ltu),
    DEEPGEN_BOTH("setp.leu", binary, leu),
    DEEPGEN_BOTH("setp.gtu", binary, gtu),
    DEEPGEN_BOTH("setp.geu", binary, geu),
    DEEPGEN_BOTH("setp.nan", binary, nan),
    DEEPGEN_BOTH("setp.num", binary, num),
    {"min", binary<min<float, false>>, binary<min<double, false>>},
    {"max", binary<max<float, false>>, binary<max<double, false>>},
    {"min.NaN", binary<min<float, true>>, nullptr},
    {"max.NaN", binary<max<float, true>>, nullptr},
};
#undef DEEPGEN_BOTH

constexpr Entry approximations[] = {
    {"ex2.approx.ftz.f32", unary<ex2>},        {"ex2.approx.f32", unary<ex2>},
    {"lg2.approx.ftz.f32", unary<lg2>},        {"lg2.approx.f32", unary<lg2>},
    {"rcp.approx.ftz.f32", unary<rcp<float>>}, {"rcp.approx.f32", unary<rcp<float>>},
    {"tanh.approx.f32", unary<tanh32>},        {"sqrt.approx.f32", unary<sqrt<float>>},
    {"div.full.f32", binary<div<float>>},      {"div.approx.f32", binary<div<float>>},
};

// Conversions: in.types[0] is the format of the result, [1] of the operand; in.flag: saturate.

void convert_format(Warp& w, const Instruction& in) {
  const uint64_t* x = w.in(in.operands[1]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l) {
    out[l] = encode(Format(in.types[0]), decode(Format(in.types[1]), x[l]), in.flag);
    if (Format(in.types[0]) == Format::s8) out[l] = uint32_t(int32_t(int8_t(out[l]))); // of a 32-bit register
  }
  w.put(in.operands[0], out);
}

/// Two values, the first operand in the upper half of the result.
void convert_pair(Warp& w, const Instruction& in) {
  const Format f = Format(in.types[0]), from = Format(in.types[1]);
  const uint64_t *upper = w.in(in.operands[1]), *lower = w.in(in.operands[2]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l)
    out[l] =
        encode(f, decode(from, upper[l]), in.flag) << bits_of(f) | encode(f, decode(from, lower[l]), in.flag);
  w.put(in.operands[0], out);
}

/// A packed pair of 8-bit floats to one of f16.
void widen_pair(Warp& w, const Instruction& in) {
  const Format from = Format(in.types[1]);
  const uint64_t* x = w.in(in.operands[1]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l)
    out[l] = encode(Format::f16, decode(from, x[l] >> 8)) << 16 | encode(Format::f16, decode(from, x[l]));
  w.put(in.operands[0], out);
}

/// The lower `bits`, extended.
uint64_t extend(uint64_t x, int bits, bool with_sign) {
  const int up = 64 - bits;
  return with_sign ? uint64_t(int64_t(x << up) >> up) : x << up >> up;
}

/// Between integers: in.bytes is the operand's width; in.k the result's in bits, in.flag its sign, in.m its
/// register's width.
void convert_integer(Warp& w, const Instruction& in) {
  const uint64_t* x = w.in(in.operands[1]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l)
    out[l] = extend(extend(extend(x[l], 8 * in.bytes, in.is_signed), in.k, in.flag), in.m, false);
  w.put(in.operands[0], out);
}

/// From an integer to f32 or f64.
void convert_to_float(Warp& w, const Instruction& in) {
  const uint64_t* x = w.in(in.operands[1]);
  const int up = 64 - 8 * in.bytes;
  uint64_t out[32];
  for (int l = 0; l < 32; ++l) {
    const auto value = in.is_signed ? int64_t(x[l] << up) >> up : int64_t(x[l] << up >> up);
    out[l] = Format(in.types[0]) == Format::f64 ? to_bits(double(value)) : to_bits(float(value));
  }
  w.put(in.operands[0], out);
}

bool is_integer(const std::string& type) {
  return (type[0] == 's' || type[0] == 'u') && type_bytes(type) > 0;
}

} // namespace

bool decode_float(const Opcode& op, Instruction& in) {
  if (find_entry(approximations, op.text, in)) return true;
  const std::string& type = op.last();
  if (type != "f32" && type != "f64") return false;
  const std::string name = op.text.substr(0, op.text.size() - 4);
  for (const Family& f : families)
    if (name == f.name) {
      in.run = type == "f32" ? f.f32 : f.f64;
      return in.run != nullptr;
    }
  return false;
}

bool decode_convert(const Opcode& op, Instruction& in, const Program& program) {
  if (op.name() != "cvt" || op.parts.size() < 3) return false;
  const std::string &from = op.last(), &to = op.parts[op.parts.size() - 2];
  const bool pair = to.ends_with("x2");
  in.flag = op.has("satfinite") || op.has("sat");
  if (op.has("rzi") || op.has("rz") || op.has("rmi") || op.has("rpi")) return false;
  if (is_integer(from)) {
    in.bytes = uint8_t(type_bytes(from)), in.is_signed = from[0] == 's';
    if (is_integer(to)) {
      in.run = convert_integer, in.k = uint16_t(8 * type_bytes(to)), in.flag = to[0] == 's';
      in.m = program.register_bits[in.operands[0].slot];
    } else if (to == "f32" || to == "f64")
      in.run = convert_to_float, in.types[0] = format_of(to);
    return in.run != nullptr;
  }
  if (pair && from.ends_with("x2")) {
    if (to != "f16x2") return false;
    in.run = widen_pair, in.types[1] = format_of(from.substr(0, 4));
    return true;
  }
  in.types[0] = format_of(pair ? to.substr(0, to.size() - 2) : to), in.types[1] = format_of(from);
  in.run = pair ? convert_pair : convert_format;
  return true;
}

} // namespace deepgen::ptx_sim
