#include "measure/race/race_messages.h"

#include "measure/process/typed_message.h"

namespace deepgen::race {

template <typename Fields>
void each_field(Fields& field, Begun& m) {
  field("race", m.race);
}
template <typename Fields>
void each_field(Fields&, FirstMade&) {}
template <typename Fields>
void each_field(Fields& field, Settled& m) {
  field("seconds", m.seconds);
}
template <typename Fields>
void each_field(Fields& field, Sampled& m) {
  field("arm", m.arm);
  field("round", m.round);
  field("seconds", m.sample.seconds);
  field("clean", m.sample.clean);
  field("megahertz", m.sample.megahertz);
  field("throttled", m.sample.throttled);
  field("capped", m.sample.capped);
}
template <typename Fields>
void each_field(Fields& field, LeftOut& m) {
  field("arm", m.arm);
}
template <typename Fields>
void each_field(Fields& field, RoundLost& m) {
  field("round", m.round);
}
template <typename Fields>
void each_field(Fields& field, KeptFrom& m) {
  field("arm", m.arm);
  field("round", m.round);
}
template <typename Fields>
void each_field(Fields& field, Failed& m) {
  field("arm", m.arm);
  field("why", m.why);
}

namespace {

constexpr MessageType<Message> kRaceMessage = {
    {"begun", "first made", "settled", "sampled", "left out", "round lost", "kept from", "failed"},
    "a race",
    leave_out_the_kernel};

} // namespace

Json to_json(const Message& message) { return message_json(kRaceMessage, message); }

Message message_from(const Json& json, size_t arms) { return read_message(kRaceMessage, json, arms); }

} // namespace deepgen::race
