#include "base/problem/rows.h"

#include "base/problem/key_fields.h"
#include "base/problem/signature.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>
#include <vector>

namespace deepgen {
namespace {

constexpr std::array<const char*, 4> kKinds = {"softmax", "log_softmax", "layer_norm", "rms_norm"};

/// An option of the key, in its order.
struct Option {
  const char* name;
  bool Rows::* set;
};
constexpr Option kOptions[] = {{"residual", &Rows::residual},
                               {"output_residual", &Rows::output_residual},
                               {"scale", &Rows::scale},
                               {"bias", &Rows::bias}};
enum class OptionName { residual, output_residual, scale, bias };

std::string options_text(const Rows& p) {
  std::string text;
  for (const Option& option : kOptions)
    if (p.*option.set) text += (text.empty() ? "" : "+") + std::string(option.name);
  return text.empty() ? "none" : text;
}

bool one_of(Type type, std::initializer_list<Type> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

void check_size(const char* name, int64_t value, int64_t most, const char* range) {
  if (value < 1 || value > most)
    throw Error("size out of range", std::string(name) + " = " + std::to_string(value), "", range);
}

} // namespace

std::string to_string(RowsKind kind) { return kKinds[size_t(kind)]; }

double Rows::flops() const {
  const double each = kind == RowsKind::softmax       ? 4 // maximum, difference, exp, sum and quotient as one
                      : kind == RowsKind::log_softmax ? 4
                      : kind == RowsKind::layer_norm  ? 5
                                                      : 3;
  const double steps = each + residual + scale + bias + (quantised() ? 2 : 0);
  return steps * double(m) * double(n);
}

double Rows::bytes() const {
  double sum = 0;
  for (const Operand& x : signature(*this))
    if (x.in_memory()) sum += x.bytes();
  return sum;
}

int64_t Rows::align() const { return std::min(size_of(x), size_of(d)); }

std::string Rows::key() const {
  return "rows m=" + std::to_string(m) + " n=" + std::to_string(n) + " x=" + to_string(x) +
         " d=" + to_string(d) + " kind=" + to_string(kind) + " options=" + options_text(*this);
}

Rows Rows::parse(std::string_view text) {
  constexpr std::array<const char*, 4> names = {kOptions[0].name, kOptions[1].name, kOptions[2].name,
                                                kOptions[3].name};
  Rows p;
  KeyFields fields(text, "m n x d kind options");
  p.m = fields.integer("m");
  p.n = fields.integer("n");
  p.x = fields.type("x");
  p.d = fields.type("d");
  p.kind = fields.one_of<RowsKind>("kind", kKinds);
  for (OptionName option : fields.list_of<OptionName, std::vector<OptionName>>("options", names))
    p.*kOptions[size_t(option)].set = true;
  fields.end();
  validate(p);
  return p;
}

void validate(const Rows& p) {
  check_size("m", p.m, int64_t(1) << 31, "M is an integer from 1 to 2^31");
  check_size("n", p.n, most_row_columns, "N is an integer from 1 to 2^20");
  if (!one_of(p.x, {Type::f32, Type::f16, Type::bf16}) ||
      !one_of(p.d, {Type::f32, Type::f16, Type::bf16, Type::e4m3, Type::i8}))
    throw Error("this combination of types is not served", "x=" + to_string(p.x) + " d=" + to_string(p.d), "",
                "x: f32, f16 or bf16; d: one of those, or e4m3 or i8, which are quantised by rows");
  if ((p.scale || p.bias) && !p.normalises())
    throw Error("a softmax has no scale and no bias", "options=" + options_text(p),
                "kind=" + to_string(p.kind), "use layer_norm or rms_norm, or leave them out");
  if (p.output_residual && !p.residual)
    throw Error("a residual output without a residual", "options=" + options_text(p), "",
                "add residual, or leave output_residual out");
}

} // namespace deepgen
