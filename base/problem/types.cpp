#include "base/problem/types.h"

#include <array>

namespace deepgen {
namespace {

constexpr std::array<const char*, 10> kTypes = {"f32",  "f64",  "f16", "bf16", "tf32",
                                                "e4m3", "e5m2", "i8",  "i32",  "u8"};
constexpr std::array<int64_t, 10> kSizes = {4, 8, 2, 2, 4, 1, 1, 1, 4, 1};

} // namespace

std::string to_string(Type t) { return kTypes[size_t(t)]; }
int64_t size_of(Type t) { return kSizes[size_t(t)]; }
std::span<const char* const> type_names() { return kTypes; }

} // namespace deepgen
