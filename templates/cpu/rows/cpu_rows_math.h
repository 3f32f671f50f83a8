// What rows are made of on the CPU, in f32: functions of vectors and of the scalars that a row has one of.
#pragma once

#include "templates/ir/ir_builder.h"

namespace deepgen {

/// exp(x) for x <= 0, scalar or vector: 0 below -87.7, and at -inf; NaN of NaN, and of +inf where x is the
/// difference of two infinities. exp(0) is 1. To 3 u of the result, u = 2^-24 (tests/numerics/rows_test.cpp).
Value exp_of_negative(Ir&, Value x);

/// log(x) of a scalar x that is 0, at least 1, or NaN; -inf of 0.
Value log_of_sum(Ir&, Value x);

/// The greater; where y is NaN, x.
Value greater(Ir&, Value x, Value y);
/// |x| as an integer of the same order, in which NaN is greater than infinity; and back.
Value magnitude_bits(Ir&, Value x);
Value greater_bits(Ir&, Value x, Value y);
Value from_bits(Ir&, Value bits);

/// All lanes of a vector, combined in pairs: a scalar.
Value combine_lanes(Ir&, Value vector, const std::function<Value(Value, Value)>& combine);

Value square_root(Ir&, Value scalar);

} // namespace deepgen
