// Operands of one call of a kernel on the simulated device: as little aligned as the kernel takes, with gaps
// that no access may touch between rows.
#pragma once

#include "base/kernel/kernel.h"
#include "measure/gpu/cuda_verify.h"
#include "tests/ptx_sim/machine/global_memory.h"

#include <map>
#include <vector>

namespace deepgen::ptx_sim {

/// A row-major operand; steps in elements.
struct Matrix {
  size_t region = 0;
  Type type = Type::f32;
  int64_t rows = 1, columns = 1, ld = 1, batch = 1, stride = 0;
  int64_t lead = 0; ///< bytes of the region before the first element
  /// Of an element in the region's bytes.
  int64_t bytes_at(int64_t entry, int64_t row, int64_t column) const {
    return lead + (entry * stride + row * ld + column) * size_of(type);
  }
};

class Operands {
public:
  Operands(const Kernel&, const cuda::CallCase&, uint64_t seed);

  GlobalMemory memory;
  /// By the argument's name. An operand that is D shares D's region; `before` has what it held.
  std::map<std::string, Matrix> matrices;
  /// The values of an operand before the call, as batch x rows x columns.
  std::map<std::string, std::vector<double>> values;
  std::vector<int32_t> offsets; ///< of groups of rows
  double alpha = 1, beta = 0, clamp_low = 0, clamp_high = 0;

  /// The bytes of the argument of this name.
  std::vector<uint8_t> argument(const Kernel&, const std::string& name) const;
  double element(const Matrix&, int64_t entry, int64_t row, int64_t column) const;
  bool is_untouched(const Matrix&, int64_t entry, int64_t row, int64_t column) const;

private:
  Matrix place(const std::string& name, Type, int64_t rows, int64_t columns, int64_t batch, int64_t align,
               bool padded, bool writable);
  void fill(const std::string& name, const Matrix&, const cuda::Values&);
  void add_steps(const Kernel&, const cuda::CallCase&, uint64_t seed);
  void add_c(const Kernel&, const cuda::CallCase&, uint64_t seed);
};

} // namespace deepgen::ptx_sim
