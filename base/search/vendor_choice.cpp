#include "base/search/vendor_choice.h"

#include "base/kernel/regime.h"

#include <array>

namespace deepgen {
namespace {

/// A kernel whose median is behind by more than this share gives way, too, where noise hides which is faster.
constexpr double kDoubt = 0.01;

/// By its verdict, or by the median of [low, median, high] of its times over the library's.
bool loses(const Json& facts, const char* verdict, const char* ratio) {
  if (is_loss(facts.value(verdict, ""))) return true;
  const auto found = facts.find(ratio);
  return found != facts.end() && found->get<std::array<double, 3>>()[1] > 1 + kDoubt;
}

/// The kernel of this hash in a regime of the hold-out.
bool loses_in(const Json& holdout, const std::string& regime, const std::string& sha256) {
  const Json facts = holdout.value("regimes", Json::object()).value(regime, Json::object());
  for (const Json& arm : facts.value("arms", Json::array()))
    if (arm.value("sha256", "") == sha256) return loses(arm, "verdict", "vendor");
  return false;
}

/// Whether the kernel that is locked loses to the vendor where it was tuned for: of balanced calls in either
/// regime, as who makes calls of one of them gains nothing by the other.
bool is_slower(const Json& holdout, const RecordLog& final, const std::string& sha256, bool confirmed) {
  const auto judged = [&](const Json& facts, const char* ratio, const char* verdict) {
    return confirmed ? loses(facts, verdict, ratio) : loses(facts, "default_verdict", "default_ratio");
  };
  if (judged(holdout["vendor"], "ratio", "verdict")) return true;
  if (tuned_for(final.environment) != TunedFor::balanced) return false;
  return judged(holdout.value("balanced", Json::object()), "vendor_ratio", "vendor_verdict") ||
         loses_in(holdout, "bursts", sha256);
}

} // namespace

VendorChoice vendor_choice(const RecordLog& final, const Decision& decision, const std::string& device) {
  VendorChoice choice;
  const Json holdout = final.environment.value("holdout", Json::object());
  const Json vendor = holdout.value("vendor", Json::object());
  if (vendor.empty()) return choice;
  // What the hold-out did not confirm is not what is locked.
  const bool confirmed = holdout.value("sha256", "") == decision.winner.sha256;
  if (!is_slower(holdout, final, decision.winner.sha256, confirmed)) return choice;
  choice.call = get_vendor_call(vendor, "call", "the hold-out");
  if (choice.call)
    choice.call->device = device;
  else
    choice.why_not = vendor.value("no_call", "the search was made by a version that did not note the call");
  return choice;
}

} // namespace deepgen
