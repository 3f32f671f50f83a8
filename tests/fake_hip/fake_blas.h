// What the fake hipBLASLt and rocBLAS have in common: a product of column-major matrices on the host, whose
// memory is the fake device's.
#pragma once

#include "internal.h"

#include <cstdint>
#include <functional>
#include <string>

namespace fake_hip {

/// hipDataType
enum DataType : int {
  r32f = 0,
  r64f = 1,
  r16f = 2,
  r8i = 3,
  r32i = 10,
  r16bf = 14,
  r8f_e4m3 = 28,
  r8f_e5m2 = 29
};
size_t bytes_of(int type); ///< 0: no such type

struct BlasMatrix {
  void* data = nullptr;
  int type = r32f;
  int64_t rows = 0, columns = 0, ld = 0, stride = 0; ///< as stored: element (i, j) is the (i + j ld)-th
  bool transposed = false;
};

struct BlasCall {
  BlasMatrix a, b, c, d;
  double alpha = 1, beta = 0;
  int64_t batch = 1;
  std::function<double(double sum, int64_t row)> epilogue; ///< may be empty
};

double element(const void* data, int type, int64_t i);

/// Why the matrices are no product, or not all of device memory; empty when all is well.
std::string fault_of(const BlasCall&);
void multiply(const BlasCall&);

/// A complaint of the fake device, and the status of a call that was wrong.
int complain(int status, const std::string& why);

} // namespace fake_hip
