#include "generator/embed.h"

#include "base/error.h"
#include "base/files.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

namespace deepgen {
namespace {

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
    f.file.problem = Problem::parse(key);
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
        " -Wall -Wextra -Wpedantic -Werror -I" DEEPGEN_SOURCE_DIR "/runtime/include -c -o /dev/null ";
    return std::system((compiler + flags + folder_ + "/" + file).c_str());
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

TEST_F(EmbedTest, CompilesAsCxx17AndC99) {
  write(library());
  write_atomically(folder_ + "/use.c",
                   "#include \"my-kernels.h\"\n"
                   "int use(const float* a, float* d) {\n"
                   "  deepgen_gemm_args args = DEEPGEN_GEMM_ARGS;\n"
                   "  return kernels_up(a, a, a, d) || kernels_up_run(&args) || !kernels_down_function();\n"
                   "}\n");
  write_atomically(
      folder_ + "/use.cpp",
      "#include \"my-kernels.h\"\n"
      "int use(const float* a, float* d, const double* x, double* y) {\n"
      "  deepgen_gemm_args args;\n"
      "  args.alpha = 2;\n"
      "  deepgen::matrix<float> made{d, 512, 2048}; // the D of one is the A of the next\n"
      "  deepgen::matrix<const float> next = made;\n"
      "  const deepgen::matrix<const float> same = next;\n"
      "  if (kernels::up(made, {a, 2048, 64}, a, made) || kernels::up(same, next, a, made)) return 1;\n"
      "  return kernels::up(a, a, a, d) || kernels::up({a, 512, 64}, {a, 2048, 64}, a, {d, 512, 2048}) ||\n"
      "         kernels::up(args) || kernels::down(x, x, y);\n"
      "}\n");
  std::vector<std::pair<std::string, std::string>> compilers = {{"c++ -std=c++17", "cc -std=c99"}};
  if (std::system("command -v clang++ > /dev/null && command -v clang > /dev/null") == 0)
    compilers.emplace_back("clang++ -std=c++17", "clang -std=c99");
  for (const auto& [cxx, c] : compilers) {
    EXPECT_EQ(compile(cxx, "my-kernels.cpp"), 0);
    EXPECT_EQ(compile(cxx, "use.cpp"), 0);
    EXPECT_EQ(compile(c, "use.c"), 0);
  }
}

/// Links images of recognisable bytes: the bytes at the entry symbol must be those of the
/// kernel.
TEST_F(EmbedTest, EntrySymbolsHoldTheKernelsBytes) {
  Library l = library();
  std::string code;
  for (int i = 0; i < 77; ++i)
    code += char(i * 7 + 1);
  l.functions[0].kernels[0].kernels[1].code = code;
  write(l);
  write_atomically(
      folder_ + "/stub.cpp",
      "#include <cstring>\n#include <cstdio>\n#include <deepgen/kernel_abi.h>\n#include <deepgen/runtime.h>\n"
      "#include \"my-kernels.h\"\n"
      "extern \"C\" deepgen_status deepgen_run_gemm(const deepgen_function*, const deepgen_gemm_args*) {\n"
      "  return DEEPGEN_OK;\n}\n"
      "static unsigned registered;\n"
      "extern \"C\" int deepgen_register(const deepgen_function*, uint32_t n) { registered = n; return 0; }\n"
      "int main() {\n"
      "  const deepgen_function* f = kernels_up_function();\n"
      "  const auto* bytes = reinterpret_cast<const unsigned char*>(f->kernels[0].entry);\n"
      "  if (registered != 2 || f->kernel_count != 2 || f->kernels[0].isa != 4 || f->m != 512) return 1;\n"
      "  if (reinterpret_cast<uintptr_t>(bytes - 16) % 64) return 2;\n"
      "  for (int i = 0; i < 77; ++i)\n"
      "    if (bytes[i - 16] != static_cast<unsigned char>(i * 7 + 1)) return 3;\n"
      "  if (f->kernels[1].entry != kernels_down_function()->kernels[1].entry) return 4;\n"
      "  return f->kernels[0].args[3] == DEEPGEN_ARG_STRIDE_A && f->kernels[0].args[7] == DEEPGEN_ARG_B1 ? 0 "
      ": 5;\n"
      "}\n");
  const std::string build = "c++ -std=c++17 -I" DEEPGEN_SOURCE_DIR "/runtime/include " + folder_ +
                            "/stub.cpp " + folder_ + "/my-kernels.cpp -o " + folder_ + "/stub";
  for (const char* flags : {"", " -O2 -flto -fno-plt"}) {
    ASSERT_EQ(std::system((build + flags).c_str()), 0);
    const int status = std::system((folder_ + "/stub").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << flags;
  }
}

TEST_F(EmbedTest, IsDeterministicAndHoldsNoPaths) {
  const std::string header = embed_header(library()), source = embed_source(library());
  EXPECT_EQ(embed_header(library()), header);
  EXPECT_EQ(embed_source(library()), source);
  for (const std::string& text : {header, source})
    for (const char* part : {"/tmp", "/home", "/usr", DEEPGEN_SOURCE_DIR})
      EXPECT_EQ(text.find(part), std::string::npos) << part;
}

TEST_F(EmbedTest, HeaderDocumentsTheFunction) {
  const std::string header = embed_header(library());
  for (const char* part :
       {"kernels_up: D = gelu((alpha * A * B + beta * C) + bias)", "M=512 N=2048 K=64",
        "B  2048 x 64 (N x K, transposed), leading dimension 64", "bias: 2048 values", "aligned to 8 bytes",
        "x86-64-v4: cpu_tile isa=4 mr=4", "from the lock", "DEEPGEN_ERROR_SIZE"})
    EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
}

TEST_F(EmbedTest, BestKernelFirstAndAwkwardOnesLeftOut) {
  const LibraryFunction f = library().functions[0];
  const auto kernels = linked_kernels(f);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0]->isa, 4);
  EXPECT_EQ(kernels[1]->isa, 1);
}

TEST_F(EmbedTest, IdenticalCodeIsEmbeddedOnce) {
  const std::string source = embed_source(library()); // both functions have the same two images
  size_t count = 0;
  for (size_t at = 0; (at = source.find(".pushsection", at)) != std::string::npos; ++at)
    ++count;
  EXPECT_EQ(count, 2u);
}

/// CMake refuses bad names before anything is built; who calls the tool directly gets the same answer.
TEST_F(EmbedTest, ReservedWordsAreThoseOfTheBuild) {
  const std::string cmake = read_file(DEEPGEN_SOURCE_DIR "/cmake/DeepGen.cmake");
  const size_t begin = cmake.find("set(reserved"), end = cmake.find(')', begin);
  ASSERT_NE(begin, std::string::npos);
  std::istringstream words(cmake.substr(begin + 12, end - begin - 12));
  int count = 0;
  for (std::string word; words >> word; ++count) {
    Library l = library();
    l.functions[0].file.name = word;
    EXPECT_NE(error_of(l).find("reserved word"), std::string::npos) << word;
  }
  EXPECT_GT(count, 90);
  for (const char* word : {"_up", "up__down", "2up", "u p", ""}) {
    Library l = library();
    l.functions[0].file.name = word;
    EXPECT_NE(error_of(l).find("single underscores"), std::string::npos) << word;
  }
  for (const char* word : {"deepgen", "DeepGen_up", "DEEPGEN_H"}) {
    Library l = library();
    l.functions[0].file.ns = l.functions[1].file.ns = word;
    EXPECT_NE(error_of(l).find("keeps to itself"), std::string::npos) << word;
  }
  Library l = library();
  for (const char* word : {"up_down_2", "deepgenerate"}) {
    l.functions[0].file.name = word;
    EXPECT_EQ(error_of(l), "");
  }
}

TEST_F(EmbedTest, BadLibrariesAreExplained) {
  Library l = library();
  l.functions[0].file.name = "for";
  EXPECT_NE(error_of(l).find("reserved word"), std::string::npos);
  l.functions[0].file.name = "2up";
  EXPECT_NE(error_of(l).find("'2up' is not a usable C identifier"), std::string::npos);
  l.functions[0].file.name = "down";
  EXPECT_NE(error_of(l).find("kernels_down"), std::string::npos);
  l = library();
  l.functions[0].file.problem.m = 513;
  EXPECT_NE(error_of(l).find("another problem"), std::string::npos);
  l = library();
  l.functions[0].kernels[0].status = "failed", l.functions[0].kernels[0].detail = "no registers left";
  EXPECT_NE(error_of(l).find("no registers left"), std::string::npos);
  l = library();
  l.functions[0].kernels.clear();
  EXPECT_NE(error_of(l).find("no kernel"), std::string::npos);
  l = library();
  l.functions[0].kernels[0].kernels[0].args = {"q"};
  EXPECT_THROW(embed_source(l), Error);
}

} // namespace
} // namespace deepgen
