#include "base/text/identifier.h"

#include <algorithm>
#include <cctype>

namespace deepgen {
namespace {

/// Words of C and C++ that a name must not be, and names that belong to others. The list of
/// _deepgen_check_identifier() in cmake/DeepGen.cmake.
constexpr const char kReserved[] =
    " "
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class compl concept const consteval constexpr constinit const_cast continue co_await "
    "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq std main ";

bool is_reserved(const std::string& word) {
  return std::string(kReserved).find(" " + word + " ") != std::string::npos;
}

/// Functions, types and macros of the runtime: `deepgen` and what begins with `deepgen_`, in any case.
bool is_of_the_runtime(const std::string& word) {
  std::string lower;
  for (unsigned char c : word + "_") lower += char(std::tolower(c));
  return lower.rfind("deepgen_", 0) == 0;
}

} // namespace

std::string why_no_identifier(const std::string& text) {
  const bool letters =
      !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; }) &&
      text.find("__") == std::string::npos;
  return !letters                  ? "letters, digits and single underscores only, a letter first"
         : is_reserved(text)       ? "it is a reserved word"
         : is_of_the_runtime(text) ? "it is a name that DeepGen's runtime keeps to itself"
                                   : "";
}

} // namespace deepgen
