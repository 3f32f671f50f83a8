// Size: the sizes of a problem that may be known only at a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace deepgen {

enum class Size { m, n, k, batch }; ///< as fields of Gemm, and as slots of kernels: "m", "n", "k", "batch"
inline constexpr size_t size_count = 4;
inline constexpr std::array<const char*, size_count> size_names = {"m", "n", "k", "batch"};

/// Those of one call.
struct Sizes {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool operator==(const Sizes&) const = default;

  int64_t operator[](Size size) const { return const_cast<Sizes&>(*this)[size]; }
  int64_t& operator[](Size size) {
    return size == Size::m ? m : size == Size::n ? n : size == Size::k ? k : batch;
  }
};

/// All sizes between two, each for itself; of a fixed size both are that.
struct SizeSpan {
  Sizes least, most;
  bool operator==(const SizeSpan&) const = default;

  /// 0 is in every range.
  bool holds(const Sizes& sizes) const {
    for (size_t i = 0; i < size_count; ++i)
      if (const int64_t x = sizes[Size(i)]; x && (x < least[Size(i)] || x > most[Size(i)])) return false;
    return true;
  }
};

/// A number that follows from a call's sizes: factor * the product of ceil(size / step) over those whose
/// step is not 0. So grids, tiles and bytes of scratch are told where a size is a range.
struct SizeRule {
  int64_t factor = 0;                      ///< 0: there is no rule, the number is fixed
  std::array<int64_t, size_count> steps{}; ///< by Size
  bool operator==(const SizeRule&) const = default;

  bool exists() const { return factor != 0; }
  int64_t at(const Sizes& sizes) const {
    int64_t value = factor;
    for (size_t i = 0; i < size_count; ++i)
      if (steps[i]) value *= (sizes[Size(i)] + steps[i] - 1) / steps[i];
    return value;
  }
};

} // namespace deepgen
