// What files and candidates are called, in folders and for people.
#pragma once

#include "base/search/record.h"

#include <string>

namespace deepgen {

/// "s07.dgk": the kernel file of a slot.
std::string slot_file_name(int64_t slot);
/// "r0/15": the candidate of a record, whatever stage it was timed in, as every round has a slot 15;
/// "default"; the vendor's name.
std::string candidate_name(const Record&);

} // namespace deepgen
