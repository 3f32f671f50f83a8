// One reader of files, for the fuzzer: what it accepts must survive being written and read again.
#pragma once

#include "base/text/error.h"

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

namespace deepgen::fuzz {

/// All targets are in one program; `--target=<name>` chooses.
struct Target {
  Target(const char* name, void (*run)(const std::string& input));
  const char* name;
  void (*run)(const std::string& input);
  Target* next; ///< of all that there are
};

/// Aborts, which the fuzzer takes for a finding.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::cerr << "fuzz: " << what << "\n";
  std::abort();
}

/// A kernel file with the digest and the hashes that its bytes should have: else no changed one would be read
/// at all.
std::string resealed(const std::string& input);

/// An Error is how input is refused; any other exception ends the program.
template <typename Read, typename Write>
void round_trip(const std::string& input, Read read, Write write) {
  std::optional<decltype(read(input))> value;
  try {
    value = read(input);
  } catch (const Error& e) {
    require(e.what()[0] != 0, "an error without a message");
    return;
  }
  const std::string once = write(*value);
  require(write(read(once)) == once, "what was accepted changes when it is written and read again");
}

} // namespace deepgen::fuzz
