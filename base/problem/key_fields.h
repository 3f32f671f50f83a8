// KeyFields: reads a problem key, "gemm m=512 n=2048 ...", field by field. Each operator has one fixed order.
#pragma once

#include "base/problem/types.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace deepgen {

/// Throws Error that names the field, and what it may be, wherever the text is not as asked.
class KeyFields {
public:
  /// `order`: the operator's fields, for the message of a missing one. `text` must outlive this.
  KeyFields(std::string_view text, std::string order);

  bool next_is(std::string_view name) const;
  std::string_view text(std::string_view name);
  int64_t integer(std::string_view name);
  /// "512", or "1..8192": the first part is then the lower end.
  std::pair<std::optional<int64_t>, int64_t> range(std::string_view name);
  Type type(std::string_view name) { return one_of<Type>(name, type_names()); }
  /// `names`: of the enumeration's values, in their order.
  template <typename Enum>
  Enum one_of(std::string_view name, std::span<const char* const> names) {
    return Enum(position(text(name), name, names));
  }
  /// Several of them, with + between; "none": none.
  template <typename Enum, typename Vector>
  Vector list_of(std::string_view name, std::span<const char* const> names) {
    Vector list;
    std::string_view rest = text(name);
    if (rest == "none") return list;
    while (true) {
      const size_t plus = rest.find('+');
      list.push_back(Enum(position(rest.substr(0, plus), name, names)));
      if (plus == std::string_view::npos) return list;
      rest.remove_prefix(plus + 1);
    }
  }
  void end() const;
  /// A whole number that is a part of a field.
  static int64_t number(std::string_view digits, std::string_view field);

private:
  static size_t position(std::string_view value, std::string_view field, std::span<const char* const> names);

  std::string_view all_, rest_;
  std::string order_;
};

} // namespace deepgen
