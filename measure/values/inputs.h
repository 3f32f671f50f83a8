// Seeded operand values, as stored and dense.
#pragma once

#include "base/problem/gemm.h"

#include <array>
#include <cstddef>

namespace deepgen {

/// Where a buffer begins: at a line of the cache; or as operands of most users do, 16 bytes behind one, which
/// is where glibc's malloc begins blocks that have pages of their own.
enum class Begins { at_line, as_malloc };

/// Pages of zeros. `colour` staggers the start within the page, so that operands of equal size do not contend
/// for the same cache sets: in a program that has run for a while malloc begins blocks anywhere in a page.
class PageBuffer {
public:
  PageBuffer() = default;
  /// Throws Error when memory is short.
  explicit PageBuffer(size_t bytes, int colour = 0, Begins = Begins::at_line);
  ~PageBuffer();
  PageBuffer(PageBuffer&& other) noexcept { swap(other); }
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  char* data() const { return data_; }
  size_t size() const { return size_; }

private:
  void swap(PageBuffer& other) noexcept;
  void* pages_ = nullptr;
  size_t mapped_ = 0, size_ = 0;
  char* data_ = nullptr;
};

/// A, B, C and the epilogue's operands of one problem, of the problem's types: never zeros (which would be
/// fast), never denormals (which would be slow). Scales have a magnitude from [0.5, 2) and either sign, all
/// others are uniform in
/// [-1, 1); of integers, in the whole range, and in [-1000, 1000) for an i32 C. A value depends only on the
/// seed and its place.
struct Inputs {
  PageBuffer a, b, c;
  std::array<PageBuffer, epilogue_op_count> operands; ///< by EpilogueOp
  /// What most values stay between at this step, for sums of K products with alpha 1 and beta 0: were they
  /// mostly beyond, a wrong sum would not show.
  double clamp_low = 0, clamp_high = 0;
  /// What alpha is multiplied by, so that sums of integers lie where the epilogue and D's range matter.
  double unit_alpha = 1;

  Inputs(const Gemm&, uint64_t seed, bool with_c = true);
  const PageBuffer& operand(EpilogueOp op) const { return operands[size_t(op)]; }
};

/// The `index`-th number of a stream, uniform in [-1, 1) with 24 significant bits.
double uniform(uint64_t seed, uint64_t index);

} // namespace deepgen
