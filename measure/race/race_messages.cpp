#include "measure/race/race_messages.h"

#include "base/json/json.h"

#include <array>
#include <utility>

namespace deepgen::race {
namespace {

/// By the variant's index.
constexpr std::array<const char*, std::variant_size_v<Message>> kKinds = {
    "settled", "sampled", "left out", "round lost", "kept from", "failed"};

struct MessageWriter {
  Json& json;
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
};

struct MessageReader {
  const Json& json;
  size_t arms;
  size_t read = 1; ///< fields; its kind is one

  template <typename T>
  void operator()(const char* key, T& value) {
    value = get<T>(json, key, "");
    ++read;
    if constexpr (std::is_same_v<T, int>)
      if (value < 0) throw Error(std::string("field '") + key + "' is negative");
    if constexpr (std::is_same_v<T, size_t>)
      if (value >= arms) throw Error(std::string("field '") + key + "' is none of " + std::to_string(arms));
  }
};

// The fields of each message, for writing and for reading: so that the two cannot differ.
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

template <size_t Kind = 0>
Message read(const std::string& kind, MessageReader& field) {
  if constexpr (Kind == std::variant_size_v<Message>) {
    throw Error("no message of this kind is known: '" + kind + "'");
  } else {
    if (kind != kKinds[Kind]) return read<Kind + 1>(kind, field);
    std::variant_alternative_t<Kind, Message> message;
    each_field(field, message);
    if (field.read != field.json.size()) throw Error("it has fields beyond those of its kind");
    return message;
  }
}

} // namespace

Json to_json(const Message& message) {
  Json json = {{"kind", kKinds[message.index()]}};
  MessageWriter field{json};
  std::visit([&](auto copy) { each_field(field, copy); }, message);
  return json;
}

Message message_from(const Json& json, size_t arms) {
  try {
    MessageReader field{json, arms};
    return read(get<std::string>(json, "kind", ""), field);
  } catch (const Error& e) {
    throw ForeignMessage("the worker sent what is no message of a race", excerpt(json), e.what(),
                         "leave out the kernel that ran: it has overwritten its worker's memory, or has "
                         "written in its name");
  }
}

} // namespace deepgen::race
