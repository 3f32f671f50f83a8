// What a worker and whoever started it say to each other. The worker speaks first: a line that it has
// started, and a dot on a line of its own every few seconds, so that a dead host is told from a busy one. It
// then gets one bundle, a Request, and answers with one, a Response.
#pragma once

#include "remote/bundle.h"

namespace deepgen {

/// What a worker of this build is, as its first line says it.
struct Started {
  std::string id;        ///< of the program: kernels or measurements of another one are not the same
  std::string node, job; ///< where it runs; the job is a batch system's, often empty
  int64_t pid = 0;

  std::string line() const; ///< with its end
  /// Nothing when the line is another's: launchers greet, too.
  static std::optional<Started> parse(const std::string& line);
};

/// Every so many seconds a worker says that it is there.
constexpr double kBeatSeconds = 5;
constexpr const char* kBeat = ".\n";

struct Request {
  std::string id;                   ///< refused by a program that is another
  std::vector<std::string> command; ///< of the program, without its name; paths are those of the files
  std::vector<std::string> outputs; ///< files that it writes
  std::string arch;                 ///< of the kernels
  std::string device;               ///< to measure on; of another name it is refused. Empty: none is needed

  Json to_json() const;
  static Request from_json(const Json&, const std::string& where);
};

struct Response {
  /// "done": the command ended with `exit`. "refused": it was not started, and another try would end so, too.
  /// "failed": what came was no request, or the host had no room for it.
  std::string status = "done";
  std::string text; ///< what the command said, or why not
  int exit = 0;     ///< 128 + signal for one that was killed

  Json to_json() const;
  static Response from_json(const Json&, const std::string& where);
};

} // namespace deepgen
