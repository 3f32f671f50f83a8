// What a worker that verifies tells its parent.
#pragma once

#include "base/json/json_fwd.h"
#include "measure/values/verify.h"

#include <cstddef>
#include <string>
#include <variant>

namespace deepgen {

struct Verified {
  size_t candidate = 0;
  Verdict verdict;
};
/// The device could not be opened, and no candidate has run: its driver is being reset, say.
struct NotOpened {
  std::string why;
};
using VerdictMessage = std::variant<Verified, NotOpened>;

Json to_json(const VerdictMessage&);
/// Verdicts come in order: that of candidate `next` alone is one. Throws ForeignMessage.
VerdictMessage verdict_message_from(const Json&, size_t next);

} // namespace deepgen
