#include "workload/log/log_bytes.h"

#include "base/text/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

namespace deepgen {
namespace {

constexpr size_t kBuffer = size_t(1) << 18, kFirstChunk = size_t(1) << 13;

[[noreturn]] void fail(const std::string& name, const std::string& why, const std::string& remedy) {
  throw Error("cannot read log", name, why, remedy);
}

class FileBytes : public LogBytes {
public:
  explicit FileBytes(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat info = {};
    std::string why;
    if (fd_ < 0 || fstat(fd_, &info) != 0)
      why = std::strerror(errno);
    else if (!S_ISREG(info.st_mode))
      why = "it is no regular file";
    if (why.empty()) return;
    if (fd_ >= 0) close(fd_);
    fail(path_, why, "name a regular file that can be read");
  }
  ~FileBytes() override { close(fd_); }
  FileBytes(const FileBytes&) = delete;

  size_t read(char* into, size_t size) override {
    while (true) {
      const ssize_t n = ::read(fd_, into, size);
      if (n >= 0) return size_t(n);
      if (errno != EINTR)
        fail(path_, std::strerror(errno),
             "check the disk or the network that it lies on; the file itself may be good");
    }
  }

private:
  std::string path_;
  int fd_;
};

class MemoryBytes : public LogBytes {
public:
  explicit MemoryBytes(std::string_view bytes) : rest_(bytes) {}
  size_t read(char* into, size_t size) override {
    const size_t n = rest_.copy(into, size);
    rest_.remove_prefix(n);
    return n;
  }

private:
  std::string_view rest_;
};

/// What packed bytes have in common: a buffer of them, and an end that must be one.
class Packed : public LogBytes {
public:
  Packed(std::unique_ptr<LogBytes> from, std::string name)
      : from_(std::move(from)), name_(std::move(name)), buffer_(kBuffer) {}

protected:
  /// False at the end of the file.
  bool refill() {
    at_ = 0, end_ = from_->read(buffer_.data(), buffer_.size());
    return end_ > 0;
  }
  [[noreturn]] void cut_off() const {
    fail(name_, "it is packed, and ends before its end",
         "unpack what can be, and pass that: gzip -dc, zstd -dc");
  }
  [[noreturn]] void damaged(const char* why) const {
    fail(name_, std::string("it is packed, and damaged: ") + why, "get the log again");
  }

  std::unique_ptr<LogBytes> from_;
  std::string name_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;
  bool inside_ = false; ///< a member or frame is open
};

class GzipBytes : public Packed {
public:
  GzipBytes(std::unique_ptr<LogBytes> from, const std::string& name) : Packed(std::move(from), name) {
    constexpr int kGzipAlone = 15 + 16;
    if (inflateInit2(&stream_, kGzipAlone) != Z_OK) throw HostFault("cannot unpack a log", name, "no memory");
  }
  ~GzipBytes() override { inflateEnd(&stream_); }

  size_t read(char* into, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(into), stream_.avail_out = uInt(size);
    while (stream_.avail_out == size) {
      if (at_ == end_ && !refill()) {
        if (inside_) cut_off();
        return 0;
      }
      inside_ = true;
      stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data() + at_), stream_.avail_in = uInt(end_ - at_);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      at_ = end_ - stream_.avail_in;
      if (status == Z_STREAM_END) { // another member may follow
        inside_ = false;
        inflateReset(&stream_);
      } else if (status == Z_MEM_ERROR) {
        throw HostFault("cannot unpack a log", name_, "no memory");
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        damaged(stream_.msg ? stream_.msg : "it is no gzip");
      }
    }
    return size - stream_.avail_out;
  }

private:
  z_stream stream_ = {};
};

class ZstdBytes : public Packed {
public:
  ZstdBytes(std::unique_ptr<LogBytes> from, const std::string& name)
      : Packed(std::move(from), name), stream_(ZSTD_createDStream()) {
    if (!stream_) throw HostFault("cannot unpack a log", name, "no memory");
  }
  ~ZstdBytes() override { ZSTD_freeDStream(stream_); }

  size_t read(char* into, size_t size) override {
    ZSTD_outBuffer out = {into, size, 0};
    while (out.pos == 0) {
      if (at_ == end_ && !flushing_ && !refill()) {
        if (inside_) cut_off();
        return 0;
      }
      ZSTD_inBuffer in = {buffer_.data(), end_, at_};
      const size_t status = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(status)) damaged(ZSTD_getErrorName(status));
      at_ = in.pos;
      inside_ = status != 0;
      flushing_ = out.pos == size && status != 0; // there may be more of what it has taken in already
    }
    return out.pos;
  }

private:
  ZSTD_DStream* stream_;
  bool flushing_ = false;
};

/// Gives back what was looked at.
class Peeked : public LogBytes {
public:
  explicit Peeked(std::unique_ptr<LogBytes> from) : from_(std::move(from)) {
    while (size_ < sizeof first_) {
      const size_t n = from_->read(first_ + size_, sizeof first_ - size_);
      if (!n) break;
      size_ += n;
    }
  }
  bool starts_with(std::string_view magic) const {
    return std::string_view(first_, size_).starts_with(magic);
  }
  size_t read(char* into, size_t size) override {
    if (at_ == size_) return from_->read(into, size);
    const size_t n = std::min(size, size_ - at_);
    std::copy_n(first_ + at_, n, into);
    at_ += n;
    return n;
  }

private:
  std::unique_ptr<LogBytes> from_;
  char first_[4] = {};
  size_t at_ = 0, size_ = 0;
};

class Bounded : public LogBytes {
public:
  Bounded(std::unique_ptr<LogBytes> from, std::string name)
      : from_(std::move(from)), name_(std::move(name)) {}
  size_t read(char* into, size_t size) override {
    const size_t n = from_->read(into, size);
    total_ += int64_t(n);
    if (total_ > kMostLogBytes) fail(name_, "it has more than 256 GiB", "pass a part of it");
    return n;
  }

private:
  std::unique_ptr<LogBytes> from_;
  std::string name_;
  int64_t total_ = 0;
};

std::unique_ptr<LogBytes> unpacked(std::unique_ptr<LogBytes> from, const std::string& name) {
  auto peeked = std::make_unique<Peeked>(std::move(from));
  std::unique_ptr<LogBytes> bytes;
  if (peeked->starts_with("\x1f\x8b"))
    bytes = std::make_unique<GzipBytes>(std::move(peeked), name);
  else if (peeked->starts_with("\x28\xb5\x2f\xfd"))
    bytes = std::make_unique<ZstdBytes>(std::move(peeked), name);
  else
    bytes = std::move(peeked);
  return std::make_unique<Bounded>(std::move(bytes), name);
}

} // namespace

std::unique_ptr<LogBytes> open_log(const std::string& path) {
  return unpacked(std::make_unique<FileBytes>(path), path);
}

std::unique_ptr<LogBytes> log_of(std::string_view bytes, const std::string& name) {
  return unpacked(std::make_unique<MemoryBytes>(bytes), name);
}

LogLines::LogLines(LogBytes& bytes) : bytes_(bytes), chunk_(kFirstChunk) {}

/// Behind what is there. Short logs are many where a fuzzer makes them: chunks grow as the log turns out
/// long.
size_t LogLines::read_more() {
  if (buffer_.size() < end_ + chunk_) buffer_.resize(end_ + chunk_);
  const size_t n = bytes_.read(buffer_.data() + end_, chunk_);
  end_ += n;
  if (n == chunk_) chunk_ = std::min(2 * chunk_, kBuffer);
  return n;
}

bool LogLines::fill() {
  before_ += int64_t(end_);
  at_ = 0, end_ = 0;
  return read_more() > 0;
}

std::string_view LogLines::beginning() {
  constexpr std::string_view kBlanks = " \t\r\n";
  while (true) {
    while (end_ < 4096 && read_more()) {
    }
    while (at_ < end_ && kBlanks.find(buffer_[at_]) != kBlanks.npos) number_ += buffer_[at_++] == '\n';
    if (at_ < end_ || end_ < 4096) break;
    before_ += int64_t(end_), at_ = end_ = 0;
  }
  return {buffer_.data() + at_, end_ - at_};
}

std::string_view LogLines::ahead() {
  if (at_ == end_ && !fill()) return {};
  return {buffer_.data() + at_, end_ - at_};
}

void LogLines::take(size_t count) {
  number_ += std::count(buffer_.begin() + ptrdiff_t(at_), buffer_.begin() + ptrdiff_t(at_ + count), '\n');
  at_ += count;
}

bool LogLines::next(std::string_view& line) {
  cut_ = false;
  size_t from = at_;
  while (true) {
    const void* found = from < end_ ? std::memchr(buffer_.data() + from, '\n', end_ - from) : nullptr;
    if (found) {
      const size_t end = size_t(static_cast<const char*>(found) - buffer_.data());
      line = {buffer_.data() + at_, std::min(end - at_, kLongestLine)};
      cut_ |= end - at_ > kLongestLine;
      at_ = end + 1, ++number_;
      break;
    }
    if (at_ > 0) { // the line's beginning goes to the buffer's
      std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
      before_ += int64_t(at_), end_ -= at_, at_ = 0;
    }
    if (end_ >= kLongestLine + kBuffer) { // what is beyond is not kept
      cut_ = true;
      before_ += int64_t(end_ - kLongestLine), end_ = kLongestLine;
    }
    from = end_;
    if (read_more()) continue;
    if (at_ == end_) return false;
    line = {buffer_.data() + at_, std::min(end_ - at_, kLongestLine)};
    at_ = end_, ++number_;
    break;
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

} // namespace deepgen
