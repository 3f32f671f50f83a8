// Libraries to embed, and what is done with their text.
#pragma once

#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/embed/embed.h"
#include "tests/paths.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace deepgen {

class EmbedTest : public testing::Test {
protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "embed_test_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Kernel kernel(const Problem& p, const std::string& role, int64_t isa, const std::string& code) {
    Kernel k;
    k.role = role, k.problem = p, k.isa = isa, k.code = code;
    k.choice = {"cpu_tile", Config::parse("isa=" + std::to_string(isa) + " mr=4")};
    k.args = {"a", "b", "d", "stride_a", "alpha", "workspace", "m0", "b1"};
    k.entry = 16, k.workspace = 4096;
    return k;
  }
  static LibraryFunction function(const std::string& name, const std::string& key) {
    LibraryFunction f;
    f.file.target = "my-kernels", f.file.name = name, f.file.ns = "kernels",
    f.file.problem = Gemm::parse(key);
    KernelFile file;
    file.problem = f.file.problem, file.origin = "lock",
    file.choice = {"cpu_tile", Config::parse("isa=4 mr=4")};
    file.kernels = {kernel(file.problem, "fallback", 1, std::string(20, '\xc3')),
                    kernel(file.problem, "main", 4, std::string(37, '\xc3')),
                    kernel(file.problem, "awkward", 4, std::string(64, '\xc3'))};
    f.kernels = {file};
    return f;
  }
  static Library library() {
    return {
        "my-kernels",
        "my-kernels.h",
        {function(
             "up",
             "gemm m=512 n=2048 k=64 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4"),
         function("down",
                  "gemm m=3 n=5 k=7 batch=4 a=f64 b=f64 d=f64 acc=f64 layout=tn epilogue=none align=8")}};
  }
  void write(const Library& l) {
    validate(l);
    write_atomically(folder_ + "/my-kernels.h", embed_header(l));
    write_atomically(folder_ + "/my-kernels.cpp", embed_source(l));
  }
  /// Runs a compiler with every warning an error on `file`.
  int compile(const std::string& compiler, const std::string& file) {
    const std::string flags =
        " -Wall -Wextra -Wpedantic -Werror -I" + paths::in_source("runtime/include") + " -c -o /dev/null ";
    return std::system((compiler + flags + folder_ + "/" + file).c_str());
  }
  static bool has_clang() {
    static const bool there =
        std::system("command -v clang++ > /dev/null && command -v clang > /dev/null") == 0;
    return there;
  }
  std::string error_of(const Library& l) {
    try {
      validate(l);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  std::string folder_;
};

/// A function with kernels for the CPU and two GPU archs, of which one was tuned on two devices.
class EmbedGpuTest : public EmbedTest {
protected:
  static Kernel gpu_kernel(const Problem& p, const std::string& role, const std::string& target,
                           const std::string& code, int64_t align) {
    Kernel k = kernel(p, role, 0, code);
    k.choice = {"tile", Config::parse("x=" + std::to_string(align))};
    k.args = {"a", "map_b", "d", "alpha"};
    k.target = target, k.ptx = "// PTX of \"" + code + "\"\n.target " + target + "\n";
    k.align_a = k.align_b = k.align_d = align;
    k.most_pitch = align > 1 ? 1 << 20 : 0;
    k.launches = {{"deepgen_kernel", {3, 2, 1}, {}, {128, 1, 1}, {2, 1, 1}, 99, true, false},
                  {"deepgen_reduce", {5, 1, 1}}};
    k.maps = {{"b", 64, 128, 128, 256, {512, 33, 66, 128}}};
    return k;
  }
  static KernelFile gpu_file(const Problem& p, const std::string& arch, bool two_devices) {
    KernelFile file;
    file.problem = p, file.arch = arch, file.origin = "lock";
    file.kernels = {gpu_kernel(p, "main", arch, "cubin of " + arch, 16),
                    gpu_kernel(p, "fallback", "sm_80", "plain", 1)};
    if (two_devices) {
      file.kernels.push_back(gpu_kernel(p, "main", arch, "another cubin", 8));
      file.kernels.back().device = "NVIDIA H200";
    }
    return file;
  }
  static Library gpu_library(bool with_cpu) {
    Library l = library();
    LibraryFunction& f = l.functions[0];
    f.file.problem = Gemm::parse("gemm m=512 n=2048 k=64 batch=1 a=i8 b=i8 d=i8 acc=i32 layout=nt "
                                 "epilogue=scale_a+bias_row+clamp+residual+scale_d align=1");
    l.functions.pop_back();
    f.kernels[0].problem = f.file.problem;
    if (!with_cpu) f.kernels.clear();
    f.kernels.push_back(gpu_file(f.file.problem, "sm_80", false));
    f.kernels.push_back(gpu_file(f.file.problem, "sm_90a", true));
    return l;
  }
};

} // namespace deepgen
