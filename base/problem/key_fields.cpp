#include "base/problem/key_fields.h"

#include "base/text/error.h"

#include <algorithm>
#include <charconv>

namespace deepgen {

KeyFields::KeyFields(std::string_view text, std::string order)
    : all_(text), rest_(text.substr(std::min(text.find(' '), text.size()))), order_(std::move(order)) {}

bool KeyFields::next_is(std::string_view name) const {
  return rest_.starts_with(' ') && rest_.substr(1).starts_with(name) &&
         rest_.substr(1 + name.size()).starts_with('=');
}

std::string_view KeyFields::text(std::string_view name) {
  if (!next_is(name))
    throw Error("the problem key lacks the field '" + std::string(name) + "'",
                "at '" + std::string(rest_) + "'", "fields have one fixed order: " + order_);
  rest_.remove_prefix(name.size() + 2);
  const std::string_view value = rest_.substr(0, rest_.find(' '));
  rest_.remove_prefix(value.size());
  return value;
}

int64_t KeyFields::integer(std::string_view name) { return number(text(name), name); }

std::pair<std::optional<int64_t>, int64_t> KeyFields::range(std::string_view name) {
  const std::string_view value = text(name);
  const size_t dots = value.find("..");
  if (dots == std::string_view::npos) return {std::nullopt, number(value, name)};
  return {number(value.substr(0, dots), name), number(value.substr(dots + 2), name)};
}

int64_t KeyFields::number(std::string_view digits, std::string_view name) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc() || end != digits.data() + digits.size())
    throw Error("'" + std::string(digits) + "' is not an integer", std::string(name));
  return value;
}

size_t KeyFields::position(std::string_view value, std::string_view field,
                           std::span<const char* const> names) {
  std::string known;
  for (size_t i = 0; i < names.size(); ++i) {
    if (value == names[i]) return i;
    known += (i ? ", " : "") + std::string(names[i]);
  }
  throw Error("unknown value '" + std::string(value) + "' in a problem key", std::string(field), "",
              "use one of: " + known);
}

void KeyFields::end() const {
  if (!rest_.empty())
    throw Error("trailing text '" + std::string(rest_) + "' in a problem key", std::string(all_));
}

} // namespace deepgen
