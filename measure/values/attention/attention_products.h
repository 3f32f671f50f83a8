// The two products of attention's reference, in f64 and in vectors.
#pragma once

#include <cstdint>

namespace deepgen {

inline constexpr int64_t value_step = 16; ///< rows of values are whole steps, zeros behind the last element
inline constexpr int64_t panel_keys = 32; ///< of a panel: element (d, j) of its keys at [d * panel_keys + j]

/// products[j] = the sum over d of q[d] * panel(d, j), for all keys of a panel.
void products_with_panel(const double* q, const double* panel, int64_t dimension, double* products);

/// sums += the weights times rows of values, `ld` elements apart; `errors` in the same way with the values'
/// magnitudes.
void add_weighed(const double* weights, const double* errors, int64_t count, const double* values, int64_t ld,
                 double* sums, double* sums_of_errors);

} // namespace deepgen
