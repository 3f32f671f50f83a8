#include "tests/amd_sim/instructions/floats.h"

#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/wave.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

template <typename F, auto Op>
void unary(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) { return F::put(typename F::T(Op(F::get(x[l])))); });
  }
}

template <typename F, auto Op>
void binary(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *y = w.in(in.in[1], c);
    w.compute(in.result, c, [&](int l) { return F::put(typename F::T(Op(F::get(x[l]), F::get(y[l])))); });
  }
}

template <typename F, auto Op>
void ternary(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *y = w.in(in.in[1], c), *z = w.in(in.in[2], c);
    w.compute(in.result, c,
              [&](int l) { return F::put(typename F::T(Op(F::get(x[l]), F::get(y[l]), F::get(z[l])))); });
  }
}

struct Functions {
  std::string_view name;
  Run run[4]; ///< by float_kind()
};

template <auto Op>
consteval Functions one(std::string_view name) {
  return {name, {unary<F16, Op>, unary<Bf16, Op>, unary<F32, Op>, unary<F64, Op>}};
}
template <auto Op>
consteval Functions two(std::string_view name) {
  return {name, {binary<F16, Op>, binary<Bf16, Op>, binary<F32, Op>, binary<F64, Op>}};
}
template <auto Op>
consteval Functions three(std::string_view name) {
  return {name, {ternary<F16, Op>, ternary<Bf16, Op>, ternary<F32, Op>, ternary<F64, Op>}};
}

constexpr auto negate = [](auto x) { return -x; };
constexpr auto plus = [](auto x, auto y) { return x + y; };
constexpr auto minus = [](auto x, auto y) { return x - y; };
constexpr auto times = [](auto x, auto y) { return x * y; };
constexpr auto over = [](auto x, auto y) { return x / y; };
constexpr auto remainder = [](auto x, auto y) { return std::fmod(x, y); };
constexpr auto fused = [](auto x, auto y, auto z) { return std::fma(x, y, z); };
constexpr auto least = [](auto x, auto y) { return std::fmin(x, y); };
constexpr auto most = [](auto x, auto y) { return std::fmax(x, y); };
/// minimum and maximum: NaN when either is.
constexpr auto minimum = [](auto x, auto y) {
  return std::isnan(x) || std::isnan(y) ? x + y : std::fmin(x, y);
};
constexpr auto maximum = [](auto x, auto y) {
  return std::isnan(x) || std::isnan(y) ? x + y : std::fmax(x, y);
};
constexpr auto magnitude = [](auto x) { return std::fabs(x); };
constexpr auto sign_of = [](auto x, auto y) { return std::copysign(x, y); };
constexpr auto root = [](auto x) { return std::sqrt(x); };
constexpr auto power_of_2 = [](auto x) { return std::exp2(x); };
constexpr auto power_of_e = [](auto x) { return std::exp(x); };
constexpr auto log_2 = [](auto x) { return std::log2(x); };
constexpr auto log_e = [](auto x) { return std::log(x); };
constexpr auto down = [](auto x) { return std::floor(x); };
constexpr auto up = [](auto x) { return std::ceil(x); };
constexpr auto cut = [](auto x) { return std::trunc(x); };
constexpr auto to_even = [](auto x) { return std::nearbyint(x); };
constexpr auto away = [](auto x) { return std::round(x); };
constexpr auto same = [](auto x) { return x; };
constexpr auto reciprocal = [](auto x) { return 1 / x; };
constexpr auto reciprocal_root = [](auto x) { return 1 / std::sqrt(x); };
constexpr auto fraction = [](auto x) { return x - std::floor(x); };
constexpr auto median = [](auto x, auto y, auto z) {
  return std::fmax(std::fmin(x, y), std::fmin(std::fmax(x, y), z));
};

constexpr Functions functions[] = {
    two<plus>("fadd"),
    two<minus>("fsub"),
    two<times>("fmul"),
    two<over>("fdiv"),
    two<remainder>("frem"),
    one<negate>("fneg"),
    three<fused>("fma"),
    three<fused>("fmuladd"),
    two<least>("minnum"),
    two<most>("maxnum"),
    two<least>("minimumnum"),
    two<most>("maximumnum"),
    two<minimum>("minimum"),
    two<maximum>("maximum"),
    one<magnitude>("fabs"),
    two<sign_of>("copysign"),
    one<root>("sqrt"),
    one<power_of_2>("exp2"),
    one<power_of_e>("exp"),
    one<log_2>("log2"),
    one<log_e>("log"),
    one<down>("floor"),
    one<up>("ceil"),
    one<cut>("trunc"),
    one<to_even>("rint"),
    one<to_even>("nearbyint"),
    one<to_even>("roundeven"),
    one<away>("round"),
    one<same>("canonicalize"),
    one<same>("arithmetic.fence"),
    one<reciprocal>("amdgcn.rcp"),
    one<reciprocal_root>("amdgcn.rsq"),
    one<root>("amdgcn.sqrt"),
    one<power_of_2>("amdgcn.exp2"),
    one<log_2>("amdgcn.log"),
    one<fraction>("amdgcn.fract"),
    three<median>("amdgcn.fmed3"),
};

template <typename F>
void compare(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *y = w.in(in.in[1], c);
    // The predicates are four bits: equal, greater, less, unordered.
    w.compute(in.result, c, [&](int l) {
      const auto a = F::get(x[l]), b = F::get(y[l]);
      const uint32_t bit = a == b ? 1 : a > b ? 2 : a < b ? 4 : 8;
      return uint64_t((in.kind & bit) != 0);
    });
  }
}

/// ldexp(x, integer).
template <typename F>
void scale(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *n = w.in(in.in[1], c);
    const uint32_t shift = 64 - in.in[1].bits;
    w.compute(in.result, c,
              [&](int l) { return F::put(std::ldexp(F::get(x[l]), int(int64_t(n[l] << shift) >> shift))); });
  }
}

/// is.fpclass(x, mask): signalling and quiet NaN, then -inf, -normal, -subnormal, -0, +0, +subnormal, ...
template <typename F>
void classify(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* x = w.in(in.in[0], c);
    w.compute(in.result, c, [&](int l) {
      const auto v = F::get(x[l]);
      if (std::isnan(v)) return uint64_t((in.kind & 3) != 0);
      const int size = std::isinf(v)                                     ? 3
                       : v == 0                                          ? 0
                       : std::abs(v) < std::numeric_limits<float>::min() ? 1
                                                                         : 2;
      return uint64_t(in.kind >> (std::signbit(v) ? 5 - size : 6 + size) & 1);
    });
  }
}

std::string name_of(const llvm::Instruction& i) {
  if (llvm::isa<llvm::BinaryOperator>(i) || llvm::isa<llvm::UnaryOperator>(i)) return i.getOpcodeName();
  return intrinsic_name(i);
}

} // namespace

bool decode_float(Decoder&, const llvm::Instruction& i, Instruction& out) {
  if (llvm::isa<llvm::FCmpInst>(i)) {
    out.kind = uint32_t(llvm::cast<llvm::FCmpInst>(i).getPredicate());
    with_float(float_kind(i.getOperand(0)->getType()), [&]<typename F>(F) { out.run = compare<F>; });
    return true;
  }
  const std::string name = name_of(i);
  if (name.empty() || !is_float(i.getOperand(0)->getType())) return false;
  const uint32_t kind = float_kind(i.getOperand(0)->getType());
  for (const Functions& f : functions)
    if (name == f.name) out.run = f.run[kind];
  if (name == "ldexp" || name == "amdgcn.ldexp") with_float(kind, [&]<typename F>(F) { out.run = scale<F>; });
  if (name == "is.fpclass") {
    out.kind = uint32_t(immediate(llvm::cast<llvm::CallBase>(i), 1));
    with_float(kind, [&]<typename F>(F) { out.run = classify<F>; });
  }
  return out.run != nullptr;
}

} // namespace deepgen::amd_sim
