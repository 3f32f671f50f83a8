// Manifests and auto-scheduler.cfg: what is taken, and what is refused in words.
#include "base/text/error.h"
#include "workload/mlir/manifest.h"
#include "workload/mlir/scheduler.h"

#include <functional>
#include <gtest/gtest.h>

namespace deepgen::tensors::mlir_files_test {
namespace {

std::string said(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void expect_said(const std::function<void()>& work, const std::string& words) {
  const std::string text = said(work);
  EXPECT_NE(text.find(words), std::string::npos) << text << "\nlacks " << words;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Manifest good() {
  Manifest m;
  m.source = "x.mlir", m.sha256 = std::string(64, 'a');
  Entry e;
  e.name = "f", e.function = "f", e.whole = true;
  e.problem.m = 4, e.problem.n = 6, e.problem.k = 5,
  e.problem.epilogue = {EpilogueOp::bias, EpilogueOp::clamp};
  e.operands = {{"a", 2}, {"bias", 1}, {"b", 2}, {"d", 2}};
  e.arguments = {{"alpha", 0.25}, {"clamp_high", 6}, {"clamp_low", -0.5}, {"lda", 7}};
  m.functions.push_back(e);
  m.left.push_back({"linalg.generic", "its body", 3});
  return m;
}

TEST(MlirManifest, RoundTrip) {
  const Manifest m = good();
  EXPECT_EQ(Manifest::parse(m.serialize(), "x"), m);
  EXPECT_EQ(Manifest::parse(m.serialize(), "x").serialize(), m.serialize());
}

TEST(MlirManifest, Refused) {
  const std::string text = good().serialize();
  const auto with = [&](const std::string& from, const std::string& to, const std::string& words) {
    expect_said([&] { Manifest::parse(replaced(text, from, to), "x"); }, words);
  };
  with("\"name\":\"f\"", "\"name\":\"int\"", "reserved");
  with("\"name\":\"f\"", "\"name\":\"f\\\");\"", "no name of a function");
  with(std::string(64, 'a'), "beef", "64 hex digits");
  with("[\"bias\",1],", "", "operand 'bias' is missing");
  with("[\"bias\",1]", "[\"residual\",2]", "no such operand");
  with("[\"bias\",1]", "[\"a\",2]", "twice");
  with("[\"bias\",1]", "[\"bias\",99]", "no such operand");
  with("\"lda\":7", "\"lda\":7.5", "argument 'lda'");
  with("\"lda\":7", "\"lda\":-2", "argument 'lda'");
  with("\"lda\":7", "\"workspace\":7", "argument 'workspace'");
  with("\"alpha\":0.25", "\"alpha\":\"0; evil\"", "argument 'alpha'");
  with("gemm m=4", "rows m=4", "");
  with("gemm m=4", "gemm m=1..4", "no such problem");
  with("deepgen.mlir/1", "deepgen.mlir/2", "schema");
}

const std::string kIni = "[Env]\ninput_file = matmul.mlir\n\n[SearchSpace]\ntile_m = [64,128]\nblock_dim_x: "
                         "64\n[SearchStrategy]\ntuner = gridTuner\nn_trial = 16\n";

TEST(MlirScheduler, Settings) {
  const Scheduler s = Scheduler::parse(kIni, "auto-scheduler.cfg");
  EXPECT_EQ(s.input, "matmul.mlir");
  EXPECT_EQ(s.trials, 16);
  EXPECT_EQ(s.space, (std::vector<std::pair<std::string, std::vector<int64_t>>>{{"tile_m", {64, 128}},
                                                                                {"block_dim_x", {64}}}));
  EXPECT_EQ(Scheduler::parse(replaced(kIni, "[Env]", "\xef\xbb\xbf; by hand\r\n[Env]\r"), "x").trials, 16);
  EXPECT_EQ(search_of(s, {Gemm()}).options.strategy, "grid");
  Gemm half;
  half.a = half.b = half.d = Type::f16;
  complete(half);
  const ScheduledSearch search = search_of(s, {half});
  EXPECT_EQ(search.options.templates.at("mma_sync").values.at("bm"), (std::vector<int64_t>{64, 128}));
  EXPECT_EQ(search.options.templates.at("mma_sync").values.at("warps_n"), (std::vector<int64_t>{2}));
}

TEST(MlirScheduler, Refused) {
  const auto with = [&](const std::string& from, const std::string& to, const std::string& words) {
    expect_said([&] { search_of(Scheduler::parse(replaced(kIni, from, to), "cfg"), {Gemm()}); }, words);
  };
  with("[Env]", "[Environment]", "cfg:1");
  with("tile_m", "tile_x", "unknown key 'tile_x' in [SearchSpace]");
  with("[64,128]", "[64,x]", "bad value of 'tile_m'");
  with("[64,128]", "[64,64]", "different whole numbers");
  with("[64,128]", "[]", "'tile_m' is empty");
  with("n_trial = 16", "n_trial = 0", "1 to 100000");
  with("n_trial = 16", "", "'n_trial' is missing");
  with("gridTuner", "MyTuner", "XGBoostTuner");
  with("[SearchSpace]", "input_file = other.mlir\n[SearchSpace]", "'input_file' has two values");
  with("block_dim_x: 64", "block_dim_z = [2]", "block_dim_z is not [1]");
  with("tile_m = [64,128]", "tile_m", "key = value");
}

} // namespace
} // namespace deepgen::tensors::mlir_files_test
