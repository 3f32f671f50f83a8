// A library of tests/abi/library.cpp in this process.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace abi_tests {

class Loaded {
public:
  Loaded(const std::string& path, int number, int mode)
      : number_(number), handle_(dlopen(path.c_str(), mode)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  Loaded(const Loaded&) = delete;
  ~Loaded() {
    if (handle_) dlclose(handle_);
  }
  int registered() { return find<int (*)()>("library_register_")(); }
  int run(const float* a, float* d) { return find<int (*)(const float*, float*)>("library_run_")(a, d); }
  int set_threads(int count) { return find<int (*)(int)>("library_threads_")(count); }
  std::string words(int status) { return find<const char* (*)(int)>("library_words_")(status); }

  /// Whether calls on several threads give the library's own products.
  bool computes() {
    std::vector<float> a(64), d(64);
    for (int i = 0; i < 64; ++i) a[size_t(i)] = float(i);
    for (int threads : {4, 1, 3}) {
      d.assign(64, -1);
      if (set_threads(threads) != 0 || run(a.data(), d.data()) != 0) return false;
      for (int i = 0; i < 64; ++i)
        if (d[size_t(i)] != float(number_ * i)) return false;
    }
    return true;
  }

private:
  template <typename Function>
  Function find(const std::string& name) {
    return reinterpret_cast<Function>(dlsym(handle_, (name + std::to_string(number_)).c_str()));
  }
  int number_;
  void* handle_;
};

} // namespace abi_tests
