#include "embed_library.h"

#include "generator/lock/lock.h"
#include "tests/paths.h"

#include <sstream>

namespace deepgen::embed_test {
namespace {

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
  if (has_clang()) compilers.emplace_back("clang++ -std=c++17", "clang -std=c99");
  for (const auto& [cxx, c] : compilers) {
    EXPECT_EQ(compile(cxx, "my-kernels.cpp"), 0);
    EXPECT_EQ(compile(cxx, "use.cpp"), 0);
    EXPECT_EQ(compile(c, "use.c"), 0);
  }
}

TEST_F(EmbedTest, ACutAmongThreadsIsAFieldOfItsKernel) {
  Library l = library();
  const std::string before = embed_source(l);
  l.functions[0].kernels[0].kernels[1].cut = 2;
  const std::string text = embed_source(l);
  EXPECT_EQ(text.size(), before.size() + std::string(", nullptr, 0u, 0u, 2u").size());
  EXPECT_NE(text.find(", nullptr, 0u, 0u, 2u},"), std::string::npos);
  write(l);
  EXPECT_EQ(compile("c++ -std=c++17", "my-kernels.cpp"), 0);
}

/// Links images of recognisable bytes: the bytes at the entry symbol must be those of the
/// kernel.
TEST_F(EmbedTest, EntrySymbolsHoldTheKernelsBytes) {
  Library l = library();
  std::string code;
  for (int i = 0; i < 77; ++i) code += char(i * 7 + 1);
  l.functions[0].kernels[0].kernels[1].code = code;
  l.functions[0].kernels[0].kernels[1].entry = 0; // where templates have it; the landing pad is 4 bytes long
  write(l);
  write_atomically(
      folder_ + "/stub.cpp",
      "#include <cstdlib>\n#include <cstring>\n#include <cstdio>\n#include <deepgen/kernel_abi.h>\n#include "
      "<deepgen/runtime.h>\n"
      "#include \"my-kernels.h\"\n"
      "extern \"C\" deepgen_status deepgen_run_gemm(const deepgen_function*, const deepgen_gemm_args*) {\n"
      "  return DEEPGEN_OK;\n}\n"
      "static unsigned registered;\n"
      "extern \"C\" int deepgen_register(const deepgen_function*, uint32_t n) { registered = n; return 0; }\n"
      "extern \"C\" void deepgen_unregister(const deepgen_function*, uint32_t n) { if (n != registered) "
      "_Exit(9); }\n"
      "int main() {\n"
      "  const deepgen_function* f = kernels_up_function();\n"
      "  const auto* bytes = reinterpret_cast<const unsigned char*>(f->kernels[0].entry);\n"
      "  if (registered != 2 || f->kernel_count != 2 || f->kernels[0].isa != 4 || f->operands[0].rows != "
      "512) return 1;\n"
      "  if (reinterpret_cast<uintptr_t>(bytes + 4) % 64) return 2;\n"
      "  for (int i = 0; i < 77; ++i)\n"
      "    if (bytes[4 + i] != static_cast<unsigned char>(i * 7 + 1)) return 3;\n"
      "  if (f->kernels[1].entry != kernels_down_function()->kernels[1].entry) return 4;\n"
      "  return f->kernels[0].args[3] == DEEPGEN_ARG_STRIDE_A && f->kernels[0].args[7] == DEEPGEN_ARG_B1 ? 0 "
      ": 5;\n"
      "}\n");
  const std::string build = "c++ -std=c++17 -I" + paths::in_source("runtime/include") + " " + folder_ +
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
    for (const char* part : {"/tmp", "/home", "/usr", paths::source})
      EXPECT_EQ(text.find(part), std::string::npos) << part;
}

TEST_F(EmbedTest, HeaderDocumentsTheFunction) {
  const std::string header = embed_header(library());
  for (const char* part : {"kernels_up: D = gelu((alpha * A * B + beta * C) + bias)", "M=512 N=2048 K=64",
                           "B  f32, 2048 x 64 (N x K, transposed), leading dimension 64", "bias: 2048 values",
                           "(8 bytes the smallest)", "DEEPGEN_ERROR_SIZE"})
    EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
  const std::string source = embed_source(library());
  for (const char* part :
       {"Kernels of kernels_up, best first", "x86-64-v4: cpu_tile isa=4 mr=4", "from the lock"})
    EXPECT_NE(source.find(part), std::string::npos) << part << "\n" << source;
}

/// Objects that include it do not wait for a search: what that finds must not change a byte.
TEST_F(EmbedTest, TheHeaderDependsOnProblemsAndArchsAlone) {
  Library without = library(), other = library();
  for (LibraryFunction& f : without.functions) f = declared(f.file, {"cpu"});
  EXPECT_NO_THROW(validate_names(without));
  EXPECT_THROW(validate(without), Error);
  for (LibraryFunction& f : other.functions)
    for (KernelFile& file : f.kernels)
      file.origin = "search", file.kernels.resize(1),
      file.kernels[0].choice.config = Config::parse("isa=4 mr=7");
  EXPECT_EQ(embed_header(without), embed_header(library()));
  EXPECT_EQ(embed_header(other), embed_header(library()));
  EXPECT_NE(embed_source(other), embed_source(library()));
  for (LibraryFunction& f : without.functions) f = declared(f.file, {"z80"});
  EXPECT_THROW(validate_names(without), Error);
}

TEST_F(EmbedTest, HeaderDocumentsAGate) {
  Library gated = library();
  Gemm& p = gated.functions[0].file.problem.gemm();
  p.gate = EpilogueOp::silu;
  const std::string header = embed_header(gated);
  for (const char* part : {"D = gelu((silu(alpha * A * Bg) * (alpha * A * Bu) + beta * C) + bias)",
                           "B  f32, 4096 x 64 (2 N x K, transposed: Bg, then Bu), leading dimension 64",
                           "bias: 2048 values", "silu(x) = x / (1 + exp(-x))"})
    EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
}

TEST_F(EmbedTest, HeaderDocumentsGroups) {
  Library grouped = library();
  grouped.functions[0].file.problem.gemm().groups = 8;
  const std::string header = embed_header(grouped);
  for (const char* part : {"offsets: 9 values of int32 in device memory", "matrix g of 8 in B",
                           "const int32_t* offsets", "bias: 2048 values, one a column, f32, for each group"})
    EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
}

TEST_F(EmbedTest, BestKernelFirstAndAwkwardOnesLeftOut) {
  const LibraryFunction f = library().functions[0];
  const auto kernels = linked_kernels(f);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].kernel->isa, 4);
  EXPECT_EQ(kernels[1].kernel->isa, 1);
}

TEST_F(EmbedTest, IdenticalCodeIsEmbeddedOnce) {
  const std::string source = embed_source(library()); // both functions have the same two images
  size_t count = 0;
  for (size_t at = 0; (at = source.find(".pushsection", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 2u);
}

/// Wherever the entry is in an image, calls arrive at an endbr64 and get there.
TEST_F(EmbedTest, CallsArriveAtALandingPad) {
  const std::string writes_42("\x48\xc7\x07\x2a\0\0\0\xc3", 8); // mov qword ptr [rdi], 42; ret
  Library l = library();
  std::vector<Kernel>& kernels = l.functions[0].kernels[0].kernels;
  kernels[0].code = writes_42, kernels[0].entry = 0;
  kernels[1].code = std::string(16, '\xcc') + writes_42, kernels[1].entry = 16;
  write(l);
  write_atomically(folder_ + "/calls.cpp",
                   "#include <cstring>\n#include <deepgen/kernel_abi.h>\n#include "
                   "<deepgen/runtime.h>\n#include \"my-kernels.h\"\n"
                   "extern \"C\" deepgen_status deepgen_run_gemm(const deepgen_function*, const "
                   "deepgen_gemm_args*) { return DEEPGEN_OK; }\n"
                   "extern \"C\" int deepgen_register(const deepgen_function*, uint32_t) { return 0; }\n"
                   "extern \"C\" void deepgen_unregister(const deepgen_function*, uint32_t) {}\n"
                   "int main() {\n"
                   "  const deepgen_function* f = kernels_up_function();\n"
                   "  for (int i = 0; i < 2; ++i) {\n"
                   "    uint64_t value = 0;\n"
                   "    f->kernels[i].entry(&value);\n"
                   "    if (value != 42) return 1;\n"
                   "    if (std::memcmp(reinterpret_cast<const void*>(f->kernels[i].entry), "
                   "\"\\xf3\\x0f\\x1e\\xfa\", 4)) return 2;\n"
                   "  }\n"
                   "  return 0;\n"
                   "}\n");
  ASSERT_EQ(std::system(("c++ -std=c++17 -fcf-protection=full -I" + paths::in_source("runtime/include") +
                         " " + folder_ + "/calls.cpp " + folder_ + "/my-kernels.cpp -o " + folder_ + "/calls")
                            .c_str()),
            0);
  EXPECT_EQ(WEXITSTATUS(std::system((folder_ + "/calls").c_str())), 0);
}

/// A search vouches for its winner, and the build for what it has verified; the rest is marked.
TEST_F(EmbedTest, MarksWhatNobodyHasVerified) {
  const auto marked = [](const Library& l, const std::string& config) {
    return embed_source(l).find("\"cpu_tile " + config + " (not verified)\"") != std::string::npos;
  };
  Library l = library();
  l.functions.resize(1);
  KernelFile& file = l.functions[0].kernels[0];
  file.kernels[0].sha256 = "fallback", file.kernels[1].sha256 = "main";
  for (const char* origin : {"lock", "search"}) {
    file.origin = origin;
    EXPECT_FALSE(marked(l, "isa=4 mr=4"));
    EXPECT_TRUE(marked(l, "isa=1 mr=4"));
  }
  for (const char* origin : {"default", "lock, other code"}) {
    file.origin = origin;
    EXPECT_TRUE(marked(l, "isa=4 mr=4"));
  }
  l.functions[0].verified = {"fallback"};
  EXPECT_TRUE(marked(l, "isa=4 mr=4"));
  EXPECT_FALSE(marked(l, "isa=1 mr=4"));
  l.functions[0].verified = {"fallback", "main"};
  EXPECT_FALSE(marked(l, "isa=4 mr=4"));
}

TEST_F(EmbedGpuTest, LaterArchsAndExactDevicesComeFirst) {
  std::string order;
  const Library l = gpu_library(true);
  for (const LinkedKernel& k : linked_kernels(l.functions[0]))
    order += k.file->arch + "/" + k.kernel->role + "/" + k.kernel->device + " ";
  EXPECT_EQ(order,
            "cpu/main/ cpu/fallback/ sm_90a/main/NVIDIA H200 sm_90a/main/ sm_90a/fallback/ sm_80/main/ "
            "sm_80/fallback/ ");
}

TEST_F(EmbedGpuTest, CompilesAndSharesIdenticalCode) {
  const char* use = "#include \"my-kernels.h\"\n"
                    "int use(const int8_t* a, const float* v, int8_t* d, deepgen_stream s) {\n"
                    "  deepgen_gemm_args args;\n"
                    "  return kernels::up(a, a, v, 0.0, 1.0, v, v, v, d, s) || kernels::up(args, s) ||\n"
                    "         kernels::up_prepare() || kernels::up_workspace_size();\n"
                    "}\n";
  for (bool with_cpu : {true, false}) {
    const Library l = gpu_library(with_cpu);
    write(l);
    write_atomically(folder_ + "/use.cpp", use);
    write_atomically(folder_ + "/use.c",
                     "#include \"my-kernels.h\"\n"
                     "int use(void) { return kernels_up_launch(0, 0) || kernels_up_prepare(); }\n");
    EXPECT_EQ(compile("c++ -std=c++17", "my-kernels.cpp"), 0);
    EXPECT_EQ(compile("c++ -std=c++17", "use.cpp"), 0);
    EXPECT_EQ(compile("cc -std=c99", "use.c"), 0);
    const std::string source = embed_source(l), header = embed_header(l);
    auto count = [&](const std::string& text) {
      size_t n = 0;
      for (size_t at = 0; (at = source.find(text, at)) != std::string::npos; ++at) ++n;
      return n;
    };
    EXPECT_EQ(count("deepgen_gpu_code deepgen_"), 4u) << "the plain fallback is shared";
    EXPECT_EQ(count(".rodata."), 4u);
    EXPECT_EQ(count("deepgen_register"), with_cpu ? 1u : 0u);
    EXPECT_EQ(header.find("kernels_up_run") != std::string::npos, with_cpu);
    for (const char* part : {"scale_a: one f32 value", "bias_row: 512 values, one a row, f32",
                             "clamp(x) = min(max(x", "residual  f32, 512 x 2048"})
      EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
    for (const char* part : {"sm_90a, NVIDIA H200: tile x=8", "sm_80: from the lock"})
      EXPECT_NE(source.find(part), std::string::npos) << part << "\n" << source;
  }
}

/// The linked tables hold the cubin's bytes and the PTX with its zero.
TEST_F(EmbedGpuTest, TablesHoldTheCode) {
  write(gpu_library(false));
  write_atomically(
      folder_ + "/stub.cpp",
      "#include <cstring>\n#include <deepgen/kernel_abi.h>\n#include <deepgen/runtime.h>\n#include "
      "\"my-kernels.h\"\n"
      "extern \"C\" deepgen_status deepgen_launch_gemm(const deepgen_function*, const deepgen_gemm_args*, "
      "deepgen_stream) {\n"
      "  return DEEPGEN_OK;\n}\n"
      "extern \"C\" deepgen_status deepgen_prepare(const deepgen_function*) { return DEEPGEN_OK; }\n"
      "extern \"C\" void deepgen_unregister(const deepgen_function*, uint32_t) {}\n"
      "extern \"C\" size_t deepgen_launch_workspace_size(const deepgen_function*) { return 0; }\n"
      "int main() {\n"
      "  const deepgen_function* f = kernels_up_function();\n"
      "  const deepgen_kernel &first = f->kernels[0], &last = f->kernels[4];\n"
      "  if (f->kernel_count != 5 || std::strcmp(first.device, \"NVIDIA H200\") || last.device) return 1;\n"
      "  if (first.gpu->code_bytes != 13 || std::memcmp(first.gpu->code, \"another cubin\", 13)) return 2;\n"
      "  if (std::strcmp(last.gpu->ptx, \"// PTX of \\\"plain\\\"\\n.target sm_80\\n\")) return 3;\n"
      "  if (first.launch_count != 2 || first.launches[0].grid[1] != 2 || first.launches[0].cluster[0] != 2 "
      "||\n"
      "      first.launches[0].shared != 99 || first.launches[0].flags != DEEPGEN_LAUNCH_PERSISTENT) return "
      "4;\n"
      "  if (std::strcmp(first.launches[1].entry, \"deepgen_reduce\") || first.maps[0].operand != "
      "DEEPGEN_ARG_B) return 5;\n"
      "  const deepgen_requirement *wide = first.requirements, *any = last.requirements;\n"
      "  if (any[0].most_pitch || wide[0].most_pitch != 1 << 20 || wide[3].most_pitch) return 8;\n"
      "  if (any[0].align != 1 || wide[3].align != 8 || wide[4].align != 1 || last.gpu != f->kernels[2].gpu "
      "|| *last.gpu->state) "
      "return 6;\n"
      "  return *f->devices || first.args[1] != DEEPGEN_ARG_MAP_B ? 7 : 0;\n"
      "}\n");
  ASSERT_EQ(std::system(("c++ -std=c++17 -I" + paths::in_source("runtime/include") + " " + folder_ +
                         "/stub.cpp " + folder_ + "/my-kernels.cpp -o " + folder_ + "/stub")
                            .c_str()),
            0);
  EXPECT_EQ(WEXITSTATUS(std::system((folder_ + "/stub").c_str())), 0);
}

/// What a lock and kernel files say goes into comments and literals, which it must not leave.
TEST_F(EmbedGpuTest, TextsFromFilesStayTextsForTheCompilers) {
  write_atomically(folder_ + "/use.c",
                   "#include \"my-kernels.h\"\nint use(void) { return kernels_up_prepare(); }\n");
  for (const std::string& text : {std::string("*/ #error hostile /*"),
                                  std::string("?"
                                              "?/\\"),
                                  std::string("\"; int hostile = 1/0; \""), std::string("\\\");\n#error \\"),
                                  std::string("// \xe2\x80\xae \xff \x1b[2J \0 \x7f", 18),
                                  std::string("\\u0041\\U00000041 ?"
                                              "?/")}) {
    Library l = gpu_library(true);
    l.target = text;
    for (KernelFile& file : l.functions[0].kernels)
      for (Kernel& k : file.kernels) {
        k.choice.template_name = text;
        if (file.arch == "cpu") continue;
        if (!k.device.empty()) k.device = text;
        k.target = text, k.ptx += text + "\n" + text, k.launches[0].entry = text;
      }
    write(l);
    for (const char* c : {"cc -std=c99", "cc -std=c11", "clang -std=c99", "cc -std=gnu99 -trigraphs"})
      if (std::string(c).find("clang") == std::string::npos || has_clang()) {
        EXPECT_EQ(compile(c, "use.c"), 0) << c << ": " << text << "\n"
                                          << read_file(folder_ + "/my-kernels.h");
      }
    for (const char* cxx :
         {"c++ -std=c++17", "c++ -std=c++17 -trigraphs -Wno-trigraphs", "clang++ -std=c++17"})
      if (std::string(cxx).find("clang") == std::string::npos || has_clang()) {
        EXPECT_EQ(compile(cxx, "my-kernels.cpp"), 0) << cxx << ": " << text;
      }
  }
}

/// From the lock on, with the device's name that once closed the comment it was written into.
TEST_F(EmbedGpuTest, ADevicesNameFromALockStaysInItsComment) {
  const Lock lock =
      Lock::parse("{\"schema\":\"deepgen.lock/"
                  "1\",\"entries\":[{\"problem\":\"p\",\"arch\":\"sm_90a\",\"device\":{\"name\":"
                  "\"H200 */ #error hostile "
                  "/*\",\"cores\":1,\"l2\":1,\"shared_block\":1,\"shared_multiprocessor\":1},\"template\":"
                  "\"tile\",\"revision\":1,\"config\":{},\"sha256\":\"\",\"toolchain\":\"t\"}]}",
                  "x");
  Library l = gpu_library(false);
  l.functions[0].kernels[1].kernels.back().device = lock.entries()[0].device.name;
  write(l);
  write_atomically(folder_ + "/use.c",
                   "#include \"my-kernels.h\"\nint use(void) { return kernels_up_prepare(); }\n");
  EXPECT_EQ(compile("cc -std=c99", "use.c"), 0);
  EXPECT_EQ(compile("c++ -std=c++17", "my-kernels.cpp"), 0);
}

TEST_F(EmbedGpuTest, EveryArchNeedsAKernelForAllOperands) {
  Library l = gpu_library(false);
  l.functions[0].kernels[0].kernels.pop_back();
  EXPECT_NE(error_of(l).find("no kernel of sm_80 takes operands"), std::string::npos) << error_of(l);
  l = gpu_library(false);
  l.functions[0].kernels[0].kernels[0].launches[0].grid[0] = int64_t(1) << 40;
  EXPECT_NE(error_of(l).find("out of range"), std::string::npos);
}

/// CMake refuses bad names before anything is built; who calls the tool directly gets the same answer.
TEST_F(EmbedTest, ReservedWordsAreThoseOfTheBuild) {
  const std::string cmake = read_file(paths::in_source("cmake/DeepGenWords.cmake"));
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
  l.functions[0].file.problem.gemm().m = 513;
  EXPECT_NE(error_of(l).find("another problem"), std::string::npos);
  l = library();
  l.functions[0].kernels[0].status = "failed", l.functions[0].kernels[0].detail = "no registers left";
  EXPECT_NE(error_of(l).find("no registers left"), std::string::npos);
  for (const char* name : {"", "a\".h", "a\\.h", "a\n.h"}) {
    l = library();
    l.header_name = name;
    EXPECT_NE(error_of(l).find("header's name"), std::string::npos) << name;
  }
  l = library();
  l.functions[0].kernels.clear();
  EXPECT_NE(error_of(l).find("no kernel"), std::string::npos);
  l = library();
  l.functions[0].kernels[0].kernels[0].args = {"nothing"};
  EXPECT_THROW(embed_source(l), Error);
}

} // namespace
} // namespace deepgen::embed_test
