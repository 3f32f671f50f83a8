// A long list of objects in JSON, one of them at a time in memory: the events of a trace.
#pragma once

#include "base/json/json_fwd.h"
#include "workload/log/log_bytes.h"

#include <cstdint>
#include <functional>
#include <streambuf>
#include <string>

namespace deepgen {

/// Where the list is, and the words of an error.
struct EventList {
  std::string key;  ///< of the document that is an object; a document that is a list has no key
  std::string name; ///< of the file
  std::string what, remedy;
};

/// The JSON library reads the document around the events, where it sees each as `{}`; who takes an event has
/// its text in one piece, which is read several times faster than a stream.
class JsonEvents : private std::streambuf {
public:
  /// The text of an event, from brace to brace, and the line that it ends in. Whoever takes it says why it is
  /// no valid JSON, and nothing where it is.
  using Take = std::function<std::string(std::string_view event, int64_t line)>;

  JsonEvents(LogLines& lines, EventList list) : lines_(lines), list_(std::move(list)) {}

  /// Throws Error where the document is no valid JSON or cut off, has something else than objects in its
  /// list, an event of more than 4 MiB, or values nested more than 100 deep.
  void read(const Take& take);
  [[noreturn]] void refuse(const std::string& why) const;

private:
  int_type uflow() override;
  int_type underflow() override { return traits_type::eof(); } // the library takes byte by byte
  bool seen(int depth, int event, const Json& value);
  void cut_event();
  size_t part_of_event(std::string_view text);

  LogLines& lines_;
  EventList list_;
  const Take* take_ = nullptr;
  std::string event_; ///< its text
  int64_t mark_ = 0;  ///< where the value began that is read outside of events
  int depth_ = 0;     ///< inside an event
  int list_depth_ = 0;
  bool in_list_ = true, among_events_ = false, owes_brace_ = false;
  bool in_string_ = false, escaped_ = false;
};

} // namespace deepgen
