// A worker's messages as types: a variant of structs, and one list of the fields of each, for writing and for
// reading, so that the two cannot differ:
//
//   struct Settled { double seconds = 0; };
//   template <typename Fields> void each_field(Fields& field, Settled& m) { field("seconds", m.seconds); }
//   using Message = std::variant<Settled, ...>;
//   constexpr MessageType<Message> kMessage = {{"settled", ...}, "a race", "..."};
#pragma once

#include "base/json/json.h"
#include "measure/process/worker.h"

#include <array>
#include <string>
#include <utility>
#include <variant>

namespace deepgen {

template <typename Message>
struct MessageType {
  std::array<const char*, std::variant_size_v<Message>> kinds; ///< by the variant's index
  const char *what, *remedy;                                   ///< for errors: whose message; what to do
};

struct MessageWriter {
  Json& json;
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
};

/// A size_t is the number of something that the parent knows, below `count`. An int counts, from 0.
struct MessageReader {
  const Json& json;
  size_t count;
  size_t read = 1; ///< fields; its kind is one

  template <typename T>
  void operator()(const char* key, T& value) {
    value = get<T>(json, key, "");
    ++read;
    if constexpr (std::is_same_v<T, int>)
      if (value < 0) throw Error(std::string("field '") + key + "' is negative");
    if constexpr (std::is_same_v<T, size_t>)
      if (value >= count) throw Error(std::string("field '") + key + "' is none of " + std::to_string(count));
  }
};

template <typename Message>
Json message_json(const MessageType<Message>& type, const Message& message) {
  Json json = {{"kind", type.kinds[message.index()]}};
  MessageWriter field{json};
  std::visit([&](auto copy) { each_field(field, copy); }, message);
  return json;
}

template <typename Message, size_t Kind = 0>
Message message_of_kind(const MessageType<Message>& type, const std::string& kind, MessageReader& field) {
  if constexpr (Kind == std::variant_size_v<Message>) {
    throw Error("no message of this kind is known: '" + kind + "'");
  } else {
    if (kind != type.kinds[Kind]) return message_of_kind<Message, Kind + 1>(type, kind, field);
    std::variant_alternative_t<Kind, Message> message;
    each_field(field, message);
    if (field.read != field.json.size()) throw Error("it has fields beyond those of its kind");
    return message;
  }
}

/// Throws ForeignMessage, with the field at fault and the message. `check` may refuse more, by an Error.
template <typename Message, typename Check>
Message read_message(const MessageType<Message>& type, const Json& json, size_t count, Check check) {
  try {
    MessageReader field{json, count};
    Message message = message_of_kind(type, get<std::string>(json, "kind", ""), field);
    check(std::as_const(message));
    return message;
  } catch (const Error& e) {
    throw ForeignMessage(std::string("the worker sent what is no message of ") + type.what, excerpt(json),
                         e.what(), type.remedy);
  }
}
template <typename Message>
Message read_message(const MessageType<Message>& type, const Json& json, size_t count) {
  return read_message(type, json, count, [](const Message&) {});
}

/// For messages of workers that run kernels.
inline constexpr const char* leave_out_the_kernel =
    "leave out the kernel that ran: it has overwritten its worker's memory, or has written in its name";

} // namespace deepgen
