// One try to have something done by a worker behind a launcher.
#pragma once

#include "remote/message.h"

#include <functional>

namespace deepgen {

/// A worker's program that goes to hosts where it is not yet.
struct Sent {
  std::string path;         ///< of the program here; empty: nothing is sent
  std::string name, sha256; ///< what it is called there
  int64_t bytes = 0;

  static Sent program(const std::string& path); ///< throws Error when it cannot be read
  /// What a shell there does: says whether it has the program, else takes it, and becomes it.
  std::string script() const;
};

/// A word as a shell takes it for itself.
std::string quoted(const std::string& word);

struct AttemptOptions {
  std::vector<std::string> words; ///< the launcher and the worker; the first is looked for in PATH
  std::string request;            ///< a bundle
  Sent sent;
  double start_seconds = 0, run_seconds = 0, silence_seconds = 0;
  std::function<void(const Started&)> started = {}; ///< called once
};

struct Outcome {
  std::optional<Bundle> answer; ///< the worker's, whole
  Started started;              ///< empty where none has started
  std::string failure;          ///< why there is no answer
  std::string last_words;       ///< of the launcher
};

/// Nobody waits for what is done: the build was stopped.
struct Stopped : Error {
  using Error::Error;
};

/// Throws Stopped, when the launcher has ended, after a signal that asks this process to end, or when the
/// build that reads this process's messages is gone. Time in which all of it is stopped does not count.
Outcome attempt(const AttemptOptions&);

} // namespace deepgen
