#include "fake_blas.h"

#include "host_values.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fake_hip {
namespace {

void store(void* data, int type, int64_t i, double x) {
  switch (type) {
  case r64f:
    return put(data, i, x);
  case r16f:
    return put(data, i, _Float16(float(x)));
  case r16bf:
    return put(data, i, bf16(x));
  case r32i:
    return put(data, i, int32_t(x));
  default:
    return put(data, i, float(x));
  }
}

double value(const BlasMatrix& x, int64_t row, int64_t column, int64_t entry) {
  if (x.transposed) std::swap(row, column);
  return element(x.data, x.type, entry * x.stride + row + column * x.ld);
}

std::string fault_of(const char* name, const BlasMatrix& x, int64_t batch) {
  const std::string text = name;
  if (!bytes_of(x.type)) return text + " has a type of number " + std::to_string(x.type);
  if (x.rows < 1 || x.columns < 1 || x.ld < x.rows)
    return text + ": its leading dimension is less than its rows";
  if (batch > 1 && x.stride < x.ld * (x.columns - 1) + x.rows) return text + ": its batch entries overlap";
  void* begin = nullptr;
  size_t size = 0;
  if (!allocation_of(x.data, &begin, &size)) return text + " is not in device memory";
  const auto elements = size_t((batch - 1) * x.stride + (x.columns - 1) * x.ld + x.rows);
  const char* end = static_cast<const char*>(x.data) + elements * bytes_of(x.type);
  return end > static_cast<char*>(begin) + size ? text + " reaches beyond its allocation" : "";
}

} // namespace

size_t bytes_of(int type) {
  switch (type) {
  case r64f:
    return 8;
  case r32f:
  case r32i:
    return 4;
  case r16f:
  case r16bf:
    return 2;
  case r8i:
  case r8f_e4m3:
  case r8f_e5m2:
    return 1;
  default:
    return 0;
  }
}

double element(const void* data, int type, int64_t i) {
  switch (type) {
  case r64f:
    return at<double>(data, i);
  case r16f:
    return double(at<_Float16>(data, i));
  case r16bf: {
    const uint32_t bits = uint32_t(at<uint16_t>(data, i)) << 16;
    return double(at<float>(&bits, 0));
  }
  case r8i:
    return at<int8_t>(data, i);
  case r32i:
    return at<int32_t>(data, i);
  case r8f_e4m3:
    return small_float(at<uint8_t>(data, i), 3, 7);
  case r8f_e5m2:
    return small_float(at<uint8_t>(data, i), 2, 15);
  default:
    return double(at<float>(data, i));
  }
}

std::string fault_of(const BlasCall& x) {
  const auto rows = [](const BlasMatrix& m) { return m.transposed ? m.columns : m.rows; };
  const auto columns = [](const BlasMatrix& m) { return m.transposed ? m.rows : m.columns; };
  if (rows(x.a) != x.d.rows || columns(x.b) != x.d.columns || columns(x.a) != rows(x.b))
    return "the sizes of A, B and D do not fit";
  if (x.c.rows != x.d.rows || x.c.columns != x.d.columns || x.c.type != x.d.type) return "C is not like D";
  for (const auto& [name, matrix] : {std::pair{"A", &x.a}, {"B", &x.b}, {"C", &x.c}, {"D", &x.d}})
    if (const std::string why = fault_of(name, *matrix, x.batch); !why.empty()) return why;
  return "";
}

void multiply(const BlasCall& x) {
  const int64_t depth = x.a.transposed ? x.a.rows : x.a.columns;
  for (int64_t entry = 0; entry < x.batch; ++entry)
    for (int64_t i = 0; i < x.d.rows; ++i)
      for (int64_t j = 0; j < x.d.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) sum += value(x.a, i, k, entry) * value(x.b, k, j, entry);
        sum *= x.alpha;
        if (x.beta != 0) sum += x.beta * value(x.c, i, j, entry);
        if (x.epilogue) sum = x.epilogue(sum, i);
        store(x.d.data, x.d.type, entry * x.d.stride + i + j * x.d.ld, sum);
      }
}

int complain(int status, const std::string& why) {
  state().complaints.push_back(why);
  if (std::getenv("FAKE_HIP_TRACE")) std::fprintf(stderr, "refused: %s\n", why.c_str());
  return status;
}

} // namespace fake_hip
