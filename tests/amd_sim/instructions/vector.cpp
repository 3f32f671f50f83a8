// Vectors and aggregates, select, and sums over a vector.
#include "tests/amd_sim/instructions/floats.h"
#include "tests/amd_sim/machine/decode.h"
#include "tests/amd_sim/machine/wave.h"

#include <algorithm>

namespace deepgen::amd_sim {
namespace {

void copy_component(Wave& w, const Operand& to, uint32_t c, const Operand& from, uint32_t d) {
  w.put(to, c, w.in(from, d));
}

/// numbers: for each component of the result, which of the operands' it is, counted in a row; -1: poison.
void pick(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const int64_t from = in.numbers[c];
    if (from < 0) continue;
    const bool second = from >= in.in[0].count;
    copy_component(w, in.result, c, in.in[second], uint32_t(from - (second ? in.in[0].count : 0)));
  }
}

/// The element's number is a value. in.kind: components of an element.
void extract(Wave& w, const Instruction& in) {
  const uint64_t* at = w.in(in.in[1]);
  const uint64_t n = in.in[0].count / in.kind;
  for (uint32_t c = 0; c < in.result.count; ++c)
    w.compute(in.result, c, [&](int l) {
      const uint64_t i = at[l] < n ? at[l] : 0;
      return w.in(in.in[0], uint32_t(i * in.kind + c))[l];
    });
}

void insert(Wave& w, const Instruction& in) {
  const uint64_t* at = w.in(in.in[2]);
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t *x = w.in(in.in[0], c), *y = w.in(in.in[1], c % in.kind);
    w.compute(in.result, c, [&](int l) { return at[l] == c / in.kind ? y[l] : x[l]; });
  }
}

void select(Wave& w, const Instruction& in) {
  for (uint32_t c = 0; c < in.result.count; ++c) {
    const uint64_t* which = w.in(in.in[0], in.in[0].count > 1 ? c : 0);
    const uint64_t *x = w.in(in.in[1], c), *y = w.in(in.in[2], c);
    w.compute(in.result, c, [&](int l) { return which[l] & 1 ? x[l] : y[l]; });
  }
}

/// vector.reduce.fadd(start, vector), in order.
template <typename F>
void sum_floats(Wave& w, const Instruction& in) {
  w.compute(in.result, 0, [&](int l) {
    auto sum = F::get(w.in(in.in[0])[l]);
    for (uint32_t c = 0; c < in.in[1].count; ++c) sum += F::get(w.in(in.in[1], c)[l]);
    return F::put(sum);
  });
}

template <auto Op>
void reduce(Wave& w, const Instruction& in) {
  w.compute(in.result, 0, [&](int l) {
    uint64_t all = w.in(in.in[0])[l];
    for (uint32_t c = 1; c < in.in[0].count; ++c) all = Op(all, w.in(in.in[0], c)[l]);
    return all & mask_of(in.result.bits);
  });
}
constexpr auto sum = [](uint64_t x, uint64_t y) { return x + y; };
constexpr auto any = [](uint64_t x, uint64_t y) { return x | y; };
constexpr auto both = [](uint64_t x, uint64_t y) { return x & y; };

bool decode_shuffle(const llvm::ShuffleVectorInst& s, Instruction& out) {
  const uint32_t width = out.result.count / uint32_t(s.getShuffleMask().size());
  for (int m : s.getShuffleMask())
    for (uint32_t c = 0; c < width; ++c) out.numbers.push_back(m < 0 ? -1 : int64_t(m) * width + c);
  out.run = pick;
  return true;
}

/// Components before the member of an aggregate.
uint32_t components_before(Decoder& d, llvm::Type* t, llvm::ArrayRef<unsigned> indices) {
  uint32_t before = 0;
  for (unsigned index : indices) {
    llvm::Type* member = nullptr;
    for (unsigned i = 0; i <= index; ++i) {
      member = t->isStructTy() ? t->getStructElementType(i) : t->getArrayElementType();
      if (i < index) before += uint32_t(d.pieces(member).size());
    }
    t = member;
  }
  return before;
}

bool decode_aggregate(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  if (const auto* e = llvm::dyn_cast<llvm::ExtractValueInst>(&i)) {
    const uint32_t first = components_before(d, e->getAggregateOperand()->getType(), e->getIndices());
    for (uint32_t c = 0; c < out.result.count; ++c) out.numbers.push_back(first + c);
  } else if (const auto* n = llvm::dyn_cast<llvm::InsertValueInst>(&i)) {
    const uint32_t first = components_before(d, n->getType(), n->getIndices());
    for (uint32_t c = 0; c < out.result.count; ++c) {
      const bool inside = c >= first && c < first + out.in[1].count;
      out.numbers.push_back(inside ? out.in[0].count + c - first : c);
    }
  } else {
    return false;
  }
  out.run = pick;
  return true;
}

/// vector.extract(vector, n) and vector.insert(vector, part, n).
bool decode_parts(const llvm::Instruction& i, const std::string& name, Instruction& out) {
  const auto& call = llvm::cast<llvm::CallBase>(i);
  const bool inserts = name == "vector.insert";
  const int64_t first = immediate(call, inserts ? 2 : 1);
  for (int64_t c = 0; c < out.result.count; ++c)
    out.numbers.push_back(!inserts                                    ? first + c
                          : c >= first && c < first + out.in[1].count ? out.in[0].count + c - first
                                                                      : c);
  out.run = pick;
  return true;
}

} // namespace

bool decode_vector(Decoder& d, const llvm::Instruction& i, Instruction& out) {
  if (llvm::isa<llvm::SelectInst>(i)) return out.run = select, true;
  if (const auto* s = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i)) return decode_shuffle(*s, out);
  if (llvm::isa<llvm::ExtractElementInst>(i)) return out.kind = out.result.count, out.run = extract, true;
  if (llvm::isa<llvm::InsertElementInst>(i)) return out.kind = out.in[1].count, out.run = insert, true;
  if (decode_aggregate(d, i, out)) return true;
  const std::string name = intrinsic_name(i);
  if (name == "vector.extract" || name == "vector.insert") return decode_parts(i, name, out);
  if (name == "vector.reduce.add")
    out.run = reduce<sum>;
  else if (name == "vector.reduce.or")
    out.run = reduce<any>;
  else if (name == "vector.reduce.and")
    out.run = reduce<both>;
  else if (name == "vector.reduce.fadd")
    with_float(float_kind(i.getType()), [&]<typename F>(F) { out.run = sum_floats<F>; });
  return out.run != nullptr;
}

} // namespace deepgen::amd_sim
