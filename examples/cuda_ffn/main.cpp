// Runs a feed-forward block on the GPU with tuned kernels, checks sampled rows against plain loops in double
// precision, and times each with events. Exits with 77 where there is no GPU.
#include <cuda_runtime_api.h>
#include <ffn_kernels.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr int kRows = FFN_ROWS, kModel = FFN_MODEL, kHidden = FFN_HIDDEN;
using Bf16 = uint16_t; ///< the upper half of a float
using Matrix = std::vector<Bf16>;

float to_float(Bf16 x) {
  const uint32_t bits = uint32_t(x) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

Bf16 to_bf16(float x) { // to nearest even; no NaNs here
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return Bf16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

Matrix random_matrix(int rows, int columns, float scale) {
  static std::minstd_rand generator(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  Matrix m(size_t(rows) * columns);
  for (Bf16& x : m) x = to_bf16(uniform(generator));
  return m;
}

void require(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "cuda_ffn: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

void require(deepgen_status status) {
  if (status == DEEPGEN_OK) return;
  std::fprintf(stderr, "cuda_ffn: %s\n", deepgen_status_string(status));
  const char* text = "";
  if (status == DEEPGEN_ERROR_DRIVER && deepgen_last_driver_error(&text))
    std::fprintf(stderr, "cuda_ffn: %s\n", text);
  if (status == DEEPGEN_ERROR_NO_KERNEL)
    std::fprintf(stderr, "cuda_ffn: configure with -DDEEPGEN_ARCHS=native\n");
  std::exit(1);
}

/// Memory of the device; lives as long as the program.
void* device_memory(size_t bytes, const void* content = nullptr) {
  void* data = nullptr;
  require(cudaMalloc(&data, std::max<size_t>(bytes, 1)));
  if (content) require(cudaMemcpy(data, content, bytes, cudaMemcpyHostToDevice));
  return data;
}

void* upload(const Matrix& m) { return device_memory(m.size() * sizeof(Bf16), m.data()); }

Matrix download(const void* data, size_t count) {
  Matrix m(count);
  require(cudaMemcpy(m.data(), data, count * sizeof(Bf16), cudaMemcpyDeviceToHost));
  return m;
}

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/// Checks some rows of d = f(a w^T + bias) (+ residual): within the rounding to bf16, and 0.002 for f32 sums
/// and gelu.
bool check(const char* name, const Matrix& a, const Matrix& w, const Matrix& bias, const Matrix* residual,
           const Matrix& d, int n, int k) {
  double worst = 0;
  for (int m : {0, 1, kRows / 3, kRows / 2 + 7, kRows - 1})
    for (int j = 0; j < n; ++j) {
      double x = to_float(bias[j]);
      for (int i = 0; i < k; ++i)
        x += double(to_float(a[size_t(m) * k + i])) * to_float(w[size_t(j) * k + i]);
      x = residual ? x + to_float((*residual)[size_t(m) * n + j]) : gelu_tanh(x);
      const double error = std::abs(x - to_float(d[size_t(m) * n + j])) / (std::abs(x) / 256 + 0.002);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  std::printf("%-5s largest error: %.2f of what is allowed\n", name, worst);
  return worst <= 1;
}

/// The same of n = rms_norm(x) * scale.
bool check_norm(const Matrix& x, const Matrix& scale, double epsilon, const Matrix& n) {
  double worst = 0;
  for (int m : {0, 1, kRows / 3, kRows - 1}) {
    double square = 0;
    for (int j = 0; j < kModel; ++j) square += std::pow(to_float(x[size_t(m) * kModel + j]), 2) / kModel;
    for (int j = 0; j < kModel; ++j) {
      const double wanted =
          to_float(x[size_t(m) * kModel + j]) / std::sqrt(square + epsilon) * to_float(scale[j]);
      const double error =
          std::abs(wanted - to_float(n[size_t(m) * kModel + j])) / (std::abs(wanted) / 256 + 1e-6);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  std::printf("norm  largest error: %.2f of what is allowed\n", worst);
  return worst <= 1;
}

/// Microseconds of one call: the median of 20, each between two events.
template <typename Call>
double microseconds(cudaStream_t stream, Call call) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin));
  require(cudaEventCreate(&end));
  std::vector<float> times(20);
  for (float& time : times) {
    require(cudaEventRecord(begin, stream));
    require(call());
    require(cudaEventRecord(end, stream));
    require(cudaEventSynchronize(end));
    require(cudaEventElapsedTime(&time, begin, end));
  }
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return 1e3 * times[10];
}

} // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("cuda_ffn: skipped: no NVIDIA GPU, or no driver");
    return 77;
  }
  const Matrix x = random_matrix(kRows, kModel, 1), w1 = random_matrix(kHidden, kModel, 0.04f),
               w2 = random_matrix(kModel, kHidden, 0.04f), b1 = random_matrix(1, kHidden, 1),
               b2 = random_matrix(1, kModel, 1), scale = random_matrix(1, kModel, 2);
  const void *dx = upload(x), *dw1 = upload(w1), *dw2 = upload(w2), *db1 = upload(b1), *db2 = upload(b2),
             *dscale = upload(scale);
  void *hidden = device_memory(size_t(kRows) * kHidden * sizeof(Bf16)),
       *n = device_memory(x.size() * sizeof(Bf16)), *y = device_memory(x.size() * sizeof(Bf16));
  constexpr double kEpsilon = 1e-5;
  cudaStream_t stream;
  require(cudaStreamCreate(&stream));

  // All are loaded before the first call, and share one workspace: calls on one stream follow each other.
  require(ffn_kernels::norm_prepare());
  require(ffn_kernels::up_prepare());
  require(ffn_kernels::down_prepare());
  const size_t bytes = std::max({ffn_kernels::norm_workspace_size(), ffn_kernels::up_workspace_size(),
                                 ffn_kernels::down_workspace_size()});
  void* workspace = device_memory(bytes);
  auto norm = [&] { return ffn_kernels::norm(dx, dscale, kEpsilon, n, stream, workspace, bytes); };
  auto up = [&] { return ffn_kernels::up(n, dw1, db1, hidden, stream, workspace, bytes); };
  auto down = [&] { return ffn_kernels::down(hidden, dw2, db2, dx, y, stream, workspace, bytes); };
  require(norm());
  require(up());
  require(down());
  require(cudaStreamSynchronize(stream));

  const Matrix h = download(hidden, size_t(kRows) * kHidden);
  const Matrix normalised = download(n, x.size());
  const bool good = check_norm(x, scale, kEpsilon, normalised) &
                    check("up", normalised, w1, b1, nullptr, h, kHidden, kModel) &
                    check("down", h, w2, b2, &x, download(y, x.size()), kModel, kHidden);
  const double flops = 2.0 * kRows * kHidden * kModel, moved = 4.0 * kRows * kModel,
               t0 = microseconds(stream, norm), t1 = microseconds(stream, up),
               t2 = microseconds(stream, down);
  std::printf("norm  %8.1f us  %7.1f GB/s     %s\n", t0, moved / t0 * 1e-3,
              deepgen_launch_config(ffn_kernels_norm_function()));
  std::printf("up    %8.1f us  %7.1f TFLOP/s  %s\n", t1, flops / t1 * 1e-6,
              deepgen_launch_config(ffn_kernels_up_function()));
  std::printf("down  %8.1f us  %7.1f TFLOP/s  %s\n", t2, flops / t2 * 1e-6,
              deepgen_launch_config(ffn_kernels_down_function()));
  std::puts(good ? "All results agree." : "cuda_ffn: results differ");
  return good ? 0 : 1;
}
