#include "workload/readers/torch_event.h"

#include "base/json/json.h"

namespace deepgen {
namespace {

constexpr int64_t kMostSize = int64_t(1) << 50;
constexpr size_t kMostDimensions = 8;

/// Hears of every value of an event. Its depth says what it belongs to: 1 the event, 2 "args", 3 a list of
/// them, 4 an item of such a list.
class EventParts {
public:
  explicit EventParts(TorchEvent& event) : e_(event) {}
  std::string why;

  bool null() { return scalar({}); }
  bool boolean(bool) { return scalar({}); }
  bool binary(Json::binary_t&) { return scalar({}); }
  bool number_integer(int64_t n) { return scalar({&n}); }
  bool number_unsigned(uint64_t n) {
    const auto value = int64_t(n);
    return scalar({value < 0 ? nullptr : &value, double(n)});
  }
  bool number_float(double x, const std::string&) { return scalar({nullptr, x}); }
  bool string(std::string& text) { return scalar({nullptr, 0, &text}); }

  bool key(std::string& text) {
    if (depth_ == 1) event_key(text);
    if (depth_ == 2 && in_args_) args_key(text);
    return true;
  }
  bool start_object(size_t) { return start(false); }
  bool start_array(size_t) { return start(true); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    why = error.what();
    return false;
  }

private:
  struct Value {
    const int64_t* integer = nullptr;
    double number = 0;
    const std::string* text = nullptr;
  };

  void event_key(std::string_view text) {
    word_ = text == "cat" ? &e_.category : text == "name" ? &e_.name : nullptr;
    at_duration_ = text == "dur", at_args_ = text == "args";
  }
  void args_key(std::string_view text) {
    lists_ = text == "Input Dims" ? &e_.dims : text == "Input Strides" ? &e_.strides : nullptr;
    words_ = text == "Input type" ? &e_.types : text == "Concrete Inputs" ? &e_.concrete : nullptr;
    at_id_ = text == "External id" || text == "external id";
    if (lists_) *lists_ = {}, lists_->there = true;
    if (words_) words_->clear();
  }

  bool scalar(const Value& value) {
    if (depth_ == 1) {
      if (word_ && value.text) *word_ = *value.text;
      if (at_duration_) e_.duration = value.integer ? double(*value.integer) : value.number;
    } else if (depth_ == 2 && in_args_) {
      if (at_id_) e_.id = value.integer ? *value.integer : 0;
    } else if (depth_ == 3 && in_list_) {
      add_item(value.text, false);
    } else if (depth_ == 4 && in_item_) {
      add_size(value.integer);
    }
    return true;
  }
  void add_item(const std::string* text, bool is_list) {
    if (words_) words_->push_back(text ? *text : std::string());
    if (lists_) lists_->items.push_back({lists_->sizes.size(), 0, is_list});
    in_item_ = lists_ && is_list;
  }
  void add_size(const int64_t* size) {
    SizeLists::Item& item = lists_->items.back();
    item.good = item.good && size && *size >= 0 && *size <= kMostSize && item.count < kMostDimensions;
    if (item.good) lists_->sizes.push_back(*size), ++item.count;
  }

  bool start(bool is_list) {
    if (depth_ == 1) e_.has_args |= in_args_ = at_args_ && !is_list;
    if (depth_ == 2) in_list_ = in_args_ && is_list;
    if (depth_ == 3 && in_list_) add_item(nullptr, is_list);
    if (depth_ == 4 && in_item_) add_size(nullptr);
    ++depth_;
    return true;
  }
  bool end() {
    --depth_;
    in_item_ = in_item_ && depth_ > 3, in_list_ = in_list_ && depth_ > 2, in_args_ = in_args_ && depth_ > 1;
    return true;
  }

  TorchEvent& e_;
  int depth_ = 0;
  bool at_duration_ = false, at_args_ = false, at_id_ = false;
  bool in_args_ = false, in_list_ = false, in_item_ = false;
  std::string* word_ = nullptr;
  SizeLists* lists_ = nullptr;
  std::vector<std::string>* words_ = nullptr;
};

} // namespace

std::string TorchEvent::read(std::string_view text) {
  *this = {};
  EventParts parts(*this);
  Json::sax_parse(text, &parts);
  return parts.why;
}

} // namespace deepgen
