#include "base/json/json.h"
#include "measure/gpu/surroundings.h"
#include "measure/race/race_messages.h"
#include "measure/values/verdict_messages.h"
#include "tests/fuzz/target.h"

namespace deepgen {
namespace {

/// Lines that a kernel may have written into its worker's answers: refused by an Error, or a message that is
/// the same when it is written and read again.
void run_worker_message(const std::string& input) {
  const auto json = [](const std::string& text) { return parse_json(text, "a worker"); };
  fuzz::round_trip(
      input, [&](const std::string& text) { return race::message_from(json(text), 4); },
      [](const race::Message& message) { return dump_json(race::to_json(message)); });
  for (size_t next : {size_t(0), size_t(3)})
    fuzz::round_trip(
        input, [&](const std::string& text) { return verdict_message_from(json(text), next); },
        [](const VerdictMessage& message) { return dump_json(to_json(message)); });
  fuzz::round_trip(
      input, [&](const std::string& text) { return cuda::surroundings_from(json(text)); },
      [](const cuda::Surroundings& s) { return dump_json(cuda::to_json(s)); });
}
const fuzz::Target worker_message_target("worker_message", run_worker_message);

} // namespace
} // namespace deepgen
