// The generated header in the hands of strict compilers, and the sizes that it tells.
#include "embed_library.h"
#include "tests/paths.h"

#include <sstream>

namespace deepgen::embed_header_test {
namespace {

/// Every form of function and operand that a header can have.
Library every_form(Library l, LibraryFunction gpu) {
  auto text = [](const std::string& epilogue, const std::string& rest) {
    return "gemm m=64 n=128 k=32 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt " + rest +
           "epilogue=" + epilogue + " align=4";
  };
  auto add = [&](const std::string& name, const std::string& key) {
    l.functions.push_back(l.functions[0]);
    LibraryFunction& f = l.functions.back();
    f.file.name = name, f.file.problem = Problem::parse(key);
    for (KernelFile& file : f.kernels) {
      file.problem = f.file.problem;
      for (Kernel& k : file.kernels) k.problem = f.file.problem;
    }
  };
  add("vectors", text("bias+bias_row+clamp+scale_a+scale_b+scale_row+scale_col+scale_d+prelu", ""));
  add("matrices", text("residual+multiply", ""));
  add("gated", text("none", "gate=silu "));
  add("norm", "rows m=64 n=128 x=f32 d=f32 kind=layer_norm options=residual+output_residual+scale+bias");
  add("quantised", "rows m=64 n=128 x=bf16 d=e4m3 kind=rms_norm options=none");
  gpu.file.name = "gpu";
  l.functions.push_back(gpu);
  gpu.file.name = "experts";
  gpu.file.problem =
      Gemm::parse("gemm m=64 n=128 k=32 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=8 "
                  "epilogue=bias align=2");
  gpu.kernels.erase(gpu.kernels.begin()); // the CPU's: it has none with groups
  for (KernelFile& file : gpu.kernels) file.problem = gpu.file.problem;
  l.functions.push_back(gpu);
  gpu.file.name = "softmax",
  gpu.file.problem = Problem::parse("rows m=64 n=128 x=f16 d=f16 kind=softmax options=none");
  for (KernelFile& file : gpu.kernels) {
    file.problem = gpu.file.problem;
    for (Kernel& k : file.kernels)
      k.problem = file.problem, k.maps.clear(), k.args = {"x", "d", "ldx"}, k.most_pitch = 0;
  }
  l.functions.push_back(gpu);
  return l;
}

/// Without what warns of a dialect by its name, of padding, or of any pointer arithmetic.
const std::string kClang =
    " -Weverything -Werror -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-c++11-compat -Wno-padded"
    " -Wno-pre-c11-compat -Wno-declaration-after-statement -Wno-unsafe-buffer-usage"
    " -Wno-pre-c++14-compat -Wno-pre-c++17-compat -Wno-pre-c++20-compat-pedantic -Wno-unknown-warning-option";
const std::string kGcc =
    " -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wsign-conversion -Wcast-qual "
    "-Wcast-align=strict -Wundef"
    " -Wdouble-promotion -Wformat=2 -Wredundant-decls -Wmissing-declarations -Wswitch-default -Wswitch-enum"
    " -Wfloat-equal -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wunused-macros -Waggregate-return";

/// A compiler that the host lacks, and a dialect that it does not know, are left out.
bool knows(const std::string& compiler, const std::string& language, const std::string& dialect) {
  return std::system(
             (compiler + " -std=" + dialect + " -fsyntax-only -x " + language + " /dev/null > /dev/null 2>&1")
                 .c_str()) == 0;
}

class HeaderTest : public EmbedGpuTest {
protected:
  void SetUp() override {
    EmbedGpuTest::SetUp();
    write(every_form(library(), gpu_library(true).functions[0]));
  }
  /// Returns how many compilations there were.
  int expect_silence(const std::string& compiler, const std::string& flags, const std::string& file,
                     std::initializer_list<const char*> dialects) {
    int count = 0;
    for (const char* dialect : dialects) {
      if (!knows(compiler, file == "use.c" ? "c" : "c++", dialect)) continue;
      const std::string command = compiler + flags + " -std=" + dialect + " -I" +
                                  paths::in_source("runtime/include") + " -O1 -c -o /dev/null " + folder_ +
                                  "/" + file;
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
      ++count;
    }
    return count;
  }
};

TEST_F(HeaderTest, IsSilentInEveryDialectOfC) {
  write_atomically(folder_ + "/use.c", "#include \"my-kernels.h\"\n"
                                       "deepgen_status use(const float* a, float* d);\n"
                                       "deepgen_status use(const float* a, float* d) {\n"
                                       "  deepgen_gemm_args args = DEEPGEN_GEMM_ARGS;\n"
                                       "  args.a = a;\n"
                                       "  args.d = d;\n"
                                       "  return kernels_up_run(&args);\n"
                                       "}\n"
                                       "deepgen_status rows(float* x);\n"
                                       "deepgen_status rows(float* x) {\n"
                                       "  deepgen_rows_args args = DEEPGEN_ROWS_ARGS;\n"
                                       "  args.x = x;\n"
                                       "  args.d = x;\n"
                                       "  return kernels_norm_run(&args);\n"
                                       "}\n");
  const auto dialects = {"c99", "c11", "c17", "c2x"};
  EXPECT_GE(expect_silence("gcc", kGcc + " -Wstrict-prototypes -Wold-style-definition -Wc++-compat", "use.c",
                           dialects),
            4);
  for (const char* clang : {"clang", "clang-22"}) expect_silence(clang, kClang, "use.c", dialects);
}

/// The inline functions are compiled whether they are used or not.
TEST_F(HeaderTest, IsSilentInEveryDialectOfCxx) {
  write_atomically(folder_ + "/use.cpp",
                   "#include \"my-kernels.h\"\n"
                   "deepgen_status use(const float* a, float* d);\n"
                   "deepgen_status use(const float* a, float* d) {\n"
                   "  deepgen_gemm_args args;\n"
                   "  args.a = a;\n"
                   "  args.d = d;\n"
                   "  return kernels::up({a, 512, 64}, {a, 2048, 64}, a, {d, 512, 2048}) == DEEPGEN_OK\n"
                   "             ? kernels::up(args) : kernels::matrices(a, a, a, a, d);\n"
                   "}\n");
  const auto dialects = {"c++17", "c++20", "c++2b", "c++26"};
  EXPECT_GE(expect_silence("g++",
                           kGcc +
                               " -Wold-style-cast -Wzero-as-null-pointer-constant -Wuseless-cast -Wextra-semi"
                               " -Weffc++ -Wnon-virtual-dtor -Wsuggest-override -Wcomma-subscript -Wvolatile",
                           "use.cpp", dialects),
            3);
  for (const char* clang : {"clang++", "clang++-22"}) expect_silence(clang, kClang, "use.cpp", dialects);
}

TEST_F(HeaderTest, DocumentsRows) {
  const std::string header = read_file(folder_ + "/my-kernels.h");
  for (const char* part :
       {"kernels_norm: D = layer_norm(X + residual) * scale + bias, each row for itself",
        "M=64 N=128. Row-major. Computed in f32",
        "residual_out  f32, 64 x 128 (M x N: X + residual, rounded)",
        "kernels_quantised: D = rms_norm(X), each row for itself", "row_scales: 64 values of f32",
        "max |y[m,:]| / 448", "epsilon: finite, 0 or more",
        "deepgen_status kernels_norm(const float* x, const float* residual, const float* scale, const float* "
        "bias, "
        "double epsilon, float* d, float* residual_out); /* dense */",
        "deepgen_status kernels_softmax_launch(const deepgen_rows_args* args, deepgen_stream stream);"})
    EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
}

TEST_F(HeaderTest, TellsTheSizesInCAndCxx) {
  write_atomically(
      folder_ + "/sizes.c",
      "#include \"my-kernels.h\"\n"
      "#define CHECK(x) _Static_assert(x, #x)\n"
      "CHECK(KERNELS_UP_M == 512 && KERNELS_UP_N == 2048 && KERNELS_UP_K == 64 && KERNELS_UP_BATCH == 1);\n"
      "CHECK(KERNELS_UP_LDA == 64 && KERNELS_UP_LDB == 64 && KERNELS_UP_LDC == 2048 && KERNELS_UP_LDD == "
      "2048);\n"
      "CHECK(KERNELS_UP_BYTES_A == 512 * 64 * 4 && KERNELS_UP_BYTES_D == 512 * 2048 * 4);\n"
      "CHECK(KERNELS_UP_BYTES_BIAS == 2048 * 4);\n"
      "CHECK(KERNELS_DOWN_BYTES_A == 4 * 3 * 7 * 8 && KERNELS_DOWN_BYTES_B == 4 * 5 * 7 * 8);\n"
      "CHECK(KERNELS_DOWN_LDA == 3 && KERNELS_DOWN_LDB == 5);\n"
      "CHECK(KERNELS_GATED_BYTES_B == 2 * 128 * 32 * 4);\n"
      "CHECK(KERNELS_MATRICES_LD_RESIDUAL == 128 && KERNELS_MATRICES_BYTES_MULTIPLIER == 64 * 128 * 4);\n"
      "CHECK(KERNELS_VECTORS_BYTES_SCALE_ROW == 64 * 4 && KERNELS_VECTORS_BYTES_SCALE_D == 4);\n"
      "CHECK(KERNELS_EXPERTS_GROUPS == 8 && KERNELS_EXPERTS_BYTES_OFFSETS == 9 * 4);\n"
      "CHECK(KERNELS_EXPERTS_BYTES_B == 8 * 128 * 32 * 2 && KERNELS_EXPERTS_BYTES_BIAS == 8 * 128 * 2);\n"
      "CHECK(KERNELS_NORM_M == 64 && KERNELS_NORM_LD_RESIDUAL_OUT == 128 && KERNELS_NORM_BYTES_SCALE == "
      "512);\n"
      "CHECK(KERNELS_QUANTISED_BYTES_D == 64 * 128 && KERNELS_QUANTISED_BYTES_ROW_SCALES == 64 * 4);\n"
      "int nothing;\n");
  EXPECT_EQ(compile("cc -std=c11", "sizes.c"), 0);
  write_atomically(folder_ + "/sizes.cpp",
                   "#include \"my-kernels.h\"\n"
                   "static_assert(kernels::up_sizes::m == 512 && kernels::up_sizes::ldd == 2048);\n"
                   "static_assert(kernels::up_sizes::bytes_d == sizeof(float[512][2048]));\n"
                   "static_assert(kernels::experts_sizes::groups == 8);\n");
  EXPECT_EQ(compile("c++ -std=c++17", "sizes.cpp"), 0);
}

TEST_F(EmbedTest, NamesWhoseMacrosClashAreRefused) {
  Library l = library();
  l.functions[1].file.name = "Up";
  EXPECT_NE(error_of(l).find("KERNELS_UP_M"), std::string::npos) << error_of(l);
  l.functions[1].file.name = "up_sizes";
  EXPECT_NE(error_of(l).find("kernels_up_sizes"), std::string::npos) << error_of(l);
}

/// What no address space holds has no constant, and the product does not overflow.
TEST_F(EmbedTest, HugeOperandsHaveNoBytes) {
  Library l = library();
  Gemm& p = l.functions[0].file.problem.gemm();
  p.m = p.n = p.k = p.batch = int64_t(1) << 31;
  const std::string header = embed_header(l);
  EXPECT_EQ(header.find("KERNELS_UP_BYTES_A"), std::string::npos);
  EXPECT_NE(header.find("#define KERNELS_UP_M 2147483648\n"), std::string::npos);
}

} // namespace
} // namespace deepgen::embed_header_test
