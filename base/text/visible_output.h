// What a tool prints: no text of a file reaches a terminal as more than text.
#pragma once

#include <memory>

namespace deepgen {

/// As long as it lives, what is written to std::cout and std::cerr goes through visible() (base/text/text.h).
/// For main().
class VisibleOutput {
public:
  VisibleOutput();
  ~VisibleOutput();
  VisibleOutput(const VisibleOutput&) = delete;
  VisibleOutput& operator=(const VisibleOutput&) = delete;

private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

} // namespace deepgen
