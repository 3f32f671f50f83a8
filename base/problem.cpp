#include "base/problem.h"

#include "base/error.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace deepgen {
namespace {

constexpr std::array<const char*, 9> kTypes = {"f32",  "f64",  "f16", "bf16", "tf32",
                                               "e4m3", "e5m2", "i8",  "i32"};
constexpr std::array<int64_t, 9> kSizes = {4, 8, 2, 2, 4, 1, 1, 1, 4};
constexpr std::array<const char*, 4> kLayouts = {"nn", "nt", "tn", "tt"};
constexpr std::array<const char*, epilogue_op_count> kEpilogueOps = {
    "bias",     "bias_row", "relu",    "gelu",    "gelu_tanh", "silu",      "sigmoid", "clamp",
    "residual", "multiply", "scale_a", "scale_b", "scale_row", "scale_col", "scale_d"};

template <typename Names>
std::string join(const Names& names) {
  std::string text;
  for (const char* name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

template <typename Enum, size_t N>
Enum lookup(const std::array<const char*, N>& names, std::string_view text, const std::string& field) {
  for (size_t i = 0; i < N; ++i)
    if (text == names[i]) return Enum(i);
  throw Error("unknown value '" + std::string(text) + "' in a problem key", field, "",
              "use one of: " + join(names));
}

int64_t integer(std::string_view text, const std::string& field) {
  int64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size())
    throw Error("'" + std::string(text) + "' is not an integer", field);
  return value;
}

constexpr EpilogueOp kGates[] = {EpilogueOp::silu, EpilogueOp::gelu, EpilogueOp::gelu_tanh,
                                 EpilogueOp::sigmoid, EpilogueOp::relu};

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

std::vector<EpilogueOp> parse_epilogue(std::string_view text) {
  std::vector<EpilogueOp> ops;
  if (text == "none") return ops;
  while (true) {
    size_t plus = text.find('+');
    ops.push_back(lookup<EpilogueOp>(kEpilogueOps, text.substr(0, plus), "epilogue"));
    if (plus == std::string_view::npos) return ops;
    text.remove_prefix(plus + 1);
  }
}

/// Takes " name=value" off the front of `rest`; the fields of a key have one order.
std::string_view field(std::string_view& rest, std::string_view name) {
  std::string prefix = " " + std::string(name) + "=";
  if (rest.substr(0, prefix.size()) != prefix)
    throw Error("the problem key lacks the field '" + std::string(name) + "'",
                "at '" + std::string(rest) + "'",
                "fields have one fixed order: m n k batch a b d acc layout [groups] [gate] epilogue align");
  rest.remove_prefix(prefix.size());
  std::string_view value = rest.substr(0, rest.find(' '));
  rest.remove_prefix(value.size());
  return value;
}

} // namespace

std::string to_string(Type t) { return kTypes[size_t(t)]; }
std::string to_string(Layout l) { return kLayouts[size_t(l)]; }
std::string to_string(EpilogueOp e) { return kEpilogueOps[size_t(e)]; }
int64_t size_of(Type t) { return kSizes[size_t(t)]; }

Type Problem::epilogue_type() const { return d == Type::i8 ? Type::f32 : d; }
Type Problem::scale_type() const { return d == Type::f64 || d == Type::i32 ? d : Type::f32; }

void complete(Problem& p) {
  p.accumulate = p.a == Type::f64 ? Type::f64 : p.a == Type::i8 ? Type::i32 : Type::f32;
  p.align = std::min({size_of(p.a), size_of(p.b), size_of(p.d)});
}

bool Problem::has(EpilogueOp wanted) const {
  return std::find(epilogue.begin(), epilogue.end(), wanted) != epilogue.end();
}

Problem Problem::ungated() const {
  Problem p = *this;
  p.n = sum_columns();
  p.gate.reset();
  return p;
}

Problem Problem::as_batch() const {
  Problem p = *this;
  if (groups) p.m = group_rows(), p.batch = groups, p.groups = 0;
  return p;
}

std::string epilogue_text(const std::vector<EpilogueOp>& ops) {
  if (ops.empty()) return "none";
  std::string text;
  for (EpilogueOp e : ops) text += (text.empty() ? "" : "+") + to_string(e);
  return text;
}

std::string Problem::key() const {
  return op + " m=" + std::to_string(m) + " n=" + std::to_string(n) + " k=" + std::to_string(k) +
         " batch=" + std::to_string(batch) + " a=" + to_string(a) + " b=" + to_string(b) +
         " d=" + to_string(d) + " acc=" + to_string(accumulate) + " layout=" + to_string(layout) +
         (groups ? " groups=" + std::to_string(groups) : "") + (gate ? " gate=" + to_string(*gate) : "") +
         " epilogue=" + epilogue_text(epilogue) + " align=" + std::to_string(align);
}

Problem Problem::parse(std::string_view text) {
  Problem p;
  std::string_view rest = text;
  p.op = std::string(rest.substr(0, rest.find(' ')));
  if (p.op != "gemm") throw Error("unknown operator '" + p.op + "' in a problem key", std::string(text));
  rest.remove_prefix(p.op.size());
  for (auto [name, value] : {std::pair{"m", &p.m}, {"n", &p.n}, {"k", &p.k}, {"batch", &p.batch}})
    *value = integer(field(rest, name), name);
  for (auto [name, value] : {std::pair{"a", &p.a}, {"b", &p.b}, {"d", &p.d}, {"acc", &p.accumulate}})
    *value = lookup<Type>(kTypes, field(rest, name), name);
  p.layout = lookup<Layout>(kLayouts, field(rest, "layout"), "layout");
  if (rest.starts_with(" groups=")) p.groups = integer(field(rest, "groups"), "groups");
  if (rest.starts_with(" gate=")) p.gate = parse_gate(field(rest, "gate"));
  p.epilogue = parse_epilogue(field(rest, "epilogue"));
  p.align = integer(field(rest, "align"), "align");
  if (!rest.empty())
    throw Error("trailing text '" + std::string(rest) + "' in a problem key", std::string(text));
  validate(p);
  if (p.key() != text)
    throw Error("a problem key in another than its canonical spelling", std::string(text),
                "expected " + p.key());
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
    return one_of({Type::i32, Type::f32, Type::bf16, Type::i8});
  case Type::i32:
    return false;
  }
  return false;
}

void check_types(const Problem& p) {
  if (!(p.a == p.b || (is_fp8(p.a) && is_fp8(p.b))) || !output_served(p.a, p.d))
    throw Error("this combination of types is not served",
                "a=" + to_string(p.a) + " b=" + to_string(p.b) + " d=" + to_string(p.d), "",
                "a b -> d: f32 f32 -> f32, f64 f64 -> f64, f16 f16 -> f16 or f32, bf16 bf16 -> bf16 or f32, "
                "tf32 tf32 -> "
                "f32, e4m3/e5m2 -> f16, bf16 or f32, i8 i8 -> i32, f32, bf16 or i8");
  Problem expected = p;
  complete(expected);
  if (p.accumulate != expected.accumulate)
    throw Error("this accumulator is not served", "acc=" + to_string(p.accumulate), "",
                "use " + to_string(expected.accumulate));
  if (p.align != expected.align)
    throw Error("alignment not served", "align=" + std::to_string(p.align), "",
                "use the size of the smallest element: " + std::to_string(expected.align));
}

void check_gate(const Problem& p) {
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

void check_groups(const Problem& p) {
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

} // namespace

void validate(const Problem& p) {
  for (auto [name, value] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}})
    if (value < 1 || value > (int64_t(1) << 31))
      throw Error("size out of range", std::string(name) + " = " + std::to_string(value), "",
                  "sizes are integers from 1 to 2^31");
  check_types(p);
  if (p.groups) check_groups(p);
  if (p.gate) check_gate(p);
  if (p.d == Type::i32 && !p.epilogue.empty())
    throw Error("an epilogue on integer output is not served", epilogue_text(p.epilogue), "D is i32",
                "use d=f32 with scales, or no epilogue");
  for (EpilogueOp op : p.epilogue)
    if (std::count(p.epilogue.begin(), p.epilogue.end(), op) > 1)
      throw Error("epilogue '" + to_string(op) + "' appears twice", epilogue_text(p.epilogue));
}

} // namespace deepgen
