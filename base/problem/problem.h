// Problem: what is to be computed, independent of how and where: one of the operators that DeepGen knows.
#pragma once

#include "base/problem/attention.h"
#include "base/problem/gemm.h"
#include "base/problem/rows.h"

#include <utility>
#include <variant>

namespace deepgen {

/// A closed variant: copied, compared and printed as a value. What knows no operator asks the functions
/// below; what belongs to one takes its struct, which gemm() and the like unwrap once.
class Problem {
public:
  using Operator = std::variant<Gemm, Rows, Attention>;

  Problem() = default;
  Problem(Gemm gemm) : operator_(std::move(gemm)) {} // implicit: an operator is a problem
  Problem(Rows rows) : operator_(rows) {}
  Problem(Attention attention) : operator_(std::move(attention)) {}

  bool operator==(const Problem&) const = default;

  /// The first word of the key: "gemm", "rows" or "attention".
  std::string op() const;
  /// The canonical line; see the operators.
  std::string key() const;
  /// The fields of the key behind the operator, in order: {"m", "512"}, ...
  std::vector<std::pair<std::string, std::string>> fields() const;
  /// The inverse of key(); throws Error naming the offending field. parse(key()) == *this, and
  /// parse(text).key() == text: any other spelling is refused, so that one problem has one key.
  static Problem parse(std::string_view key);

  /// Operations of one call, as the operator counts them.
  double flops() const;
  /// Bytes of one call where every operand is read, or written, once.
  double bytes() const;
  /// Of what bounds the operator.
  Rate rate() const;
  /// How long a call takes on one core, in operations of a GEMM.
  double work() const;

  const Operator& which() const { return operator_; }
  /// Throws Error when it is another operator.
  template <typename One>
  const One& as() const;
  const Gemm& gemm() const { return as<Gemm>(); }
  Gemm& gemm() { return const_cast<Gemm&>(as<Gemm>()); }
  const Rows& rows() const { return as<Rows>(); }
  const Attention& attention() const { return as<Attention>(); }
  /// Whether several kernels of a function share its calls, by the sizes that these pass: of a GEMM with
  /// ranges, and of an attention that is tuned for several calls. Such a size has a range; 0 is legal at
  /// every call, whatever its least is.
  bool ranged() const;
  std::optional<int64_t> least(Size) const; ///< nothing: it has no range
  Sizes sizes() const;                      ///< of the largest call; 1 where it has no such size
  bool takes(const Sizes&) const;           ///< whether a call may pass these
  /// That of one call, without ranges. Throws Error when a size is 0 or not one that it takes.
  Problem at(const Sizes&) const;
  bool batch_invariant() const { return std::holds_alternative<Gemm>(operator_) && gemm().batch_invariant; }

private:
  Operator operator_;
};

extern template const Gemm& Problem::as<Gemm>() const;
extern template const Rows& Problem::as<Rows>() const;
extern template const Attention& Problem::as<Attention>() const;

/// The operators' words, as they begin keys: "gemm", "rows", "attention".
std::vector<std::string> operator_names();
/// One of each operator, for who asks about operators and not about a problem; in the order of the variant.
std::vector<Problem> one_of_each();
void validate(const Problem&);

} // namespace deepgen
