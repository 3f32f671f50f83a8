#include "base/problem/gemm.h"

#include "base/problem/key_fields.h"
#include "base/problem/packed_b.h"
#include "base/problem/signature.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace deepgen {
namespace {

constexpr std::array<const char*, 4> kLayouts = {"nn", "nt", "tn", "tt"};
constexpr std::array<const char*, epilogue_op_count> kEpilogueOps = [] {
  std::array<const char*, epilogue_op_count> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = epilogue_steps[i].name;
  return names;
}();

constexpr std::array<const char*, 1> kInvariant = {"rows"};

constexpr EpilogueOp kGates[] = {EpilogueOp::silu, EpilogueOp::gelu, EpilogueOp::gelu_tanh,
                                 EpilogueOp::sigmoid, EpilogueOp::relu};

/// What of a problem may be packed ahead of calls, as keys have it.
enum PackedWord { b_alone };
constexpr std::array<const char*, 1> kPackedWords = {"b"};

std::string gates_text() {
  std::string text;
  for (EpilogueOp gate : kGates) text += (text.empty() ? "" : ", ") + to_string(gate);
  return text;
}

EpilogueOp parse_gate(std::string_view text) {
  for (EpilogueOp gate : kGates)
    if (text == to_string(gate)) return gate;
  throw Error("unknown gate '" + std::string(text) + "' in a problem key", "gate", "",
              "use one of: " + gates_text());
}

} // namespace

std::string to_string(Layout l) { return kLayouts[size_t(l)]; }
std::string to_string(EpilogueOp e) { return kEpilogueOps[size_t(e)]; }

Type Gemm::epilogue_type() const { return d == Type::i8 ? Type::f32 : d; }
Type Gemm::scale_type() const { return d == Type::f64 || d == Type::i32 ? d : Type::f32; }

bool is_integer(Type t) { return t == Type::i8 || t == Type::u8; }

void complete(Gemm& p) {
  p.accumulate = p.a == Type::f64 ? Type::f64 : is_integer(p.a) ? Type::i32 : Type::f32;
  p.align = std::min({size_of(p.a), size_of(p.b), size_of(p.d)});
}

bool Gemm::has(EpilogueOp wanted) const {
  return std::find(epilogue.begin(), epilogue.end(), wanted) != epilogue.end();
}

double Gemm::bytes() const {
  double sum = 0;
  for (const Operand& x : signature(*this))
    if (x.required && x.in_memory()) sum += x.bytes();
  return sum;
}

Gemm Gemm::ungated() const {
  Gemm p = *this;
  p.n = sum_columns();
  p.gate.reset();
  return p;
}

Gemm Gemm::as_batch() const {
  Gemm p = *this;
  if (groups) p.m = group_rows(), p.batch = groups, p.groups = 0;
  return p;
}

std::string epilogue_text(const std::vector<EpilogueOp>& ops) {
  if (ops.empty()) return "none";
  std::string text;
  for (EpilogueOp e : ops) text += (text.empty() ? "" : "+") + to_string(e);
  return text;
}

bool Gemm::takes(const Sizes& call) const {
  for (size_t i = 0; i < size_count; ++i) {
    const int64_t size = call[Size(i)], most = sizes()[Size(i)];
    if (least[i] ? size != 0 && (size < *least[i] || size > most) : size != most) return false;
  }
  return true;
}

Gemm Gemm::at(const Sizes& call) const {
  const bool empty = std::min({call.m, call.n, call.k, call.batch}) < 1;
  if (empty || !takes(call))
    throw Error(empty ? "a problem of no elements" : "these sizes are not of the problem",
                "m=" + std::to_string(call.m) + " n=" + std::to_string(call.n) +
                    " k=" + std::to_string(call.k) + " batch=" + std::to_string(call.batch),
                key());
  Gemm p = *this;
  p.m = call.m, p.n = call.n, p.k = call.k, p.batch = call.batch, p.least = {};
  return p;
}

Gemm Gemm::up_to(const Sizes& call) const {
  Gemm p = at(call);
  p.least = least;
  for (size_t i = 0; i < size_count; ++i)
    if (least[i]) p.least[i] = std::min(*least[i], call[Size(i)]);
  return p;
}

std::string Gemm::key() const {
  const auto size = [this](Size which) {
    const auto& from = least[size_t(which)];
    return std::string(size_names[size_t(which)]) + "=" + (from ? std::to_string(*from) + ".." : "") +
           std::to_string(sizes()[which]);
  };
  return "gemm " + size(Size::m) + " " + size(Size::n) + " " + size(Size::k) + " " + size(Size::batch) +
         " a=" + to_string(a) + " b=" + to_string(b) + " d=" + to_string(d) +
         " acc=" + to_string(accumulate) + " layout=" + to_string(layout) +
         (groups ? " groups=" + std::to_string(groups) : "") + (gate ? " gate=" + to_string(*gate) : "") +
         (packed_b ? " packed=b" : "") + " epilogue=" + epilogue_text(epilogue) +
         (batch_invariant ? " invariant=rows" : "") +
         (threads > 1 ? " threads=" + std::to_string(threads) : "") + " align=" + std::to_string(align);
}

Gemm Gemm::parse(std::string_view text) {
  Gemm p;
  KeyFields fields(text, "m n k batch a b d acc layout [groups] [gate] [packed] epilogue [invariant] "
                         "[threads] align");
  for (auto [size, value] :
       {std::pair{Size::m, &p.m}, {Size::n, &p.n}, {Size::k, &p.k}, {Size::batch, &p.batch}})
    std::tie(p.least[size_t(size)], *value) = fields.range(size_names[size_t(size)]);
  for (auto [name, value] : {std::pair{"a", &p.a}, {"b", &p.b}, {"d", &p.d}, {"acc", &p.accumulate}})
    *value = fields.type(name);
  p.layout = fields.one_of<Layout>("layout", kLayouts);
  if (fields.next_is("groups")) p.groups = fields.integer("groups");
  if (fields.next_is("gate")) p.gate = parse_gate(fields.text("gate"));
  if (fields.next_is("packed")) p.packed_b = fields.one_of<PackedWord>("packed", kPackedWords) == b_alone;
  p.epilogue = fields.list_of<EpilogueOp, std::vector<EpilogueOp>>("epilogue", kEpilogueOps);
  if (fields.next_is("invariant")) {
    fields.one_of<int>("invariant", kInvariant);
    p.batch_invariant = true;
  }
  if (fields.next_is("threads")) {
    p.threads = fields.integer("threads");
    if (p.threads == 1)
      throw Error("one thread is what a problem without the field is for", "threads=1", "",
                  "leave out threads=1");
  }
  p.align = fields.integer("align");
  fields.end();
  validate(p);
  return p;
}

namespace {

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }

bool output_served(Type a, Type d) {
  auto one_of = [d](std::initializer_list<Type> types) {
    return std::find(types.begin(), types.end(), d) != types.end();
  };
  switch (a) {
  case Type::f32:
  case Type::tf32:
    return one_of({Type::f32});
  case Type::f64:
    return one_of({Type::f64});
  case Type::f16:
  case Type::bf16:
    return one_of({a, Type::f32});
  case Type::e4m3:
  case Type::e5m2:
    return one_of({Type::f16, Type::bf16, Type::f32});
  case Type::i8:
  case Type::u8:
    return one_of({Type::i32, Type::f32, Type::bf16, Type::i8});
  case Type::i32:
    return false;
  }
  return false;
}

/// Weights of fewer bits under activations of f32, which kernels widen as they read them.
bool is_mixed_pair(const Gemm& p) { return p.a == Type::f32 && (p.b == Type::bf16 || p.b == Type::i8); }

void check_types(const Gemm& p) {
  if (is_mixed_pair(p) && !p.packed_b)
    throw Error("this combination of types needs B packed", "a=" + to_string(p.a) + " b=" + to_string(p.b),
                "", "add packed=b (PREPACKED b)");
  const bool pair = is_mixed_pair(p) || p.a == p.b
                        ? p.a != Type::u8
                        : (is_fp8(p.a) && is_fp8(p.b)) || (p.a == Type::u8 && p.b == Type::i8);
  if (!pair || !output_served(p.a, p.d))
    throw Error("this combination of types is not served",
                "a=" + to_string(p.a) + " b=" + to_string(p.b) + " d=" + to_string(p.d), "",
                "a b -> d: f32 f32 -> f32, f64 f64 -> f64, f16 f16 -> f16 or f32, bf16 bf16 -> bf16 or f32, "
                "tf32 tf32 -> "
                "f32, e4m3/e5m2 -> f16, bf16 or f32, i8 i8 and u8 i8 -> i32, f32, bf16 or i8; with B packed "
                "f32 bf16 and f32 i8 -> f32");
  Gemm expected = p;
  complete(expected);
  if (p.accumulate != expected.accumulate)
    throw Error("this accumulator is not served", "acc=" + to_string(p.accumulate), "",
                "use " + to_string(expected.accumulate));
  if (p.align != expected.align)
    throw Error("alignment not served", "align=" + std::to_string(p.align), "",
                "use the size of the smallest element: " + std::to_string(expected.align));
}

void check_gate(const Gemm& p) {
  const EpilogueOp gate = *p.gate;
  const std::string text = "gate=" + to_string(gate);
  if (std::find(std::begin(kGates), std::end(kGates), gate) == std::end(kGates))
    throw Error("this gate is not served", text, "", "use one of: " + gates_text());
  if (p.d == Type::i32) throw Error("a gate on integer output is not served", text, "D is i32", "use d=f32");
  if (p.n > (int64_t(1) << 30))
    throw Error("size out of range", "n = " + std::to_string(p.n), "with a gate", "up to 2^30");
  for (EpilogueOp op : {EpilogueOp::scale_a, EpilogueOp::scale_b})
    if (p.has(op))
      throw Error("epilogue '" + to_string(op) + "' does not go with a gate",
                  text + " epilogue=" + epilogue_text(p.epilogue), "scales of A and B belong before the gate",
                  "pass their product as alpha, which applies there");
}

void check_groups(const Gemm& p) {
  const std::string text = "groups=" + std::to_string(p.groups);
  if (p.groups < 1 || p.groups > most_groups)
    throw Error("number of groups out of range", text, "", "1 to " + std::to_string(most_groups));
  if (p.batch != 1)
    throw Error("groups in a batch are not served", text + " batch=" + std::to_string(p.batch), "",
                "use batch=1");
  if (p.a_transposed())
    throw Error("groups of rows need them one behind the other", text + " layout=" + to_string(p.layout),
                "A is stored transposed", "use layout nn or nt");
  if (p.m > (int64_t(1) << 30))
    throw Error("size out of range", "m = " + std::to_string(p.m), "with groups", "up to 2^30");
}

void check_threads(const Gemm& p) {
  const std::string text = "threads=" + std::to_string(p.threads);
  if (p.threads < 1 || p.threads > most_threads)
    throw Error("number of threads out of range", text, "", "1 to " + std::to_string(most_threads));
  if (p.threads > 1 && (p.ranged() || p.groups))
    throw Error("tuning for threads is not served with " +
                    std::string(p.groups ? "groups" : "a range of a size"),
                text, "", "leave out threads (THREADS), or use fixed sizes without groups");
}

void check_ranges(const Gemm& p) {
  for (size_t i = 0; i < size_count; ++i) {
    if (!p.least[i]) continue;
    const int64_t most = p.sizes()[Size(i)];
    const std::string text =
        std::string(size_names[i]) + "=" + std::to_string(*p.least[i]) + ".." + std::to_string(most);
    if (*p.least[i] < 0 || *p.least[i] >= most)
      throw Error("this range of a size is empty, or of one value", text, "",
                  "write the smaller end first: 1..8192; a fixed size is one number");
    if (Size(i) == Size::batch && p.groups)
      throw Error("groups in a batch are not served", text + " groups=" + std::to_string(p.groups), "",
                  "use batch=1");
  }
}

} // namespace

void validate(const Gemm& p) {
  for (auto [name, value] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}})
    if (value < 1 || value > (int64_t(1) << 31))
      throw Error("size out of range", std::string(name) + " = " + std::to_string(value), "",
                  "sizes are integers from 1 to 2^31");
  check_ranges(p);
  check_threads(p);
  check_types(p);
  if (p.groups) check_groups(p);
  if (p.gate) check_gate(p);
  if (const std::string why = p.packed_b ? why_not_packed(p) : ""; !why.empty())
    throw Error("no function takes this B packed", "packed=b", why, "leave out packed=b (PREPACKED b)");
  if (p.d == Type::i32 && !p.epilogue.empty())
    throw Error("an epilogue on integer output is not served", epilogue_text(p.epilogue), "D is i32",
                "use d=f32 with scales, or no epilogue");
  for (EpilogueOp op : p.epilogue)
    if (std::count(p.epilogue.begin(), p.epilogue.end(), op) > 1)
      throw Error("epilogue '" + to_string(op) + "' appears twice", epilogue_text(p.epilogue));
}

} // namespace deepgen
