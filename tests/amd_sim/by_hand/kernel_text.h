// KernelText: small kernels in LLVM IR for the simulator's own tests, and what they are run on.
#pragma once

#include "tests/amd_sim/machine/launch.h"
#include "tests/ptx_sim/program/fault.h"

#include <gtest/gtest.h>

#include <cstring>

namespace deepgen::amd_sim {

/// A module of one kernel "k"; declares every intrinsic that the tests use.
std::string module_of(const std::string& globals, const std::string& parameters, const std::string& body);

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

template <typename T>
std::vector<uint8_t> bytes_of(const T& x) {
  std::vector<uint8_t> out(sizeof x);
  std::memcpy(out.data(), &x, sizeof x);
  return out;
}

/// Operands of one kind of number each, and one launch.
class Device {
public:
  explicit Device(std::string arch) : arch_(std::move(arch)) {}

  template <typename T>
  size_t input(const std::vector<T>& values) {
    return place(values.data(), values.size() * sizeof(T), false);
  }
  size_t output(size_t bytes) { return place(nullptr, bytes, true); }
  template <typename T>
  std::vector<T> values(size_t region) const {
    std::vector<T> out(memory_[region].bytes.size() / sizeof(T));
    std::memcpy(out.data(), memory_[region].bytes.data(), out.size() * sizeof(T));
    return out;
  }
  void argument(size_t region) { arguments_.push_back(bytes_of(memory_[region].base)); }
  void number(uint32_t x) { arguments_.push_back(bytes_of(x)); }

  /// Of workgroups of so many threads. What is wrong; empty: nothing.
  std::string run(const std::string& ir, int64_t threads, int64_t groups = 1, uint64_t seed = 3) {
    try {
      report = run_launch(ir, arch_, {"k", {groups, 1, 1}, {threads, 1, 1}, 0}, arguments_, memory_, seed);
    } catch (const ptx_sim::Fault& f) {
      return f.what();
    }
    return "";
  }

  Report report;

private:
  size_t place(const void* from, size_t bytes, bool writable) {
    const size_t region = memory_.add(writable ? "output" : "input", bytes, 0, writable);
    std::fill(memory_[region].owned.begin(), memory_[region].owned.begin() + int64_t(bytes), uint8_t(1));
    if (from) std::memcpy(memory_[region].bytes.data(), from, bytes);
    argument(region);
    return region;
  }

  std::string arch_;
  ptx_sim::GlobalMemory memory_;
  std::vector<std::vector<uint8_t>> arguments_;
};

/// Transposes 16 x 16 numbers of f32 through LDS, by 256 threads.
std::string transpose();
/// D = A B of 64 x 64 x K, A and B of f16 with K contiguous, by 4 waves, each with 32 x 32 of D. "gfx950" has
/// its deeper operation.
std::string mfma_gemm(const std::string& arch);
/// Copies 4 KiB by loads to LDS (`bytes` a lane), and writes them out in reverse order, by 256 threads.
std::string copy_through_lds(int bytes);

} // namespace deepgen::amd_sim
