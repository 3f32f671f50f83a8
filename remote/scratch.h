// A private folder of one worker, which goes with it however it ends.
#pragma once

#include <string>
#include <sys/types.h>

namespace deepgen {

/// In $TMPDIR or /tmp, mode 0700. Its end removes it. A process of its own, which nothing that ends the
/// worker's group or session reaches, removes it when the worker is killed; what both have left is removed by
/// the next worker of this user.
class Scratch {
public:
  Scratch(); ///< throws HostFault when there is no place for it
  ~Scratch();
  Scratch(const Scratch&) = delete;

  const std::string& path() const { return path_; }

private:
  void start_janitor();

  std::string path_;
  int lock_ = -1;  ///< tells the folder of a living worker from an abandoned one
  int alive_ = -1; ///< its other end sees that this process is gone
  pid_t janitor_ = -1;
};

} // namespace deepgen
