#include "base/search/vendor_choice.h"

namespace deepgen {

VendorChoice vendor_choice(const RecordLog& final, const Decision& decision, const std::string& device) {
  VendorChoice choice;
  const Json holdout = final.environment.value("holdout", Json::object());
  const Json vendor = holdout.value("vendor", Json::object());
  if (vendor.empty()) return choice;
  // What the hold-out did not confirm is not what is locked.
  const bool confirmed = holdout.value("sha256", "") == decision.winner.sha256;
  if (!is_loss(vendor.value(confirmed ? "verdict" : "default_verdict", ""))) return choice;
  choice.call = get_vendor_call(vendor, "call", "the hold-out");
  if (choice.call)
    choice.call->device = device;
  else
    choice.why_not = vendor.value("no_call", "the search was made by a version that did not note the call");
  return choice;
}

} // namespace deepgen
