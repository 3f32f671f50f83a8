#include "workload/log/json_events.h"

#include "base/json/json.h"
#include "base/text/error.h"

#include <istream>

namespace deepgen {
namespace {

constexpr int64_t kLongestEvent = int64_t(4) << 20;
constexpr int kDeepest = 100;

} // namespace

void JsonEvents::refuse(const std::string& why) const {
  throw Error("cannot read log", list_.name, list_.what + ", and " + why, list_.remedy);
}

void JsonEvents::read(const Take& take) {
  take_ = &take;
  std::istream document(this);
  const auto callback = [this](int depth, Json::parse_event_t event, Json& value) {
    return seen(depth, int(event), value);
  };
  try {
    const Json nothing = Json::parse(document, callback);
  } catch (const Json::exception& e) {
    refuse(std::string("is no valid JSON, or is cut off: ") + e.what());
  }
}

/// Keeps nothing of the document: its depth alone, and whether the list has begun.
bool JsonEvents::seen(int depth, int event, const Json& value) {
  using Event = Json::parse_event_t;
  if (depth > kDeepest) refuse("values are nested more than 100 deep");
  mark_ = lines_.taken();
  if (depth == 0 && Event(event) == Event::object_start) list_depth_ = 1, in_list_ = false;
  if (list_depth_ == 1 && depth == 1 && Event(event) == Event::key) in_list_ = value == list_.key;
  if (depth == list_depth_ && in_list_ && Event(event) == Event::array_start) among_events_ = true;
  return depth == 0;
}

JsonEvents::int_type JsonEvents::uflow() {
  if (owes_brace_) {
    owes_brace_ = false;
    return '}';
  }
  if (lines_.taken() - mark_ > kLongestEvent) refuse("a value beside its events has more than 4 MiB");
  const int c = lines_.byte();
  if (c < 0) return traits_type::eof();
  if (c == ']') among_events_ = false;
  if (!among_events_ || c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t') return c;
  if (c != '{') refuse("an event is no object");
  cut_event();
  owes_brace_ = true;
  return c;
}

void JsonEvents::cut_event() {
  event_ = "{";
  depth_ = 1, in_string_ = escaped_ = false;
  while (depth_ > 0) {
    const std::string_view ahead = lines_.ahead();
    if (ahead.empty()) refuse("is cut off in an event");
    const size_t n = part_of_event(ahead);
    event_.append(ahead.substr(0, n));
    lines_.take(n);
    if (int64_t(event_.size()) > kLongestEvent) refuse("an event has more than 4 MiB");
  }
  if (const std::string why = (*take_)(event_, lines_.number() + 1); !why.empty())
    refuse("an event is no valid JSON: " + why);
  mark_ = lines_.taken();
}

/// How much of the text belongs to the event, by its brackets; what is between them the library checks.
size_t JsonEvents::part_of_event(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        in_string_ = false;
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      if (++depth_ > kDeepest) refuse("values are nested more than 100 deep");
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      return i + 1;
    }
  }
  return text.size();
}

} // namespace deepgen
