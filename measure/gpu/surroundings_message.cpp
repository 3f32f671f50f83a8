#include "measure/gpu/surroundings.h"
#include "measure/process/typed_message.h"

namespace deepgen::cuda {

template <typename Fields>
void each_field(Fields& field, Surroundings& m) {
  field("processes", m.other_processes);
  field("watts", m.power_limit_watts);
  field("driver", m.driver);
  field("unwatched", m.unwatched);
}

namespace {

using SurroundingsMessage = std::variant<Surroundings>;
constexpr MessageType<SurroundingsMessage> kSurroundingsMessage = {
    {"surroundings"}, "a worker that asks about a device", "report this: it is a defect"};

} // namespace

Json to_json(const Surroundings& s) {
  Surroundings copy = s;
  copy.power_limit_watts = finite(s.power_limit_watts);
  return message_json(kSurroundingsMessage, SurroundingsMessage(copy));
}

Surroundings surroundings_from(const Json& json) {
  return std::get<Surroundings>(read_message(kSurroundingsMessage, json, 0));
}

} // namespace deepgen::cuda
