#include "base/problem/packed_b.h"

#include <cstdio>

namespace deepgen {
namespace {

static_assert(DEEPGEN_F32 == int(Type::f32) && DEEPGEN_F64 == int(Type::f64) &&
              DEEPGEN_F16 == int(Type::f16) && DEEPGEN_BF16 == int(Type::bf16) &&
              DEEPGEN_I8 == int(Type::i8));

} // namespace

PackedLayout packed_layout(const Gemm& p) {
  return packed_layout(uint8_t(p.b), p.n, p.k, p.batch, p.gate.has_value());
}

uint64_t packed_layout_id(const Gemm& p) {
  return packed_layout_id(uint8_t(p.b), p.n, p.k, p.batch, p.gate.has_value());
}

std::string packed_layout_text(const Gemm& p) {
  if (!p.packed_b) return "";
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(packed_layout_id(p)));
  return text;
}

std::string why_not_packed(const Gemm& p) {
  if (!can_pack(uint8_t(p.b)))
    return "kernels that take it so are for CPUs, which have none of B " + to_string(p.b);
  if (p.groups) return "groups have kernels for GPUs alone";
  for (const Size size : {Size::n, Size::k, Size::batch})
    if (p.ranged(size))
      return std::string("its size follows from ") + size_names[size_t(size)] + ", which is a range";
  const double columns = p.gate ? 2 * double(p.n) : double(p.n);
  if (columns * double(p.k) * double(p.batch) > most_packed_elements) return "it has more than 2^40 elements";
  return "";
}

} // namespace deepgen
