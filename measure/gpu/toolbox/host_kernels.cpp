#include "measure/gpu/toolbox/host_kernels.h"

#include "measure/gpu/toolbox/host_cuda.h"

#include "measure/gpu/toolbox/cuda_kernels.cu"

#include <algorithm>
#include <atomic>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace deepgen::cuda::host {
namespace {

/// Each thread runs the blocks of 32 threads that a grid of so many threads would give it.
template <typename Kernel>
void run(const Kernel& kernel) {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  std::vector<std::thread> others;
  const auto block = [&](unsigned index) {
    gridDim.x = threads, blockDim.x = 32, blockIdx.x = index;
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel();
  };
  unsigned started = 1;
  try {
    for (; started < threads; ++started) others.emplace_back(block, started);
  } catch (const std::system_error&) { // no more threads to be had: this one runs their blocks
  }
  for (unsigned i = started; i < threads; ++i) block(i);
  block(0);
  for (std::thread& t : others) t.join();
}

/// Element (k, i) at [k * count + i], of one batch entry; `norms` of each i.
struct Panel {
  std::vector<double> values, norms;
  Panel(uint64_t data, int32_t type, int64_t first, int64_t k, int64_t k_step, int64_t count, int64_t step)
      : values(size_t(k * count)), norms(size_t(count)) {
    for (int64_t j = 0; j < k; ++j)
      for (int64_t i = 0; i < count; ++i) {
        const double x = ::load(data, type, first + i * step + j * k_step);
        values[size_t(j * count + i)] = x, norms[size_t(i)] += x * x;
      }
    for (double& x : norms) x = std::sqrt(x);
  }
};

/// One block of rows of D.
void product_block(const ProductParameters& p, const Panel& b, int64_t entry, int64_t row0, int64_t at) {
  const int64_t rows = std::min<int64_t>(block_rows, p.m - row0);
  const Panel a(p.a, p.a_type, entry * p.a_entry + row0 * p.a_row, p.k, p.a_k, rows, p.a_row);
  std::vector<double> sums(size_t(p.n));
  for (int64_t i = 0; i < rows; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t k = 0; k < p.k; ++k) {
      const double x = a.values[size_t(k * rows + i)];
      const double* row = &b.values[size_t(k * p.n)];
      for (int64_t j = 0; j < p.n; ++j) sums[size_t(j)] += x * row[j];
    }
    const int64_t to = (at * block_rows + i) * p.n;
    for (int64_t j = 0; j < p.n; ++j) {
      reinterpret_cast<double*>(p.product)[to + j] = sums[size_t(j)];
      reinterpret_cast<float*>(p.magnitude)[to + j] = float(a.norms[size_t(i)] * b.norms[size_t(j)]);
    }
  }
}

} // namespace

void fill(const Array& x, const Values& v) {
  run([&] { ::fill(x, v); });
}
void check_values(const Array& x, const Values& v, Finding& finding) {
  run([&] { ::check_values(x, v, &finding); });
}
void check_gaps(const Array& x, uint64_t begin, uint64_t end, Finding& finding) {
  run([&] { ::check_gaps(x, begin, end, &finding); });
}
void check_written(const Array& d, Finding& finding) {
  run([&] { ::check_written(d, &finding); });
}
void compare(const CompareParameters& q) {
  run([&] { ::compare(q); });
}

void product(const ProductParameters& p, int64_t count) {
  const auto* blocks = reinterpret_cast<const int64_t*>(p.blocks);
  const int64_t per_entry = (p.m + block_rows - 1) / block_rows;
  for (int64_t first = 0; first < count;) { // the blocks of one batch entry have their B in common
    const int64_t entry = blocks[first] / per_entry;
    int64_t last = first;
    while (last < count && blocks[last] / per_entry == entry) ++last;
    const Panel b(p.b, p.b_type, entry * p.b_entry, p.k, p.b_k, p.n, p.b_column);
    std::atomic<int64_t> next{first};
    run([&] {
      if (threadIdx.x) return;
      for (int64_t at = next++; at < last; at = next++)
        product_block(p, b, entry, blocks[at] % per_entry * block_rows, at);
    });
    first = last;
  }
}

double load(uint64_t data, int32_t type, int64_t i) { return ::load(data, type, i); }
uint64_t encode(int32_t type, double x) { return ::encode(type, x); }

} // namespace deepgen::cuda::host
