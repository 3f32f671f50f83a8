// What the worker of a race tells its parent: one type a message, and one pair of functions between these
// and JSON.
#pragma once

#include "base/json/json_fwd.h"
#include "base/text/error.h"
#include "measure/process/stopwatch.h"

#include <cstddef>
#include <string>
#include <variant>

namespace deepgen::race {

/// All arms are made. Of the time since the worker's start, so many seconds went into settling.
struct Settled {
  double seconds = 0;
};
/// An arm's sample of a round.
struct Sampled {
  size_t arm = 0;
  int round = 0;
  Sample sample;
};
/// An arm is too slow to go on.
struct LeftOut {
  size_t arm = 0;
};
/// The device throttled: no sample of the round counts.
struct RoundLost {
  int round = 0;
};
/// The cuts have left an arm in, for the rounds from this one on.
struct KeptFrom {
  size_t arm = 0;
  int round = 0;
};
/// Why an arm cannot be timed: the worker ends behind this message.
struct Failed {
  size_t arm = 0;
  std::string why;
};
using Message = std::variant<Settled, Sampled, LeftOut, RoundLost, KeptFrom, Failed>;

/// A message that no race sends: a kernel has overwritten its worker's memory, or has written in its name.
class ForeignMessage : public Error {
public:
  using Error::Error;
};

Json to_json(const Message&);
/// Of a race of so many arms. Throws ForeignMessage, with the field at fault and the message.
Message message_from(const Json&, size_t arms);

} // namespace deepgen::race
