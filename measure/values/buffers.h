// Operands that notice a stray access: guard pages before and behind, canaries in every byte between the
// elements.
#pragma once

#include "base/problem/gemm.h"

#include <string>

namespace deepgen {

/// A row-major operand with gaps, sizes in elements.
struct View {
  int64_t rows = 1, columns = 1, ld = 1, batch = 1, stride = 1;
  int64_t extent() const { return (batch - 1) * stride + (rows - 1) * ld + columns; }
  static View dense(int64_t rows, int64_t columns, int64_t batch) {
    return {rows, columns, columns, batch, rows * columns};
  }
};

/// Which guard pages touch the operand. Vector code runs over the end more often than over the start.
enum class Guard { behind, in_front };

/// 32-bit pattern that is a NaN as f32, and repeated as f64; no arithmetic yields it.
inline constexpr uint32_t canary = 0x7ff8deadu;

class GuardedMatrix {
public:
  /// With `misaligned`, the base address is a multiple of the element's size but of no vector's. `name` must
  /// outlive the matrix: a report of a fault in this matrix's pages quotes it.
  GuardedMatrix(const char* name, Type type, const View& view, Guard guard, bool misaligned);
  ~GuardedMatrix();
  GuardedMatrix(GuardedMatrix&& other) noexcept;
  GuardedMatrix(const GuardedMatrix&) = delete;
  GuardedMatrix& operator=(const GuardedMatrix&) = delete;

  char* data() const { return data_; }
  const View& view() const { return view_; }
  char* row(int64_t entry, int64_t r) const { return data_ + (entry * view_.stride + r * view_.ld) * bytes_; }

  void fill(const char* dense); ///< elements from a dense array, canaries elsewhere
  void poison();                ///< canaries everywhere: a value that is read, or not written, shows as NaN
  void make_read_only();        ///< a write then faults
  /// The first byte outside the elements that changed, in words; empty when none did.
  std::string damage() const;

private:
  std::string damage_between(const char* begin, const char* end) const;
  View view_;
  int64_t bytes_ = 4; ///< of an element
  char *mapping_ = nullptr, *first_ = nullptr, *last_ = nullptr,
       *data_ = nullptr; ///< [first_, last_): accessible
  size_t mapped_ = 0;
  int region_ = -1;
};

/// Scratch for a kernel: 64-byte aligned, with the guard behind the last full cache line. One for all calls
/// of a kernel, poisoned ahead of each: to map, fault in and unmap it costs more than most calls.
class GuardedWorkspace {
public:
  explicit GuardedWorkspace(int64_t bytes);
  void poison() { matrix_.poison(); }
  void* data() const { return bytes_ ? matrix_.data() : nullptr; }
  std::string damage() const { return matrix_.damage(); }

private:
  int64_t bytes_;
  GuardedMatrix matrix_;
};

} // namespace deepgen
