// Elements of any type as numbers of the host.
#pragma once

#include "base/problem/types.h"

#include <cstddef>

namespace deepgen {

/// The element `index` of an array of f32, f64, f16, bf16, e4m3, i8, u8 or i32.
double decoded(Type, const void* data, int64_t index);
/// Stores it, rounded to nearest even: f32, f64, f16, bf16 and e4m3; i8, u8 and i32, of which it is a
/// value.
void encode(Type, double value, void* data, int64_t index);

/// The same of many: elements [first, first + count) of an array of f32, f16, bf16 or e4m3.
void decode(Type, const void* data, int64_t first, int64_t count, double* to);
/// The first of `count` elements whose magnitude is above `most`, or that is no number; -1: there is none. Of
/// f32, f16, bf16 and e4m3.
int64_t first_beyond(Type, const void* data, int64_t count, double most);

} // namespace deepgen
