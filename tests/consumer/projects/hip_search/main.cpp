// Calls a kernel as a program for AMD's GPUs does, and compares with sums on the host. HIP by dlopen, as
// there may be none to link: the library that DeepGen's runtime finds then, too.
#include <kernels.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <vector>

[[noreturn]] void fail(const char* what) {
  std::printf("%s\n", what);
  std::exit(1);
}

template <typename Call>
Call hip(const char* name) {
  static void* library = [] {
    const char* driver = std::getenv("DEEPGEN_HIP_DRIVER");
    void* found = driver ? dlopen(driver, RTLD_NOW) : nullptr;
    for (const char* file : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})
      if (!found) found = dlopen(file, RTLD_NOW);
    return found;
  }();
  void* call = library ? dlsym(library, name) : nullptr;
  if (!call) fail("HIP's library is not here");
  return reinterpret_cast<Call>(call);
}

void* device_memory(size_t bytes) {
  void* memory = nullptr;
  if (hip<int (*)(void**, size_t)>("hipMalloc")(&memory, bytes) != 0) fail("no device memory");
  return memory;
}
template <typename T>
T* on_device(const std::vector<T>& values) {
  void* memory = device_memory(values.size() * sizeof(T));
  if (hip<int (*)(void*, const void*, size_t)>("hipMemcpyHtoD")(memory, values.data(),
                                                                values.size() * sizeof(T)) != 0)
    fail("cannot copy to the device");
  return static_cast<T*>(memory);
}

float value(int i) { return float(i % 7 - 3) * 0.25f; } // exact in bf16
uint16_t bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return uint16_t(bits >> 16);
}

int main() {
  constexpr int m = 20, n = 40, k = 48;
  std::vector<uint16_t> a(m * k), b(n * k);
  std::vector<float> bias(n), d(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = bf16(value(i * 5 + i / k));
  for (int i = 0; i < n * k; ++i) b[i] = bf16(value(i * 3 + i / k));
  for (int i = 0; i < n; ++i) bias[i] = float(i - 20);
  float* result = on_device(d);
  const size_t bytes = kernels::up_workspace_size();
  const deepgen_status status = kernels::up(on_device(a), on_device(b), on_device(bias), result, nullptr,
                                            bytes ? device_memory(bytes) : nullptr, bytes);
  if (status != DEEPGEN_OK) fail(deepgen_status_string(status));
  if (hip<int (*)(void*)>("hipStreamSynchronize")(nullptr) != 0) fail("the kernel failed");
  if (hip<int (*)(void*, void*, size_t)>("hipMemcpyDtoH")(d.data(), result, d.size() * sizeof(float)) != 0)
    fail("cannot copy from the device");
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = bias[j]; // whole multiples of 1/16: exact
      for (int l = 0; l < k; ++l) sum += value((i * k + l) * 5 + i) * value((j * k + l) * 3 + j);
      if (d[i * n + j] != std::fmax(sum, 0.f)) {
        std::printf("row %d, column %d: %g, not %g\n", i, j, double(d[i * n + j]), double(sum));
        return 1;
      }
    }
  std::printf("right: %s\n", deepgen_launch_config(kernels_up_function()));
  return 0;
}
