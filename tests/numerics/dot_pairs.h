// Random problems of cpu_dot's types, and configs for them.
#pragma once

#include "templates/cpu/cpu_words.h"
#include "tests/numerics/numerics.h"

namespace deepgen::numerics {

struct Types {
  Type a, b, d;
};
inline const std::vector<Types>& all_types() {
  using enum Type;
  static const std::vector<Types> all = {
      {bf16, bf16, bf16}, {bf16, bf16, f32}, {f16, f16, f16}, {f16, f16, f32}, {i8, i8, i32},  {i8, i8, f32},
      {i8, i8, bf16},     {i8, i8, i8},      {u8, i8, i32},   {u8, i8, f32},   {u8, i8, bf16}, {u8, i8, i8}};
  return all;
}

inline Gemm of_types(const Types& types) {
  Gemm p;
  p.a = types.a, p.b = types.b, p.d = types.d;
  complete(p);
  return p;
}

/// The configs for exactly this isa: the others are of the same space without its extensions.
inline std::vector<Choice> choices_for(const Gemm& p, int64_t isa, Rng& rng, size_t count) {
  const Space space(p, "cpu", device_of_isa(isa));
  const DotKind wanted = isa & isa_amx                          ? DotKind::tiles
                         : isa & isa_avx512bf16                 ? DotKind::bf16
                         : isa & (isa_avx512vnni | isa_avxvnni) ? DotKind::bytes
                         : is_integer(p.a)                      ? DotKind::pairs
                                                                : DotKind::f32;
  std::vector<Choice> found;
  for (int tries = 0; tries < 20000 && space.size() && found.size() < count; ++tries) {
    Choice choice = space.choice(rng() % space.size());
    if (choice.config["isa"] == level_of(isa) && choice.config["dot"] == int64_t(wanted))
      found.push_back(choice);
  }
  return found;
}

inline Gemm random_dot(Rng& rng, size_t index) {
  Gemm p = random_problem(rng, index);
  const Types& types = all_types()[rng() % all_types().size()];
  p.a = types.a, p.b = types.b, p.d = types.d;
  complete(p);
  if (p.d == Type::i32) return p;
  if (rng() % 4 == 0) {
    constexpr EpilogueOp kGates[] = {EpilogueOp::silu, EpilogueOp::gelu, EpilogueOp::gelu_tanh,
                                     EpilogueOp::sigmoid, EpilogueOp::relu};
    p.gate = kGates[rng() % std::size(kGates)];
  }
  if (rng() % 3) p.epilogue = random_epilogue(rng);
  if (p.gate)
    std::erase_if(p.epilogue,
                  [](EpilogueOp op) { return op == EpilogueOp::scale_a || op == EpilogueOp::scale_b; });
  return p;
}

} // namespace deepgen::numerics
