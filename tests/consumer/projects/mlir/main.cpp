// Calls each function of the module in both forms on the same random inputs, and compares.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <string>
#include <vector>

namespace {

using Shape = std::vector<std::int64_t>;

struct Case {
  const char* name;
  bool is_double;
  std::vector<Shape> inputs;
  Shape output;
};

const Case cases[] = {
#ifdef CASES
#include CASES
#else
    {"linear", false, {{8, 16}, {24, 16}, {24}}, {8, 24}},
    {"block", false, {{5, 16}, {16, 24}, {24}, {5, 24}}, {5, 24}},
    {"accumulate", true, {{7, 6}, {9, 7}, {9, 6}}, {9, 6}},
    {"scores", false, {{10, 3, 8}, {12, 3, 8}}, {10, 3, 12}},
    {"tokens", false, {{2, 5, 16}, {16, 24}, {24}}, {2, 5, 24}},
    {"layers", false, {{8, 16}, {16, 24}, {24, 24}}, {8, 24}},
    {"rest", false, {{6, 7}, {7, 9}, {6, 8}, {8, 9}, {6}}, {9}},
#endif
};

/// As MLIR lays it out: allocated, aligned, offset, sizes, strides.
struct Descriptor {
  std::int64_t words[3 + 2 * 4] = {};

  Descriptor(void* data, const Shape& shape) {
    words[0] = words[1] = std::int64_t(reinterpret_cast<std::intptr_t>(data));
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i])
      words[3 + i] = shape[i], words[3 + shape.size() + i] = stride;
  }
  void* data() const { return reinterpret_cast<char*>(std::intptr_t(words[1])); }
};

std::int64_t count(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  return n;
}

template <typename T>
std::vector<double> run(void* library, const Case& c) {
  const auto symbol = dlsym(library, ("_mlir_ciface_" + std::string(c.name)).c_str());
  if (!symbol) {
    std::fprintf(stderr, "%s: %s\n", c.name, dlerror());
    std::exit(1);
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<T> values(-1, 1);
  std::vector<std::vector<T>> data;
  std::vector<Descriptor> descriptors;
  for (const Shape& shape : c.inputs) {
    data.emplace_back(count(shape));
    for (T& x : data.back()) x = values(random);
  }
  for (std::size_t i = 0; i < data.size(); ++i) descriptors.emplace_back(data[i].data(), c.inputs[i]);
  const auto before = data;
  Descriptor result(nullptr, c.output);
  Descriptor* d = descriptors.data();
  if (data.size() == 2)
    reinterpret_cast<void (*)(void*, void*, void*)>(symbol)(&result, d, d + 1);
  else if (data.size() == 3)
    reinterpret_cast<void (*)(void*, void*, void*, void*)>(symbol)(&result, d, d + 1, d + 2);
  else if (data.size() == 4)
    reinterpret_cast<void (*)(void*, void*, void*, void*, void*)>(symbol)(&result, d, d + 1, d + 2, d + 3);
  else
    reinterpret_cast<void (*)(void*, void*, void*, void*, void*, void*)>(symbol)(&result, d, d + 1, d + 2,
                                                                                 d + 3, d + 4);
  const T* y = static_cast<const T*>(result.data());
  std::vector<double> values_of(y, y + count(c.output));
  bool kept = data == before;
  if (!kept && std::strcmp(c.name, "accumulate") != 0) { // which MLIR may do in place
    std::fprintf(stderr, "%s: an input has changed\n", c.name);
    std::exit(1);
  }
  return values_of;
}

} // namespace

int main() {
  void *original = dlopen(ORIGINAL, RTLD_NOW | RTLD_LOCAL), *calls = dlopen(CALLS, RTLD_NOW | RTLD_LOCAL);
  if (!original || !calls) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  for (const Case& c : cases) {
    const std::vector<double> x = c.is_double ? run<double>(original, c) : run<float>(original, c);
    const std::vector<double> y = c.is_double ? run<double>(calls, c) : run<float>(calls, c);
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(x[i] - y[i])), largest = std::max(largest, std::abs(x[i]));
      if (!(std::isfinite(x[i]) && std::isfinite(y[i]))) worst = INFINITY;
    }
    std::printf("%s: largest %.3g, difference %.2g\n", c.name, largest, worst);
    if (!(worst <= (c.is_double ? 1e-13 : 2e-5) * std::max(1.0, largest)) || largest < 0.1) return 1;
  }
  std::printf("ok\n");
}
