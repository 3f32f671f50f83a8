// Launched: a launcher's process, its three streams, and its end.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace deepgen {

class Launched {
public:
  /// Throws HostFault when no process can be made. A program that is not there is found out by its end.
  explicit Launched(const std::vector<std::string>& words);
  ~Launched();
  Launched(const Launched&) = delete;

  std::string output; ///< what was read of its standard output, and not taken away
  std::string errors; ///< the end of what it has said on standard error

  /// Sends of `input`, which shrinks, and reads, for at most a slice of Patience. False when its output has
  /// ended. Throws Stopped (attempt.h), with the launcher ended, when this process is to end.
  bool wait(std::string& input);
  /// Closes its input, waits so long, then ends it. How it ended, for people; empty when all was well.
  std::string end(double seconds);

private:
  void read(int& fd, std::string& text, size_t most);
  void write(std::string& input);
  bool has_ended(double seconds);

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1, signals_ = -1;
  int status_ = 0;
};

} // namespace deepgen
