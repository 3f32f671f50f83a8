// The sizes that a kernel is for, in kernel files, choices and locks.
#pragma once

#include "base/json/json.h"
#include "base/problem/size.h"

#include <optional>

namespace deepgen {

/// [[m, n, k, batch] of the least, the same of the most]
Json span_json(const SizeSpan&);
/// The field `key`; nothing when it is absent.
std::optional<SizeSpan> get_span(const Json&, const std::string& key, const std::string& where);

} // namespace deepgen
