#include "measure/values/verdict_messages.h"

#include "measure/process/typed_message.h"

#include <algorithm>

namespace deepgen {

template <typename Fields>
void each_field(Fields& field, Verified& m) {
  field("candidate", m.candidate);
  field("status", m.verdict.status);
  field("detail", m.verdict.detail);
  field("error", m.verdict.error);
  field("row_bits", m.verdict.row_bits);
}
template <typename Fields>
void each_field(Fields& field, NotOpened& m) {
  field("why", m.why);
}

namespace {

constexpr MessageType<VerdictMessage> kVerdictMessage = {
    {"verified", "not opened"}, "a worker that verifies", leave_out_the_kernel};
/// What a worker says of a candidate itself; of one that hangs its parent does.
constexpr const char* kStatuses[] = {"ok", "wrong", "out_of_bounds", "varies", "unsupported", "crash"};

} // namespace

Json to_json(const VerdictMessage& message) {
  VerdictMessage copy = message;
  if (auto* verified = std::get_if<Verified>(&copy))
    verified->verdict.error = finite(verified->verdict.error);
  return message_json(kVerdictMessage, copy);
}

VerdictMessage verdict_message_from(const Json& json, size_t next) {
  return read_message(kVerdictMessage, json, next + 1, [&](const VerdictMessage& message) {
    const auto* m = std::get_if<Verified>(&message);
    if (!m) return;
    if (m->candidate != next)
      throw Error("it is of candidate " + std::to_string(m->candidate) + ", and " + std::to_string(next) +
                  " is next");
    if (std::find(std::begin(kStatuses), std::end(kStatuses), m->verdict.status) == std::end(kStatuses))
      throw Error("no status is called '" + m->verdict.status + "'");
  });
}

} // namespace deepgen
