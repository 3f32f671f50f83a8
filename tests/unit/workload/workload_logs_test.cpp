// One small log of each kind and version: which problems it has, how often, how long, and what is not
// translated.
#include "tests/paths.h"
#include "workload/import.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace deepgen::workload_logs_test {
namespace {

struct Expected {
  std::string key; ///< what of it varies
  int64_t calls = 1;
  double seconds = 0; ///< 0: the log has none
};
struct Skipped {
  std::string why; ///< part of it
  int64_t calls = 1;
};

/// "m=109 n=16032 k=16384 a=bf16 layout=nt": batch 1, b and d as a, no epilogue, unless they are named.
std::string full_key(const std::string& text) {
  std::map<std::string, std::string> fields;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    fields[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  fields.try_emplace("batch", "1");
  fields.try_emplace("b", fields["a"]);
  fields.try_emplace("d", fields["a"] == "tf32" ? "f32" : fields["a"]);
  fields.try_emplace("epilogue", "none");
  const std::map<std::string, int> sizes = {{"f32", 4},  {"f64", 8},  {"f16", 2},  {"bf16", 2},
                                            {"tf32", 4}, {"e4m3", 1}, {"e5m2", 1}, {"i8", 1}};
  const int align = std::min({sizes.at(fields["a"]), sizes.at(fields["b"]), sizes.at(fields["d"])});
  const std::string acc = fields["a"] == "f64" ? "f64" : fields["a"] == "i8" ? "i32" : "f32";
  return "gemm m=" + fields["m"] + " n=" + fields["n"] + " k=" + fields["k"] + " batch=" + fields["batch"] +
         " a=" + fields["a"] + " b=" + fields["b"] + " d=" + fields["d"] + " acc=" + acc +
         " layout=" + fields["layout"] + " epilogue=" + fields["epilogue"] +
         " align=" + std::to_string(align);
}

void expect_log(const std::string& file, const std::vector<Expected>& problems,
                const std::vector<Skipped>& skipped, const std::string& kind) {
  SCOPED_TRACE(file);
  Importer importer;
  importer.read(paths::in_source("tests/workload/logs/" + file));
  const Workload w = importer.workload();
  std::map<std::string, WorkloadProblem> found;
  for (const WorkloadProblem& p : w.problems) found[p.problem.key()] = p;
  EXPECT_EQ(found.size(), problems.size());
  for (const Expected& e : problems) {
    const std::string key = e.key.starts_with("rows ") ? e.key : full_key(e.key);
    ASSERT_TRUE(found.count(key)) << key << "\n" << w.serialize();
    EXPECT_EQ(found[key].calls, e.calls) << key;
    EXPECT_EQ(found[key].timed, e.seconds > 0) << key;
    EXPECT_GT(found[key].seconds, 0) << key;
    EXPECT_NEAR(found[key].seconds, e.seconds, e.seconds > 0 ? 1e-5 * e.seconds : 1) << key;
    EXPECT_FALSE(found[key].lines.empty());
  }
  EXPECT_EQ(w.skipped.size(), skipped.size()) << w.serialize();
  for (const Skipped& e : skipped) {
    const auto match = [&](const WorkloadSkipped& s) { return s.why.find(e.why) != std::string::npos; };
    const auto it = std::find_if(w.skipped.begin(), w.skipped.end(), match);
    ASSERT_NE(it, w.skipped.end()) << e.why << "\n" << w.serialize();
    EXPECT_EQ(it->calls, e.calls) << e.why;
    EXPECT_FALSE(it->example.empty());
    EXPECT_FALSE(it->lines.empty());
  }
  ASSERT_EQ(w.logs.size(), 1u);
  EXPECT_EQ(w.logs[0].name, file);
  ASSERT_EQ(w.logs[0].kinds.size(), 1u);
  EXPECT_EQ(w.logs[0].kinds[0].first, kind);
  const std::string text = w.serialize();
  EXPECT_EQ(Workload::parse(text, "again").serialize(), text);
}

TEST(WorkloadLogs, Hipblaslt) {
  expect_log("hipblaslt_64.log",
             {{"m=109 n=16032 k=16384 a=bf16 layout=nt", 3},
              {"m=32 n=768 k=512 batch=4 a=f16 layout=tn epilogue=bias+gelu_tanh", 20}},
             {{"gradient", 7}}, "hipBLASLt profile");
  expect_log("hipblaslt_128.log",
             {{"m=3072 n=768 k=2048 a=e5m2 b=e4m3 d=bf16 layout=nt epilogue=scale_a+scale_b+silu", 11},
              {"m=40 n=96 k=56 a=e4m3 d=bf16 layout=nt epilogue=scale_row+scale_col", 2}},
             {{"swizzleA", 1}, {"fnuz", 9}, {"grouped", 4}, {"cut off", 1}}, "hipBLASLt profile");
  expect_log("hipblaslt_32.log",
             {{"m=512 n=1024 k=2048 a=f16 layout=nn", 2},
              {"m=1 n=10240 k=8192 a=e4m3 d=bf16 layout=nt epilogue=scale_row+scale_col+bias"},
              {"m=48 n=64 k=32 a=tf32 layout=nt"}},
             {{"beta is not 0", 1}}, "hipBLASLt bench");
}

TEST(WorkloadLogs, Rocblas) {
  expect_log("rocblas_bench.log",
             {{"m=2048 n=17408 k=5120 a=f16 d=f32 layout=nt"},
              {"m=44 n=33 k=55 batch=6 a=f64 layout=tn"},
              {"m=64 n=128 k=32 a=f32 layout=nn"}},
             {{"complex", 1}}, "rocBLAS bench");
  expect_log("rocblas_profile.log",
             {{"m=108 n=256 k=512 a=f16 layout=tn", 12},
              {"m=50 n=100 k=25 a=f32 layout=tt", 2},
              {"m=20 n=10 k=30 batch=8 a=f64 layout=nn", 3}},
             {{"batch of pointers", 1}}, "rocBLAS profile");
}

TEST(WorkloadLogs, Cublaslt) {
  expect_log("cublaslt.log",
             {{"m=300 n=1000 k=700 a=tf32 layout=nn"},
              {"m=32 n=2048 k=1024 a=e5m2 b=e4m3 d=bf16 layout=nt epilogue=scale_a+scale_b"},
              {"m=40 n=96 k=64 batch=12 a=bf16 layout=tn epilogue=bias+relu"}},
             {{"scales of blocks", 1}, {"epilogue", 1}}, "cuBLASLt trace");
}

TEST(WorkloadLogs, OnednnInThreeGrammars) {
  expect_log("onednn_v1.log",
             {{"m=128 n=37888 k=3584 a=bf16 layout=nn", 2, 1.28311e-3},
              {"m=77 n=48 k=64 a=f32 layout=nt epilogue=bias+gelu+multiply", 1, 5e-4},
              {"m=16 n=32 k=64 a=i8 d=bf16 layout=nt epilogue=scale_a+scale_col", 1, 2.5e-4}},
             {{"'u8'", 1}, {"does not describe", 1}}, "oneDNN verbose");
  expect_log("onednn_primitive.log",
             {{"m=256 n=4096 k=11008 a=bf16 layout=nt", 1, 1.21704e-3},
              {"m=32 n=64 k=16 batch=8 a=f32 layout=tn", 1, 1.25e-4},
              {"m=256 n=4096 k=1024 a=f32 layout=nt epilogue=bias+relu", 1, 2.5e-3}},
             {}, "oneDNN verbose");
  expect_log("onednn_exec.log",
             {{"m=1024 n=1024 k=1000 a=f32 layout=nt", 1, 41.22e-3},
              {"m=32 n=48 k=64 a=f32 layout=nn epilogue=bias+relu", 1, 5e-5}},
             {}, "oneDNN verbose");
}

TEST(WorkloadLogs, Mkl) {
  expect_log("mkl.log",
             {{"m=128 n=10 k=64 a=f32 layout=tn", 2, 5e-5},
              {"m=200 n=300 k=100 a=f64 layout=nt", 1, 1.5e-3},
              {"m=32 n=64 k=16 a=bf16 d=f32 layout=nn", 1, 2}},
             {{"ZGEMM", 1}, {"SGEMM_BATCH_STRIDED", 1}}, "MKL verbose");
}

TEST(WorkloadLogs, PyTorch) {
  expect_log("tunableop.csv",
             {{"m=8 n=6144 k=2560 a=bf16 layout=nt", 1, 2.00725e-4},
              {"m=120 n=128 k=64 batch=96 a=f32 layout=nt"},
              {"m=12288 n=64 k=2048 a=e4m3 d=bf16 layout=nt epilogue=scale_row+scale_col"},
              {"m=128 n=64 k=2048 a=e5m2 b=e4m3 d=f16 layout=nt epilogue=scale_a+scale_b+bias"},
              {"m=80 n=96 k=48 a=f16 layout=tn epilogue=bias", 1, 5e-4}},
             {{"fnuz", 1}}, "TunableOp");
  expect_log("torch_cpu.json",
             {{"m=512 n=1408 k=500 a=f32 layout=nt epilogue=bias", 2, 1.5e-4},
              {"m=128 n=96 k=64 batch=12 a=f16 layout=tn", 1, 5e-5},
              {"m=16 n=32 k=64 a=e4m3 d=bf16 layout=nt epilogue=scale_row+scale_col", 1, 1e-5}},
             {{"Input Strides", 1}}, "PyTorch trace");
  // Kernels' times, two of one operator, not the time of their launches.
  expect_log("torch_gpu.json", {{"m=64 n=48 k=32 a=bf16 layout=nn", 2, 3e-4}}, {}, "PyTorch trace");
}

TEST(WorkloadLogs, ProblemKeys) {
  expect_log("keys.csv",
             {{"m=512 n=2048 k=512 a=f32 layout=nt epilogue=bias+gelu", 40, 1.75e-3},
              {"rows m=4096 n=2048 x=bf16 d=bf16 kind=rms_norm options=scale", 5, 1e-4}},
             {{"lacks the field", 4}, {"calls is no size", 1}}, "problem keys");
}

} // namespace
} // namespace deepgen::workload_logs_test
