#include "base/kernel/regime.h"

#include "base/text/error.h"

#include <algorithm>

namespace deepgen {

const std::vector<std::string>& regime_words() {
  static const std::vector<std::string> words = {"sustained", "burst", "balanced"};
  return words;
}

std::string to_string(TunedFor regime) { return regime_words()[size_t(regime)]; }

TunedFor regime_from(const std::string& word, const std::string& where) {
  const auto& words = regime_words();
  const auto at = std::find(words.begin(), words.end(), word);
  if (at == words.end())
    throw Error("unknown regime '" + word + "'", where, "known: sustained, burst, balanced",
                "measure again, or read the log with the version that wrote it");
  return TunedFor(at - words.begin());
}

TunedFor tuned_for(const Json& environment) {
  return regime_from(environment.value("regime", "sustained"), "the log's environment");
}

} // namespace deepgen
