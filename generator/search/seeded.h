// Randomness that is the same on every host: std::hash and the standard's distributions differ between
// libraries.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace deepgen {

/// FNV-1a.
inline uint64_t fnv1a(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  return h;
}

class Random {
public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// In [0, n); n >= 1. The bias of the remainder is below n / 2^64.
  size_t below(size_t n) { return size_t(engine_() % n); }
  /// In [0, 1).
  double unit() { return double(engine_() >> 11) * 0x1p-53; }

private:
  std::mt19937_64 engine_;
};

} // namespace deepgen
