#include "base/search/vendor_choice.h"

#include "base/kernel/regime.h"

namespace deepgen {
namespace {

/// Of the kernel that is locked, against the vendor, in what was tuned for.
std::string verdict_on(const Json& holdout, const RecordLog& final, bool confirmed) {
  if (tuned_for(final.environment) != TunedFor::balanced)
    return holdout["vendor"].value(confirmed ? "verdict" : "default_verdict", "");
  return holdout.value("balanced", Json::object())
      .value(confirmed ? "vendor_verdict" : "default_verdict", "");
}

} // namespace

VendorChoice vendor_choice(const RecordLog& final, const Decision& decision, const std::string& device) {
  VendorChoice choice;
  const Json holdout = final.environment.value("holdout", Json::object());
  const Json vendor = holdout.value("vendor", Json::object());
  if (vendor.empty()) return choice;
  // What the hold-out did not confirm is not what is locked.
  const bool confirmed = holdout.value("sha256", "") == decision.winner.sha256;
  if (!is_loss(verdict_on(holdout, final, confirmed))) return choice;
  choice.call = get_vendor_call(vendor, "call", "the hold-out");
  if (choice.call)
    choice.call->device = device;
  else
    choice.why_not = vendor.value("no_call", "the search was made by a version that did not note the call");
  return choice;
}

} // namespace deepgen
