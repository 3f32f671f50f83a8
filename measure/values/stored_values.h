// Elements of any type as numbers of the host.
#pragma once

#include "base/problem/types.h"

#include <cstddef>

namespace deepgen {

/// The element `index` of an array of f32, f64, f16, bf16, e4m3, i8, u8 or i32.
double decoded(Type, const void* data, int64_t index);
/// Stores it, rounded to nearest even: f32, f64, f16 and bf16; i8, u8 and i32, of which it is a
/// value.
void encode(Type, double value, void* data, int64_t index);

} // namespace deepgen
