#include "workload/log/fields.h"

#include "base/text/text.h"
#include "workload/log/call.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace deepgen {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr size_t kMostFields = 400; ///< those of a grouped call of some hundred products included

bool is_word_of_flags(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    return text.substr(1, text.size() - 2);
  return text;
}

/// The end of a value that begins at `at`: a comma or the closing brace outside quotes.
size_t end_of_value(std::string_view line, size_t at) {
  char quote = 0;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == ',' || c == '}') {
      return at;
    }
  }
  throw Untranslatable{"the line is cut off"};
}

} // namespace

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view cut_first(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view first = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return first;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  parts.reserve(16);
  for (size_t at = 0; parts.size() < kMostFields; ++at) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (end == std::string_view::npos) break;
    at = end;
  }
  return parts;
}

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string cut = visible(std::string(text.substr(0, kLongest)));
  for (char& c : cut)
    if (c == '\n' || c == '\t') c = ' ';
  return "'" + cut + (text.size() > kLongest ? "...'" : "'");
}

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

double time_of_text(std::string_view text) { return std::max(0.0, number(trimmed(text)).value_or(0)); }

int64_t size_of_text(std::string_view name, std::string_view text) {
  const std::optional<int64_t> value = whole(text);
  if (!value || *value < 0 || *value > int64_t(1) << 50)
    throw Untranslatable{"its " + std::string(name) + " is no size: " + shown(text)};
  return *value;
}

Fields Fields::of_flow(std::string_view line) {
  Fields fields;
  fields.list_.reserve(56);
  for (size_t at = 0; fields.list_.size() < kMostFields; ++at) {
    const size_t end = end_of_value(line, at);
    std::string_view value = line.substr(at, end - at);
    const std::string_view name = trimmed(cut_first(value, ':'));
    if (!name.empty()) fields.list_.emplace_back(name, unquoted(trimmed(value)));
    if (line[end] == '}') break;
    at = end;
  }
  return fields;
}

Fields Fields::of_flags(std::string_view line) {
  Fields fields;
  fields.list_.reserve(56);
  std::string_view rest = trimmed(line);
  while (!rest.empty() && fields.list_.size() < kMostFields) {
    std::string_view word = cut_first(rest, ' ');
    rest = trimmed(rest);
    if (!is_word_of_flags(word)) continue;
    word.remove_prefix(word[1] == '-' ? 2 : 1);
    std::string_view ahead = rest;
    std::string_view value = cut_first(ahead, ' ');
    if (is_word_of_flags(value))
      value = {};
    else
      rest = trimmed(ahead);
    fields.list_.emplace_back(word, value);
  }
  return fields;
}

Fields Fields::of_assignments(std::string_view text) {
  Fields fields;
  std::string_view rest = text;
  while (!rest.empty() && fields.list_.size() < kMostFields) {
    std::string_view value = cut_first(rest, ' ');
    const std::string_view name = cut_first(value, '=');
    if (!name.empty()) fields.list_.emplace_back(name, value);
  }
  return fields;
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  for (const auto& [key, value] : list_)
    if (key == name) return value;
  return {};
}

std::optional<std::string_view> Fields::find(std::string_view name, std::string_view other) const {
  const std::optional<std::string_view> found = find(name);
  return found || other.empty() ? found : find(other);
}

std::string_view Fields::text(std::string_view name, std::string_view other) const {
  const std::optional<std::string_view> found = find(name, other);
  if (!found) throw Untranslatable{"the line has no " + std::string(name)};
  return *found;
}

int64_t Fields::size(std::string_view name, std::string_view other) const {
  return size_of_text(name, text(name, other));
}

bool Fields::is_set(std::string_view name) const {
  const std::optional<std::string_view> value = find(name);
  return value && *value != "0" && *value != "false" && *value != "none";
}

int64_t Fields::times(std::string_view name) const {
  int64_t count = 0;
  for (const auto& [key, value] : list_) count += key == name;
  return count;
}

} // namespace deepgen
