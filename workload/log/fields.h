// The pieces that lines of logs are made of. Views into the line, which must outlive them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deepgen {

std::string_view trimmed(std::string_view);
std::vector<std::string_view> split(std::string_view, char separator);
/// Cuts the text before the first separator off `rest`; all of it when there is none.
std::string_view cut_first(std::string_view& rest, char separator);
/// As it may stand in a reason: visible, and short.
std::string shown(std::string_view);

/// The whole text as a number; nothing when it is none, or not finite.
std::optional<int64_t> whole(std::string_view);
std::optional<double> number(std::string_view);
/// A time in the log's unit, blanks around it; 0, not known, when it is no number or below 0.
double time_of_text(std::string_view);
/// A size of 0 to 2^50, or Untranslatable that names it.
int64_t size_of_text(std::string_view name, std::string_view text);

/// Names and values of a line, in order.
class Fields {
public:
  /// "function: matmul, M: 16, kernel: 'a, b'}", behind the opening brace; throws Untranslatable without an
  /// end.
  static Fields of_flow(std::string_view);
  /// "-m 16 --transA N --bias_vector": names without dashes; a flag has an empty value.
  static Fields of_flags(std::string_view);
  /// "type=R_32F rows=16".
  static Fields of_assignments(std::string_view);

  std::optional<std::string_view> find(std::string_view name) const;
  std::optional<std::string_view> find(std::string_view name, std::string_view other) const;
  /// Throw Untranslatable when the field is missing, or no size.
  std::string_view text(std::string_view name, std::string_view other = {}) const;
  int64_t size(std::string_view name, std::string_view other = {}) const;
  /// Whether it is there as a flag, or as anything but 0, false and none.
  bool is_set(std::string_view name) const;
  int64_t times(std::string_view name) const;

private:
  std::vector<std::pair<std::string_view, std::string_view>> list_;
};

} // namespace deepgen
