// Type: the element types of operands, for all operators.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace deepgen {

/// tf32 is an input type only: f32 in memory, of which the multiplication uses the upper 19 bits. e4m3 and
/// e5m2 are the 8-bit floats of the OCP specification (e4m3: "FN", no infinities). u8 is a type of A alone.
enum class Type { f32, f64, f16, bf16, tf32, e4m3, e5m2, i8, i32, u8 };

std::string to_string(Type);
int64_t size_of(Type); ///< bytes in memory
/// In the enumeration's order.
std::span<const char* const> type_names();

} // namespace deepgen
