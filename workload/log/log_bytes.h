// The bytes of a log, as they come: unpacked where they are gzip or zstd, never all in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace deepgen {

constexpr int64_t kMostLogBytes = int64_t(256) << 30; ///< unpacked
constexpr size_t kLongestLine = size_t(1) << 20;

class LogBytes {
public:
  virtual ~LogBytes() = default;
  /// Fills part of the buffer; 0 at the end. Throws Error when the file cannot be read, or is damaged or cut
  /// off.
  virtual size_t read(char* into, size_t size) = 0;
};

/// A regular file. Throws Error.
std::unique_ptr<LogBytes> open_log(const std::string& path);
/// Of what is in memory, which must outlive it.
std::unique_ptr<LogBytes> log_of(std::string_view bytes, const std::string& name);

/// Lines within bounds, and a look at what comes first.
class LogLines {
public:
  explicit LogLines(LogBytes& bytes);

  /// The first bytes, blanks left out, before any line is taken.
  std::string_view beginning();
  /// False at the end. Valid until the next call, without its line break; of a longer line than kLongestLine
  /// the beginning, and then was_cut().
  bool next(std::string_view& line);
  bool was_cut() const { return cut_; }
  int64_t number() const { return number_; } ///< of the last line, from 1
  /// The next byte, or -1: for what is no lines. Counts lines as well.
  int byte() {
    if (at_ == end_ && !fill()) return -1;
    const char c = buffer_[at_++];
    number_ += c == '\n';
    return static_cast<unsigned char>(c);
  }
  /// What has been read ahead, for what is no lines; empty at the end. Valid until the next call of anything.
  std::string_view ahead();
  /// Takes so many bytes of ahead(). Counts lines as well.
  void take(size_t count);
  int64_t taken() const { return before_ + int64_t(at_); } ///< bytes

private:
  bool fill();
  size_t read_more();

  LogBytes& bytes_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0, chunk_;
  int64_t number_ = 0, before_ = 0;
  bool cut_ = false;
};

} // namespace deepgen
