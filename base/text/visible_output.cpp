#include "base/text/visible_output.h"

#include "base/text/text.h"

#include <iostream>
#include <streambuf>

namespace deepgen {
namespace {

/// Hands on what it gets, less the begin of a character whose rest is still to come.
class Filter : public std::streambuf {
public:
  explicit Filter(std::ostream& stream) : stream_(stream), sink_(stream.rdbuf()) { stream.rdbuf(this); }
  ~Filter() override {
    write(pending_);
    stream_.rdbuf(sink_);
  }

private:
  /// Of the bytes at the end that begin a character of UTF-8 and do not end it.
  static size_t unfinished(const std::string& text) {
    for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
      const auto byte = static_cast<unsigned char>(text[text.size() - back]);
      if (byte < 0x80) return 0;
      if (byte < 0xc0) continue;
      const size_t bytes = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return bytes > back ? back : 0;
    }
    return 0;
  }

  bool write(const std::string& text) {
    const std::string out = visible(text);
    return sink_->sputn(out.data(), std::streamsize(out.size())) == std::streamsize(out.size());
  }

  std::streamsize xsputn(const char* data, std::streamsize count) override {
    std::string text = std::move(pending_) + std::string(data, size_t(count));
    const size_t rest = unfinished(text);
    pending_ = text.substr(text.size() - rest);
    text.resize(text.size() - rest);
    return write(text) ? count : 0;
  }

  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }

  int sync() override { return sink_->pubsync(); }

  std::ostream& stream_;
  std::streambuf* sink_;
  std::string pending_;
};

} // namespace

struct VisibleOutput::Streams {
  Filter out{std::cout}, err{std::cerr};
};

VisibleOutput::VisibleOutput() : streams_(std::make_unique<Streams>()) {}
VisibleOutput::~VisibleOutput() = default;

} // namespace deepgen
