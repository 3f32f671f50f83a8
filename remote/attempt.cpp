#include "remote/attempt.h"

#include "base/files/files.h"
#include "base/files/patience.h"
#include "base/text/sha256.h"
#include "base/text/text.h"
#include "remote/launched.h"

#include <algorithm>
#include <filesystem>

namespace deepgen {
namespace {

constexpr int64_t kMostOfProgram = int64_t(1) << 30;
constexpr const char* kHave = "deepgen.send/1 have";
constexpr const char* kNeed = "deepgen.send/1 need";
constexpr size_t kLongestGreeting = 1 << 16, kMostOfGreetings = 2000;
constexpr double kTearDown = 10; ///< seconds for a launcher to end behind its worker

std::string seconds_text(double seconds) { return std::to_string(int64_t(seconds + 0.5)) + " s"; }

/// The conversation with one worker, as far as it has come.
class Talk {
public:
  explicit Talk(const AttemptOptions& o)
      : o_(o), launched_(o.words), start_(o.start_seconds), run_(o.run_seconds), silence_(o.silence_seconds) {
  }

  Outcome run() {
    while (outcome_.failure.empty() && !outcome_.answer) {
      const bool open = launched_.wait(to_send_);
      if (!launched_.output.empty()) silence_.restart(o_.silence_seconds);
      read();
      if (outcome_.answer || !outcome_.failure.empty()) break;
      if (!open)
        outcome_.failure = "the launcher ended " + std::string(has_started_ ? "without the worker's answer"
                                                                            : "before a worker had started");
      else
        look_at_clocks();
    }
    if (const std::string ended = launched_.end(outcome_.answer ? kTearDown : 0); !outcome_.answer)
      outcome_.failure += ended.empty() ? "" : " (" + ended + ")";
    outcome_.last_words = last_words();
    return std::move(outcome_);
  }

private:
  void look_at_clocks() {
    const bool late = has_started_ ? run_.left() <= 0 : start_.left() <= 0;
    if (late)
      outcome_.failure = has_started_ ? "no answer within " + seconds_text(o_.run_seconds)
                                      : "no worker started within " + seconds_text(o_.start_seconds);
    else if (has_started_ && silence_.left() <= 0)
      outcome_.failure = "no sign of life for " + seconds_text(o_.silence_seconds);
  }

  void read() {
    try {
      while (outcome_.failure.empty() && !outcome_.answer && (in_bundle_ ? read_bundle() : read_line())) {
      }
    } catch (const Stopped&) {
      throw;
    } catch (const Error& e) {
      outcome_.failure = e.what();
    }
  }

  bool read_bundle() {
    const std::optional<size_t> size = bundle_size(launched_.output, "the worker's answer");
    if (!size || launched_.output.size() < *size) return false;
    outcome_.answer = Bundle::parse(launched_.output.substr(0, *size), "the worker's answer");
    return false;
  }

  /// Greetings of launchers and hosts, the worker's first line, dots, or the beginning of the answer.
  bool read_line() {
    const size_t end = launched_.output.find('\n');
    if (end == std::string::npos) {
      if (launched_.output.size() > kLongestGreeting)
        outcome_.failure = "what the launcher says has no lines";
      return false;
    }
    if (has_started_ && launched_.output.starts_with("deepgen.bundle/")) {
      in_bundle_ = true;
      return true;
    }
    const std::string line = launched_.output.substr(0, end);
    launched_.output.erase(0, end + 1);
    if (!has_started_) read_greeting(line);
    return true;
  }

  void read_greeting(const std::string& line) {
    if (line == kNeed && !o_.sent.path.empty()) {
      to_send_ = read_file(o_.sent.path, kMostOfProgram);
    } else if (const auto started = Started::parse(line)) {
      has_started_ = true;
      outcome_.started = *started;
      run_.restart(o_.run_seconds), silence_.restart(o_.silence_seconds);
      if (o_.started) o_.started(*started);
      to_send_ += o_.request;
    } else if (line != kHave) {
      greetings_ += line + "\n";
      if (greetings_.size() > 2 * kMostOfGreetings) greetings_.erase(0, greetings_.size() - kMostOfGreetings);
    }
  }

  std::string last_words() const {
    std::string words = launched_.errors.empty() ? greetings_ : launched_.errors;
    if (words.size() > kMostOfGreetings) words.erase(0, words.size() - kMostOfGreetings);
    while (!words.empty() && words.back() == '\n') words.pop_back();
    return visible(words);
  }

  const AttemptOptions& o_;
  Launched launched_;
  Patience start_, run_, silence_;
  Outcome outcome_;
  std::string to_send_, greetings_;
  bool has_started_ = false, in_bundle_ = false;
};

} // namespace

Sent Sent::program(const std::string& path) {
  const std::string bytes = read_file(path, kMostOfProgram);
  return {path, std::filesystem::path(path).filename().string(), sha256_hex(bytes), int64_t(bytes.size())};
}

std::string Sent::script() const {
  const std::string file = "f=\"$d/" + name + "-" + sha256 + "\"";
  return "d=\"${XDG_CACHE_HOME:-$HOME/.cache}/deepgen/workers\"; " + file + "; if [ -x \"$f\" ]; then echo " +
         quoted(kHave) +
         "; else umask 077; mkdir -p \"$d\" && t=$(mktemp \"$d/.sent-XXXXXX\") || exit 91; "
         "trap 'rm -f \"$t\"' EXIT; trap 'exit 92' TERM INT HUP; echo " +
         quoted(kNeed) + "; head -c " + std::to_string(bytes) +
         " >\"$t\" && [ \"$(sha256sum <\"$t\" | cut -c 1-64)\" = " + sha256 +
         " ] && chmod 700 \"$t\" && mv \"$t\" \"$f\" || exit 91; trap - EXIT TERM INT HUP; fi; exec \"$f\" "
         "worker";
}

std::string quoted(const std::string& word) {
  const char* plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Outcome attempt(const AttemptOptions& o) { return Talk(o).run(); }

} // namespace deepgen
