// What the worker of a race tells its parent.
#pragma once

#include "base/json/json_fwd.h"
#include "measure/process/stopwatch.h"
#include "measure/process/worker.h"

#include <cstddef>
#include <string>
#include <variant>

namespace deepgen::race {

/// The race before this one is over, of those that share the worker.
struct Begun {
  int race = 0;
};
/// The first arm is made, with a sample of its own: a new worker has opened its device for it.
struct FirstMade {};
/// All arms are made. Of the time since the race began, so many seconds went into settling.
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
using Message = std::variant<Begun, FirstMade, Settled, Sampled, LeftOut, RoundLost, KeptFrom, Failed>;

Json to_json(const Message&);
/// Of a race of so many arms. Throws ForeignMessage, with the field at fault and the message.
Message message_from(const Json&, size_t arms);

} // namespace deepgen::race
