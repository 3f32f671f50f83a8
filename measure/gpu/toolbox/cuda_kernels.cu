// Device side of verification and timing. Compiled to PTX that is committed beside this file, so that
// building DeepGen needs no CUDA; every driver since CUDA 11 compiles it for every GPU since sm_80. After a
// change here, with nvcc 13.0:
//   cmake -P measure/gpu/toolbox/cuda_kernels.cmake
// host_kernels.cpp compiles it for the host too, for devices that take no PTX: all but what times.
#include "measure/gpu/toolbox/cuda_parameters.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

using namespace deepgen::cuda;

namespace {

// Numbered as in base/problem/problem.h; a test compares them.
enum Type { f32, f64, f16, bf16, tf32, e4m3, e5m2, i8, i32 };
using Step = deepgen::EpilogueOp;

__device__ int bytes_of(int type) {
  switch (type) {
  case f64:
    return 8;
  case f16:
  case bf16:
    return 2;
  case e4m3:
  case e5m2:
  case i8:
    return 1;
  default:
    return 4;
  }
}

__device__ double load(uint64_t data, int type, int64_t i) {
  switch (type) {
  case f64:
    return reinterpret_cast<const double*>(data)[i];
  case f16:
    return __half2float(reinterpret_cast<const __half*>(data)[i]);
  case bf16:
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i]);
  case e4m3:
    return float(reinterpret_cast<const __nv_fp8_e4m3*>(data)[i]);
  case e5m2:
    return float(reinterpret_cast<const __nv_fp8_e5m2*>(data)[i]);
  case i8:
    return reinterpret_cast<const int8_t*>(data)[i];
  case i32:
    return reinterpret_cast<const int32_t*>(data)[i];
  default:
    return reinterpret_cast<const float*>(data)[i];
  }
}

/// The bits of `x` rounded to `type`, in the low bytes.
__device__ uint64_t encode(int type, double x) {
  switch (type) {
  case f64:
    return __double_as_longlong(x);
  case f16:
    return __half_as_ushort(__double2half(x));
  case bf16:
    return __bfloat16_as_ushort(__double2bfloat16(x));
  case e4m3:
    return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  case e5m2:
    return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
  case i8:
    return uint8_t(int8_t(fmin(fmax(rint(x), -128.0), 127.0)));
  case i32:
    return uint32_t(int32_t(rint(x)));
  default:
    return __float_as_uint(float(x));
  }
}

__device__ void store_bits(uint64_t data, int type, int64_t i, uint64_t bits) {
  switch (bytes_of(type)) {
  case 8:
    reinterpret_cast<uint64_t*>(data)[i] = bits;
    break;
  case 4:
    reinterpret_cast<uint32_t*>(data)[i] = uint32_t(bits);
    break;
  case 2:
    reinterpret_cast<uint16_t*>(data)[i] = uint16_t(bits);
    break;
  default:
    reinterpret_cast<uint8_t*>(data)[i] = uint8_t(bits);
  }
}

__device__ uint64_t load_bits(uint64_t data, int type, int64_t i) {
  switch (bytes_of(type)) {
  case 8:
    return reinterpret_cast<const uint64_t*>(data)[i];
  case 4:
    return reinterpret_cast<const uint32_t*>(data)[i];
  case 2:
    return reinterpret_cast<const uint16_t*>(data)[i];
  default:
    return reinterpret_cast<const uint8_t*>(data)[i];
  }
}

__device__ int64_t thread_index() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ int64_t thread_count() { return int64_t(gridDim.x) * blockDim.x; }

/// Of the `i`-th element in dense order.
__device__ int64_t offset_of(const Array& x, int64_t i) {
  const int64_t row = i / x.columns;
  return row / x.rows * x.stride + row % x.rows * x.ld + i % x.columns;
}
__device__ int64_t count_of(const Array& x) { return x.batch * x.rows * x.columns; }

/// splitmix64
__device__ uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

__device__ uint64_t value_bits(const Array& x, const Values& v, int64_t i) {
  const double u = double(int64_t(mix(v.seed * 0x2545f4914f6cdd1du + uint64_t(i)) >> 40)) * 0x1p-23 - 1.0;
  return encode(x.type, v.centre + v.amplitude * u);
}

__device__ void report(Finding* f, uint64_t place) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&f->count), 1ull);
  atomicMin(reinterpret_cast<unsigned long long*>(&f->place), static_cast<unsigned long long>(place));
}

/// The reference's value of one element, and the error that a correct kernel may make.
struct Expected {
  double x, tolerance;
};

__device__ void add(Expected& e, double y, double u) {
  e.tolerance += 2 * u * (fabs(e.x) + fabs(y));
  e.x += y;
}
__device__ void scale(Expected& e, double y, double u) {
  e.x *= y;
  e.tolerance = e.tolerance * fabs(y) + 2 * u * fabs(e.x);
}
/// `slope`: the function's steepest.
__device__ void apply(Expected& e, double value, double slope, double u) {
  e.tolerance = slope * e.tolerance + 32 * u * fmax(fabs(e.x), fabs(value));
  e.x = value;
}

__device__ double array_value(const Array& x, int64_t entry, int64_t row, int64_t column) {
  return load(x.data, x.type, entry * x.stride + row * x.ld + column);
}

/// Of the `i`-th step for one element of D; of a step that has none: 0.
__device__ double operand_value(const EpilogueParameters& p, int i, int64_t entry, int64_t row,
                                int64_t column) {
  const Array& y = p.operands[i];
  return y.data ? array_value(y, entry, row, y.columns == 1 ? 0 : column) : 0;
}

/// `y`: the value of its operand.
__device__ void run_step(int step, const EpilogueParameters& p, double y, double u, Expected& e) {
  const double x = e.x;
  switch (Step(step)) {
  case Step::bias:
  case Step::bias_row:
  case Step::residual:
    return add(e, y, u);
  case Step::multiply:
  case Step::scale_a:
  case Step::scale_b:
  case Step::scale_row:
  case Step::scale_col:
  case Step::scale_d:
    return scale(e, y, u);
  case Step::relu:
    e.x = fmax(x, 0.0);
    return;
  case Step::prelu: // x may be on either side of 0
    e.x = x > 0 ? x : x * y;
    e.tolerance = e.tolerance * fmax(1.0, fabs(y)) + 2 * u * fabs(e.x);
    return;
  case Step::gelu:
    return apply(e, 0.5 * x * erfc(-x * 0.70710678118654752440), 1.13, u);
  case Step::gelu_tanh:
    return apply(e, 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))), 1.13, u);
  case Step::silu:
    return apply(e, x / (1 + exp(-x)), 1.1, u);
  case Step::sigmoid:
    return apply(e, 1 / (1 + exp(-x)), 0.25, u);
  case Step::clamp:
    e.x = fmin(fmax(x, p.clamp_low), p.clamp_high);
    return;
  }
}

/// alpha * x + beta * c modulo 2^32, as i32 arithmetic gives it.
__device__ double wrapped(const EpilogueParameters& p, double x, double c) {
  const uint64_t sum =
      uint64_t(int64_t(p.alpha)) * uint64_t(int64_t(x)) + uint64_t(int64_t(p.beta)) * uint64_t(int64_t(c));
  return int32_t(uint32_t(sum));
}

/// alpha times sum `at`.
__device__ Expected scaled_sum(const CompareParameters& q, int64_t at) {
  const double alpha = q.epilogue.alpha, magnitude = reinterpret_cast<const float*>(q.magnitude)[at];
  return {alpha * reinterpret_cast<const double*>(q.product)[at], fabs(alpha) * q.tolerance.sum * magnitude};
}

__device__ Expected product_of(const Expected& e, const Expected& up, double u) {
  const double x = e.x * up.x;
  return {x, fabs(up.x) * e.tolerance + (fabs(e.x) + e.tolerance) * up.tolerance + 2 * u * fabs(x)};
}

/// `at`: number of the element among the rows that are checked.
__device__ Expected expected_value(const CompareParameters& q, int64_t at, int64_t entry, int64_t row,
                                   int64_t column) {
  const EpilogueParameters& p = q.epilogue;
  const Tolerance& t = q.tolerance;
  const double c = p.beta == 0 ? 0 : array_value(p.c, entry, row, column);
  if (q.d.type == i32) return {wrapped(p, reinterpret_cast<const double*>(q.product)[at], c), 0};
  const bool gated = p.gate >= 0;
  if (gated) at += at / q.d.columns * q.d.columns;
  Expected e = scaled_sum(q, at);
  for (int i = gated ? -2 : -1; i < p.step_count; ++i) {
    if (i == -1) {
      if (gated) e = product_of(e, scaled_sum(q, at + q.d.columns), t.epilogue);
      e.x += p.beta * c, e.tolerance += 8 * t.epilogue * fabs(p.beta * c);
    } else if (i < 0) {
      run_step(p.gate, p, 0, t.epilogue, e);
    } else {
      run_step(p.steps[i], p, operand_value(p, i, entry, row, column), t.epilogue, e);
    }
  }
  if (q.d.type == i8) { // the tolerance may move the value over a tie
    e.x = fmin(fmax(e.x, -128.0), 127.0);
    e.tolerance += 0.5;
  } else {
    e.tolerance += t.output * (fabs(e.x) + e.tolerance) + t.smallest;
  }
  return e;
}

/// |found - expected| in tolerances.
__device__ double error_of(double found, const Expected& e, const Tolerance& t) {
  if (t.largest > 0 && isinf(found) && fabs(e.x) + e.tolerance >= t.largest && (found > 0) == (e.x > 0))
    return 0;
  if (found == e.x) return 0;
  const double error = fabs(found - e.x) / e.tolerance; // infinity for an exact type
  return isnan(error) ? INFINITY : error;
}

} // namespace

extern "C" __global__ void fill(Array x, Values v) {
  for (int64_t i = thread_index(); i < count_of(x); i += thread_count())
    store_bits(x.data, x.type, offset_of(x, i), value_bits(x, v, i));
}

/// Finds elements that `fill` did not write: a kernel changed its input.
extern "C" __global__ void check_values(Array x, Values v, Finding* finding) {
  for (int64_t i = thread_index(); i < count_of(x); i += thread_count())
    if (load_bits(x.data, x.type, offset_of(x, i)) != value_bits(x, v, i)) report(finding, uint64_t(i));
}

/// Finds bytes of [begin, end) that belong to no element and hold no canary; `place` is relative to `begin`.
/// A warp for each gap behind a row; all threads for what lies before the first row and behind the last,
/// where there may be rows of nobody.
extern "C" __global__ void check_gaps(Array x, uint64_t begin, uint64_t end, Finding* finding) {
  const int64_t rows = x.batch * x.rows, row_bytes = x.columns * bytes_of(x.type);
  const auto start_of = [&](int64_t row) {
    return x.data + uint64_t((row / x.rows * x.stride + row % x.rows * x.ld) * bytes_of(x.type));
  };
  const auto check = [&](uint64_t from, uint64_t to, int64_t first, int64_t step) {
    for (uint64_t at = from + uint64_t(first); at < to; at += uint64_t(step))
      if (*reinterpret_cast<const uint8_t*>(at) != canary_byte) report(finding, at - begin);
  };
  for (int64_t row = thread_index() / 32; row + 1 < rows; row += thread_count() / 32)
    check(start_of(row) + uint64_t(row_bytes), start_of(row + 1), threadIdx.x % 32, 32);
  check(begin, x.data, thread_index(), thread_count());
  check(rows ? start_of(rows - 1) + uint64_t(row_bytes) : x.data, end, thread_index(), thread_count());
}

#ifdef __CUDACC__
/// 32 x 32 values a block of 16 x 16 threads; blockIdx.y is the block of rows, blockIdx.x that of columns.
extern "C" __global__ void __launch_bounds__(256) product(ProductParameters p) {
  constexpr int kStep = 16;
  __shared__ double a[kStep][block_rows + 1], b[kStep][block_rows + 1];
  const int64_t per_entry = (p.m + block_rows - 1) / block_rows;
  const int64_t block = reinterpret_cast<const int64_t*>(p.blocks)[blockIdx.y];
  const int64_t entry = block / per_entry, row0 = block % per_entry * block_rows;
  const int64_t column0 = int64_t(blockIdx.x) * block_rows;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  double sum[2][2] = {}, a_norm[2] = {}, b_norm[2] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += kStep) {
    for (int i = threadIdx.x; i < kStep * block_rows;
         i += 256) { // the neighbouring thread loads what lies beside it
      const int ak = p.a_k == 1 ? i % kStep : i / block_rows, ar = p.a_k == 1 ? i / kStep : i % block_rows;
      const int bk = p.b_k == 1 ? i % kStep : i / block_rows, bc = p.b_k == 1 ? i / kStep : i % block_rows;
      const bool a_in = k0 + ak < p.k && row0 + ar < p.m, b_in = k0 + bk < p.k && column0 + bc < p.n;
      a[ak][ar] =
          a_in ? load(p.a, p.a_type, entry * p.a_entry + (row0 + ar) * p.a_row + (k0 + ak) * p.a_k) : 0;
      b[bk][bc] =
          b_in ? load(p.b, p.b_type, entry * p.b_entry + (column0 + bc) * p.b_column + (k0 + bk) * p.b_k) : 0;
    }
    __syncthreads();
    for (int k = 0; k < kStep; ++k)
      for (int i = 0; i < 2; ++i) {
        const double x = a[k][ty + 16 * i], y = b[k][tx + 16 * i];
        a_norm[i] += x * x, b_norm[i] += y * y;
        for (int j = 0; j < 2; ++j) sum[i][j] += x * b[k][tx + 16 * j];
      }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      const int64_t column = column0 + tx + 16 * j, row = ty + 16 * i;
      if (column >= p.n || row0 + row >= p.m) continue;
      const int64_t at = (int64_t(blockIdx.y) * block_rows + row) * p.n + column;
      reinterpret_cast<double*>(p.product)[at] = sum[i][j];
      reinterpret_cast<float*>(p.magnitude)[at] = float(sqrt(a_norm[i]) * sqrt(b_norm[j]));
    }
}

#endif

/// Holds the checked rows of D against the reference. With `place`, describes that element (in dense order)
/// alone.
extern "C" __global__ void compare(CompareParameters q) {
  const Array& d = q.d;
  Finding* finding = reinterpret_cast<Finding*>(q.result);
  const int64_t per_entry = (d.rows + block_rows - 1) / block_rows;
  float worst = 0;
  for (int64_t at = thread_index(); at < q.block_count * block_rows * d.columns; at += thread_count()) {
    const int64_t slot = at / (block_rows * d.columns),
                  block = reinterpret_cast<const int64_t*>(q.blocks)[slot];
    const int64_t entry = block / per_entry, column = at % d.columns;
    const int64_t row = block % per_entry * block_rows + at / d.columns % block_rows;
    const int64_t place = (entry * d.rows + row) * d.columns + column;
    if (row >= d.rows || (q.place >= 0 && place != q.place)) continue;
    const Expected e = expected_value(q, at, entry, row, column);
    const double found = array_value(d, entry, row, column), error = error_of(found, e, q.tolerance);
    worst = fmaxf(worst, float(fmin(error, 1e30)));
    if (q.place >= 0)
      finding->found = found, finding->expected = e.x, finding->tolerance = e.tolerance;
    else if (error > 1)
      report(finding, uint64_t(place));
  }
  atomicMax(&finding->worst, __float_as_uint(worst)); // floats >= 0 order as their bits
}

/// Finds elements that hold the canary, for the rows that `compare` does not look at. To integers it is a
/// value, -1: of these a run of 64 bytes counts, which is no result by chance. Columns that are left out show
/// in the rows that are compared.
extern "C" __global__ void check_written(Array d, Finding* finding) {
  const uint64_t untouched = ~uint64_t(0) >> (64 - 8 * bytes_of(d.type));
  const int64_t count = count_of(d), wanted = d.type == i8 || d.type == i32 ? 64 / bytes_of(d.type) : 1;
  for (int64_t i = thread_index(); i < count; i += thread_count()) {
    const int64_t run = wanted < count ? wanted : count, first = i < count - run ? i : count - run;
    bool written = false;
    for (int64_t j = 0; j < run && !written; ++j)
      written = load_bits(d.data, d.type, offset_of(d, first + j)) != untouched;
    if (!written) report(finding, uint64_t(i));
  }
}

#ifdef __CUDACC__
/// Keeps every multiprocessor busy for some time and reads its clock.
extern "C" __global__ void spin(ClockReading* reading, uint64_t nanoseconds) {
  uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  const long long cycles = clock64();
  float x = float(threadIdx.x), y = 1.0f;
  do {
    for (int i = 0; i < 256; ++i) x = x * 0.999f + 0.5f, y = y * 0.998f + x;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  const long long passed = clock64() - cycles;
  if (blockIdx.x == 0 && threadIdx.x == 0) *reading = {uint64_t(passed), now - start};
  if (x + y == -1.0f) reading->cycles = 0; // never, but the sums are needed
}

/// Reads a buffer once, with four loads of every thread under way at a time.
extern "C" __global__ void __launch_bounds__(256) read_all(const uint4* data, int64_t count, uint32_t* sink) {
  constexpr int kUnder = 4;
  uint32_t sum = 0;
  const auto add = [&](const uint4& x) { sum ^= x.x ^ x.y ^ x.z ^ x.w; };
  const int64_t step = thread_count();
  int64_t i = thread_index();
  for (; i + (kUnder - 1) * step < count; i += kUnder * step) {
    uint4 x[kUnder];
    for (int j = 0; j < kUnder; ++j) x[j] = __ldcs(data + i + j * step);
    for (int j = 0; j < kUnder; ++j) add(x[j]);
  }
  for (; i < count; i += step) add(__ldcs(data + i));
  if (sum == 0x12345678u) *sink = sum; // hardly ever
}
#endif

/// Gate and steps of an epilogue in f32, for a vendor library that lacks them: D = steps(alpha * source),
/// where alpha is 1 unless the product was left in integers.
extern "C" __global__ void epilogue(Array source, Array d, EpilogueParameters p) {
  for (int64_t i = thread_index(); i < count_of(d); i += thread_count()) {
    const int64_t line = i / d.columns, entry = line / d.rows, row = line % d.rows, column = i % d.columns;
    float x = float(p.alpha) * float(array_value(source, entry, row, column));
    for (int s = p.gate < 0 ? 0 : -1; s < p.step_count; ++s) {
      const float y = s < 0 ? 0 : float(operand_value(p, s, entry, row, column));
      switch (Step(s < 0 ? p.gate : p.steps[s])) {
      case Step::bias:
      case Step::bias_row:
      case Step::residual:
        x += y;
        break;
      case Step::multiply:
      case Step::scale_a:
      case Step::scale_b:
      case Step::scale_row:
      case Step::scale_col:
      case Step::scale_d:
        x *= y;
        break;
      case Step::relu:
        x = fmaxf(x, 0.0f);
        break;
      case Step::prelu:
        x = x > 0 ? x : x * y;
        break;
      case Step::gelu:
        x = 0.5f * x * erfcf(-x * 0.70710678f);
        break;
      case Step::gelu_tanh:
        x = 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
        break;
      case Step::silu:
        x = x / (1 + __expf(-x));
        break;
      case Step::sigmoid:
        x = 1 / (1 + __expf(-x));
        break;
      case Step::clamp:
        x = fminf(fmaxf(x, float(p.clamp_low)), float(p.clamp_high));
        break;
      }
      if (s < 0) x *= float(p.alpha) * float(array_value(source, entry, row, column + d.columns));
    }
    store_bits(d.data, d.type, offset_of(d, i), encode(d.type, x));
  }
}

#ifdef __CUDACC__
/// The gate silu, gelu_tanh or sigmoid of a vendor's product alone, for f16 and bf16 in rows of whole
/// vectors: what such a library's user would write, bound by memory.
extern "C" __global__ void __launch_bounds__(256) gate_rows(Array source, Array d, int32_t gate) {
  const uint32_t vectors = uint32_t(d.columns / 8), step = uint32_t(thread_count());
  const auto value = [&](uint16_t bits) {
    return d.type == f16 ? __half2float(__ushort_as_half(bits))
                         : __bfloat162float(__ushort_as_bfloat16(bits));
  };
  for (uint32_t i = uint32_t(thread_index()); i < uint32_t(d.batch * d.rows) * vectors; i += step) {
    const uint32_t line = i / vectors, column = 8 * (i - line * vectors);
    const uint16_t* from =
        reinterpret_cast<const uint16_t*>(source.data) + int64_t(line) * 2 * d.columns + column;
    uint4 g = *reinterpret_cast<const uint4*>(from), u = *reinterpret_cast<const uint4*>(from + d.columns),
          out;
    const auto *gates = reinterpret_cast<const uint16_t*>(&g), *ups = reinterpret_cast<const uint16_t*>(&u);
    auto* results = reinterpret_cast<uint16_t*>(&out);
    for (int j = 0; j < 8; ++j) {
      const float x = value(gates[j]), up = value(ups[j]);
      const float power = Step(gate) == Step::gelu_tanh ? 1.59576912f * (x + 0.044715f * x * x * x) : x;
      const float y = __fdividef(Step(gate) == Step::sigmoid ? up : x * up, 1 + __expf(-power));
      results[j] =
          d.type == f16 ? __half_as_ushort(__float2half(y)) : __bfloat16_as_ushort(__float2bfloat16(y));
    }
    *reinterpret_cast<uint4*>(reinterpret_cast<uint16_t*>(d.data) + int64_t(line) * d.columns + column) = out;
  }
}
#endif
