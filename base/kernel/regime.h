// Regime: how the calls follow each other that a search on a GPU tunes for.
#pragma once

#include "base/json/json.h"

#include <string>
#include <vector>

namespace deepgen {

/// sustained: calls go on and on, at the device's power limit. burst: a few calls after a rest, at its full
/// clock. balanced: both count alike.
enum class TunedFor { sustained, burst, balanced };
std::string to_string(TunedFor);

/// The words that users may write: "sustained", "burst", "balanced".
const std::vector<std::string>& regime_words();
/// Throws Error that names `where` and the three.
TunedFor regime_from(const std::string& word, const std::string& where);

/// Of a log, by the field "regime" of its environment: sustained where it has none, as logs of CPUs and of
/// earlier versions.
TunedFor tuned_for(const Json& environment);

} // namespace deepgen
