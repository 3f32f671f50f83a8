// Of a batch invariant problem: which of the orders of sums over K its kernels take, as records tell. Pure.
#pragma once

#include "base/search/record.h"

namespace deepgen {

/// Some, whose order is `order`; all with "".
std::vector<const Record*> of_order(const std::vector<const Record*>&, const std::string& order);
/// The orders of those that have a time at every one of `at`, the fastest first: by the geometric mean over
/// these, weighted, of the fastest record at each. Equal ones by name.
std::vector<std::string> orders_by_time(const std::vector<const Record*>&, const std::vector<Sizes>& at,
                                        const std::vector<double>& weights);

/// Of good records with row_bits: those that differ from most others of their order become "varies", as it
/// is not theirs; of equally many the first ones are right.
void reject_other_bits(const std::vector<Record*>&);

} // namespace deepgen
