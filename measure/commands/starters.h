// Who takes part in the finals of a search that has to end in time.
#pragma once

#include "base/kernel/device.h"
#include "measure/commands/finalist_set.h"
#include "measure/commands/search_time.h"
#include "measure/race/options.h"

namespace deepgen {

/// Of finals on this device, before the vendor's library has been asked for its algorithms.
FinalsField expected_field(const Device&, const MeasureOptions&);

/// Seconds that the rounds of a search leave to its finals: those on a GPU rest, heat it and ask for
/// algorithms, however short they are.
double finals_reserve(const Device&, const MeasureOptions&);

/// Leaves to finals of these seconds what they have time for; nothing where that is too little for a
/// decision. Takes the vendor's library from the options where it has to stay out.
Starters fit(FinalistSet&, double seconds, double preparing, const FinalsField&, MeasureOptions&);

/// The log of finals that were to run, with no time to do so.
RecordLog not_begun(const FinalistSet&, const Json& environment, const Starters&, const SearchTime&,
                    double left);

} // namespace deepgen
