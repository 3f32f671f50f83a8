#include "base/search/vendor_choice.h"

#include "base/kernel/regime.h"

namespace deepgen {
namespace {

/// Of the kernel of this hash, against the vendor, in a regime of the hold-out.
std::string verdict_in(const Json& holdout, const std::string& regime, const std::string& sha256) {
  const Json facts = holdout.value("regimes", Json::object()).value(regime, Json::object());
  for (const Json& arm : facts.value("arms", Json::array()))
    if (arm.value("sha256", "") == sha256) return arm.value("verdict", "");
  return "";
}

/// Whether the kernel that is locked loses to the vendor where it was tuned for: of balanced calls in either
/// regime, as who makes calls of one of them gains nothing by the other.
bool is_slower(const Json& holdout, const RecordLog& final, const std::string& sha256, bool confirmed) {
  const bool slower = is_loss(holdout["vendor"].value(confirmed ? "verdict" : "default_verdict", ""));
  if (slower || tuned_for(final.environment) != TunedFor::balanced) return slower;
  return is_loss(holdout.value("balanced", Json::object())
                     .value(confirmed ? "vendor_verdict" : "default_verdict", "")) ||
         is_loss(verdict_in(holdout, "bursts", sha256));
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
