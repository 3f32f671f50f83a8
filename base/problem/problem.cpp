#include "base/problem/problem.h"

#include "base/text/error.h"

#include <sstream>

namespace deepgen {
namespace {

/// How an operator is named and read.
struct Reader {
  const char* op;
  Problem (*parse)(std::string_view);
};
constexpr Reader kReaders[] = {
    {"gemm", [](std::string_view text) { return Problem(Gemm::parse(text)); }},
    {"rows", [](std::string_view text) { return Problem(Rows::parse(text)); }},
    {"attention", [](std::string_view text) { return Problem(Attention::parse(text)); }}};
static_assert(std::size(kReaders) == std::variant_size_v<Problem::Operator>);

} // namespace

std::string Problem::op() const { return kReaders[operator_.index()].op; }

std::string Problem::key() const {
  return std::visit([](const auto& x) { return x.key(); }, operator_);
}

double Problem::flops() const {
  return std::visit([](const auto& x) { return x.flops(); }, operator_);
}

double Problem::bytes() const {
  return std::visit([](const auto& x) { return x.bytes(); }, operator_);
}

Rate Problem::rate() const {
  return std::visit([](const auto& x) { return x.rate(); }, operator_);
}

double Problem::work() const {
  return std::visit([](const auto& x) { return x.work(); }, operator_);
}

bool Problem::ranged() const {
  if (const auto* gemm = std::get_if<Gemm>(&operator_)) return gemm->ranged();
  const auto* attention = std::get_if<Attention>(&operator_);
  return attention && attention->ranged();
}

std::optional<int64_t> Problem::least(Size size) const {
  if (const auto* gemm = std::get_if<Gemm>(&operator_)) return gemm->least[size_t(size)];
  return ranged() && size != Size::k ? std::optional<int64_t>(1) : std::nullopt;
}

Sizes Problem::sizes() const {
  if (const auto* gemm = std::get_if<Gemm>(&operator_)) return gemm->sizes();
  const auto* attention = std::get_if<Attention>(&operator_);
  return attention ? attention->sizes() : Sizes();
}

bool Problem::takes(const Sizes& call) const {
  if (const auto* gemm = std::get_if<Gemm>(&operator_)) return gemm->takes(call);
  const auto* attention = std::get_if<Attention>(&operator_);
  return attention ? attention->takes(call) : call == Sizes();
}

Problem Problem::at(const Sizes& call) const {
  if (const auto* gemm = std::get_if<Gemm>(&operator_)) return gemm->at(call);
  return attention().at(call);
}

std::vector<std::pair<std::string, std::string>> Problem::fields() const {
  std::istringstream words(key());
  std::vector<std::pair<std::string, std::string>> list;
  std::string word;
  words >> word; // the operator
  while (words >> word) {
    const size_t equals = word.find('=');
    list.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return list;
}

Problem Problem::parse(std::string_view text) {
  const std::string op(text.substr(0, text.find(' ')));
  std::string known;
  for (const Reader& reader : kReaders) {
    known += (known.empty() ? "" : ", ") + std::string(reader.op);
    if (op != reader.op) continue;
    Problem p = reader.parse(text);
    if (p.key() != text)
      throw Error("a problem key in another than its canonical spelling", std::string(text),
                  "expected " + p.key());
    return p;
  }
  throw Error("unknown operator '" + op + "' in a problem key", std::string(text), "",
              "use one of: " + known);
}

template <typename One>
const One& Problem::as() const {
  if (const One* found = std::get_if<One>(&operator_)) return *found;
  throw Error("this is for " + Problem(One()).op() + " alone", key(), "the problem is a " + op());
}
template const Gemm& Problem::as<Gemm>() const;
template const Rows& Problem::as<Rows>() const;
template const Attention& Problem::as<Attention>() const;

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Reader& reader : kReaders) names.push_back(reader.op);
  return names;
}

std::vector<Problem> one_of_each() {
  return []<size_t... index>(std::index_sequence<index...>) {
    return std::vector<Problem>{std::variant_alternative_t<index, Problem::Operator>()...};
  }(std::make_index_sequence<std::variant_size_v<Problem::Operator>>());
}

void validate(const Problem& p) {
  std::visit([](const auto& x) { validate(x); }, p.which());
}

} // namespace deepgen
