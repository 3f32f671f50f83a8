#include "remote/bundle.h"

#include "base/text/sha256.h"
#include "base/text/text.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace deepgen {
namespace {

constexpr const char* kBegin = "deepgen.bundle/1 ";
constexpr const char* kEnd = "deepgen.end ";
constexpr size_t kMostOfBody = size_t(1) << 30, kMostFiles = 4096, kLongestName = 1000, kLongestHead = 4096;
constexpr size_t kDigits = 10; ///< of a length at most

[[noreturn]] void refuse(const std::string& why, const std::string& where) {
  throw Error("what came is no whole bundle", where, why, "see what the launcher says, and try again");
}

/// A length as it is written here: no sign, no leading zero.
std::optional<size_t> number_of(std::string_view digits) {
  size_t value = 0;
  const char* end = digits.data() + digits.size();
  if (digits.empty() || digits.size() > kDigits || (digits[0] == '0' && digits.size() > 1))
    return std::nullopt;
  const auto [stop, status] = std::from_chars(digits.data(), end, value);
  return status == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::string first_line_of(size_t length) { return kBegin + std::to_string(length) + "\n"; }

std::string trailer(const std::string& body) {
  return kEnd + std::to_string(body.size()) + " " + sha256_hex(body) + "\n";
}

/// The first line's number and where the body begins.
std::optional<std::pair<size_t, size_t>> body_of(const std::string& text, const std::string& where) {
  const std::string begin = kBegin;
  const size_t known = std::min(text.size(), begin.size());
  if (text.compare(0, known, begin, 0, known) != 0) refuse("it begins otherwise", where);
  const size_t line = text.find('\n');
  if (line == std::string::npos) {
    if (text.size() > begin.size() + kDigits) refuse("its first line does not end", where);
    return std::nullopt;
  }
  if (line < begin.size()) refuse("its first line ends early", where);
  const auto length = number_of(std::string_view(text).substr(begin.size(), line - begin.size()));
  if (!length || *length > kMostOfBody) refuse("its length is none", where);
  return std::pair(*length, line + 1);
}

/// A line of the body from `at` on, which is moved behind it.
std::string take_line(const std::string& body, size_t& at, size_t longest, const std::string& where) {
  const size_t end = body.find('\n', at);
  if (end == std::string::npos || end - at > longest) refuse("a line in it does not end", where);
  const std::string line = body.substr(at, end - at);
  at = end + 1;
  return line;
}

/// No file may be the folder of another.
void check_folders(const std::vector<BundleFile>& files, const std::string& where) {
  std::set<std::string> names;
  for (const BundleFile& file : files)
    if (!names.insert(file.name).second) refuse("it has the file " + file.name + " twice", where);
  for (const std::string& name : names)
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      if (names.count(name.substr(0, slash))) refuse("the file of " + name + "'s folder is in it", where);
}

} // namespace

std::string why_no_bundle_name(const std::string& name) {
  if (std::string why = why_no_name(name, kLongestName); !why.empty()) return why;
  if (name.empty() || name[0] == '/' || name.back() == '/') return "it is no relative path of a file";
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return "it has an empty part, or a '.' or '..'";
    at = end + 1;
  }
  return "";
}

std::optional<size_t> bundle_size(const std::string& text, const std::string& where) {
  const auto body = body_of(text, where);
  if (!body) return std::nullopt;
  const auto [length, at] = *body;
  return at + length + std::string(kEnd).size() + std::to_string(length).size() + 1 + 64 + 1;
}

const std::string* Bundle::find(const std::string& name) const {
  for (const BundleFile& file : files)
    if (file.name == name) return &file.bytes;
  return nullptr;
}

std::string Bundle::serialize() const {
  std::string body = dump_json(head) + "\n";
  for (const BundleFile& file : files)
    body += std::to_string(file.bytes.size()) + " " + file.name + "\n" + file.bytes;
  return first_line_of(body.size()) + body + trailer(body);
}

Bundle Bundle::parse(const std::string& text, const std::string& where) {
  const std::optional<size_t> size = bundle_size(text, where);
  if (!size || text.size() != *size)
    refuse("it has " + std::to_string(text.size()) + " bytes" +
               (size ? " instead of " + std::to_string(*size) : ""),
           where);
  const auto [length, begin] = *body_of(text, where);
  const std::string body = text.substr(begin, length);
  if (text.compare(begin + length, std::string::npos, trailer(body)) != 0)
    refuse("its checksum is another", where);
  Bundle bundle;
  size_t at = 0;
  bundle.head = parse_json(take_line(body, at, kMostOfBody, where), where);
  if (!bundle.head.is_object()) refuse("its head is no object", where);
  while (at < body.size()) {
    const std::string line = take_line(body, at, kLongestHead, where);
    const size_t blank = std::min(line.find(' '), line.size());
    const auto bytes = number_of(std::string_view(line).substr(0, blank));
    const std::string name = blank < line.size() ? line.substr(blank + 1) : "";
    if (!bytes || *bytes > body.size() - at) refuse("the length of a file in it is none", where);
    if (const std::string why = why_no_bundle_name(name); !why.empty())
      refuse("a file in it has a bad name: " + why, where);
    if (bundle.files.size() == kMostFiles) refuse("it has too many files", where);
    bundle.files.push_back({name, body.substr(at, *bytes)});
    at += *bytes;
  }
  check_folders(bundle.files, where);
  return bundle;
}

} // namespace deepgen
