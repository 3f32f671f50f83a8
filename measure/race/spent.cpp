#include "measure/race/spent.h"

#include "base/json/json.h"
#include "measure/process/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

namespace deepgen {

namespace {

double rounded(double seconds) { return std::round(seconds * 1e3) / 1e3; }

} // namespace

Json Spent::to_json() const {
  Json json = Json::object();
  for (auto [name, seconds] : {std::pair{"waiting", waiting},
                               {"verifying", verifying},
                               {"vendor", vendor},
                               {"preparing", preparing},
                               {"making", making},
                               {"settling", settling},
                               {"timing", timing}})
    if (seconds >= 0.0005) json[name] = rounded(seconds);
  if (starts.count)
    json["starts"] = {{"workers", starts.count},
                      {"seconds", rounded(starts.seconds)},
                      {"further_races", further.count},
                      {"further_seconds", rounded(further.seconds)}};
  return json;
}

void Spent::complete(double elapsed) {
  preparing +=
      std::max(0.0, elapsed - (waiting + verifying + vendor + preparing + making + settling + timing));
}

Lap::Lap() : last_(wall_seconds()) {}

double Lap::seconds() {
  const double last = std::exchange(last_, wall_seconds());
  return last_ - last;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  char text[32];
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

} // namespace deepgen
