// How much a test at random does, and with which seed, where somebody wants more of it.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace deepgen {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 0) : otherwise;
}

} // namespace deepgen
