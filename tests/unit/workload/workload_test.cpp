// What is read besides lines: packed files, damage, several logs; and the file that is written.
#include "workload/workload.h"

#include "base/text/error.h"
#include "workload/import.h"
#include "workload/summary.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

namespace deepgen::workload_test {
namespace {

constexpr const char* kLine = "MKL_VERBOSE SGEMM(N,N,10,20,30,0x1,0x2,10,0x3,30,0x4,0x5,10) 2.00ms CNR:OFF\n";
constexpr const char* kKey =
    "gemm m=20 n=10 k=30 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4";

std::string gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 1000, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data())),
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data()), stream.avail_out = uInt(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), 0);
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1); // as the program writes it
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

Workload imported(const std::vector<std::string>& logs) {
  Importer importer;
  for (const std::string& log : logs) {
    const std::unique_ptr<LogBytes> bytes = log_of(log, "some/folder/a.log");
    importer.read(*bytes, "some/folder/a.log");
  }
  return importer.workload();
}

std::string failure(const std::string& log) {
  try {
    imported({log});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string many_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kLine;
  return text;
}

TEST(WorkloadImport, PackedLogsAreReadAsPlainOnes) {
  const std::string text = many_lines(32768);
  for (const std::string& log :
       {text, gzip(text), zstd(text), gzip(text.substr(0, 777)) + gzip(text.substr(777)),
        zstd(text.substr(0, 777)) + zstd(text.substr(777))}) {
    const Workload w = imported({log});
    ASSERT_EQ(w.problems.size(), 1u);
    EXPECT_EQ(w.problems[0].problem.key(), kKey);
    EXPECT_EQ(w.problems[0].calls, 32768);
    EXPECT_EQ(w.logs[0].lines, 32768);
    EXPECT_EQ(w.logs[0].name, "a.log") << "no folder";
  }
}

TEST(WorkloadImport, APackedLogThatIsCutOffOrDamagedIsRefused) {
  const std::string text = many_lines(5000);
  for (const std::string& log : {gzip(text), zstd(text)}) {
    for (size_t size : {log.size() - 1, log.size() - 9, log.size() / 2, size_t(5)})
      EXPECT_NE(failure(log.substr(0, size)).find("ends before its end"), std::string::npos) << size;
    std::string damaged = log;
    damaged[log.size() / 2] = char(damaged[log.size() / 2] ^ 0x55);
    EXPECT_NE(failure(damaged).find("it is packed, and "), std::string::npos) << failure(damaged);
    const std::string tail = failure(log + "a tail that is none");
    EXPECT_NE(tail.find("damaged"), std::string::npos) << tail;
  }
}

TEST(WorkloadImport, ALogOfNoKnownKindIsRefused) {
  for (const std::string& log : {std::string(), std::string("hello\nworld\n"), std::string(3000000, 'x')})
    EXPECT_NE(failure(log).find("no line of this log is of a kind that is known"), std::string::npos);
  EXPECT_NE(failure("{\"traceEvents\": [{\"name\": \"aten::mm\"").find("cut off"), std::string::npos);
  EXPECT_NE(failure("{\"traceEvents\": [{\"name\": \"" + std::string(5 << 20, 'x') + "\"}]}")
                .find("more than 4 MiB"),
            std::string::npos);
  EXPECT_NE(failure("[{\"a\":" + std::string(1000, '[')).find("nested"), std::string::npos);
}

TEST(WorkloadImport, ADamagedTraceIsRefusedWhereverTheDamageIs) {
  const std::string event = R"({"name": "a{]}\\\"[", "args": {"Input Dims": [[1]]}})";
  EXPECT_TRUE(imported({"[" + event + "]"}).problems.empty()) << "it is whole";
  const std::pair<std::string, const char*> cases[] = {
      {"[" + event + ", 7]", "an event is no object"},
      {"[" + event + ", \"{}\"]", "an event is no object"},
      {"[" + event + "} ]", "an event is no object"},
      {"[" + event + event + "]", "no valid JSON"},
      {"[{\"a\": ]}, {}]", "an event is no valid JSON"},
      {"[{\"a\": 1,}]", "an event is no valid JSON"},
      {"[{\"a\": \"\xff\"}]", "an event is no valid JSON"},
      {"[" + event, "is cut off"},
      {"{\"a\": [{}, 1],\n\"traceEvents\": [" + event + "]", "is cut off"},
      {"{\"a\": \"" + std::string(5 << 20, 'x') + "\",\n\"traceEvents\": []}", "more than 4 MiB"},
      {"{\"a\":\n" + std::string(200, '[') + std::string(200, ']') + "}", "nested"},
  };
  for (const auto& [log, why] : cases)
    EXPECT_NE(failure(log).find(why), std::string::npos) << log.substr(0, 80) << ": " << failure(log);
}

TEST(WorkloadImport, WhatATraceSaysInAnotherFormIsLostNotMisread) {
  const auto with = [](const std::string& dims, const std::string& strides = "[[4,1],[8,1]]",
                       const std::string& types = "[\"float\",\"float\"]", const char* more = "") {
    return imported({"[\n{\"name\":\"aten::mm\",\"dur\":5,\"args\":{\"Input Dims\":" + dims +
                     ",\"Input Strides\":" + strides + ",\"Input type\":" + types + more + "}}]"});
  };
  const Workload good = with("[[2,4],[4,8]]");
  ASSERT_EQ(good.problems.size(), 1u);
  const Gemm& gemm = good.problems[0].problem.gemm();
  EXPECT_EQ((std::vector<int64_t>{gemm.m, gemm.n, gemm.k}), (std::vector<int64_t>{2, 8, 4}));
  EXPECT_EQ(gemm.layout, Layout::nn);
  EXPECT_EQ(good.problems[0].seconds, 5e-6);
  EXPECT_EQ(
      with("[[2,4],[4,8]]", "[[4,1],[8,1]]", "[\"float\",\"float\"]", ",\"more\":{\"Input Dims\":[[1]]}")
          .problems.size(),
      1u)
      << "a key of another object";
  for (const char* dims :
       {"7", "[]", "[[2,4]]", "[[2,4],8]", "[[2,4],[4,[8]]]", "[[2,4],[4,8.0]]", "[[2,4],[4,-8]]",
        "[[2,4],[4,1e300]]", "[[2,4],[4,18446744073709551615]]", "[[2,4],[4,null]]", "[[2,4],[4,\"8\"]]",
        "[[2,4],{\"4\":8}]", "[[2,4],[1,1,1,1,1,1,1,4,8]]"}) {
    const Workload w = with(dims);
    EXPECT_TRUE(w.problems.empty()) << dims;
    ASSERT_EQ(w.skipped.size(), 1u) << dims;
    EXPECT_NE(w.skipped[0].why.find("Input Dims are not understood"), std::string::npos) << w.skipped[0].why;
  }
  EXPECT_EQ(with("[[2,4],[4,8]]", "[[4,1]]").skipped.size(), 1u);
  EXPECT_EQ(with("[[2,4],[4,8]]", "[[4,1],[8,1]]", "[\"float\",1]").skipped.size(), 1u);
}

TEST(WorkloadImport, LongLinesAreCutAndCounted) {
  const std::string longer = std::string(kLine).substr(0, 70) + std::string(3 << 20, ' ') + "\n";
  const Workload w = imported({kLine + longer + kLine + std::string(2 << 20, 'y') + "\n" + kLine});
  ASSERT_EQ(w.problems.size(), 1u);
  EXPECT_EQ(w.problems[0].calls, 3);
  EXPECT_EQ(w.problems[0].lines, (std::vector<LogPlace>{{0, 1}, {0, 3}, {0, 5}}));
  ASSERT_EQ(w.skipped.size(), 1u);
  EXPECT_EQ(w.skipped[0].why, "the line is longer than 1 MiB");
  EXPECT_EQ(w.logs[0].lines, 5);
}

TEST(WorkloadImport, ALastLineWithoutABreakAndLinesOfWindows) {
  std::string text = kLine;
  text.insert(text.size() - 1, "\r");
  EXPECT_EQ(imported({text + std::string(kLine).substr(0, 80)}).problems[0].calls, 2);
}

TEST(WorkloadImport, ATimeBelowZeroIsNoTime) {
  const std::string call = "GemmTunableOp_float_TN,tn_128_128_64_ld_64_64_128,Default";
  const auto seconds = [&](const std::string& cell) {
    const Workload w = imported({call + cell + "\n"});
    return w.problems.size() == 1 ? w.problems[0].seconds : -1;
  };
  const double estimated = seconds("");
  for (const char* cell : {",-5", ", -1e300", ",-inf", ",nan", ",1e999", ",x"})
    EXPECT_EQ(seconds(cell), estimated) << cell;
  EXPECT_EQ(seconds(", 0.5 "), 5e-4);
}

TEST(WorkloadImport, LinesThatBeginLikeCallsAreCountedWithAReason) {
  for (const char* line :
       {"rocblas-bench -f -m 4 -n 4 -k 4", "Gemm,aTunableOp_float_TN", "GemmTunableOp_,tn_1_2_3",
        "hipblaslt-bench ", "- {function: }", "- { rocblas_function: 'rocblas_gemm'}", "MKL_VERBOSE GEMM()",
        "onednn_verbose,exec,cpu,matmul", "onednn_verbose,exec,cpu,inner_product,,,,,,mbicoc,1",
        "[cublasLt][1][Trace][cublasLtMatmul] Adesc=[", "[cublasLt][1][Trace][Matmul"}) {
    const Workload w = imported({kLine + std::string(line) + "\n"});
    EXPECT_EQ(w.problems.size(), 1u) << line;
    EXPECT_LE(w.skipped.size(), 1u) << line;
  }
}

TEST(WorkloadImport, ProgramsMayLogObjectsOfTheirOwn) {
  const Workload w = imported({"{\"level\": \"info\"}\n" + std::string(kLine) + "{\"level\": \"info\"}\n"});
  ASSERT_EQ(w.problems.size(), 1u);
  EXPECT_EQ(w.problems[0].lines, (std::vector<LogPlace>{{0, 2}}));
}

TEST(WorkloadImport, CallsThatAreLoggedTwiceAreCountedOnce) {
  const std::string bench =
      "hipblaslt-bench -m 8 -n 8 -k 8 --transA N --transB N --a_type f16_r --b_type f16_r --c_type "
      "f16_r --d_type f16_r --compute_type f32_r --beta 0\n";
  const std::string profile =
      "- {function: matmul, M: 8, N: 8, K: 8, transA: N, transB: N, a_type: f16_r, b_type: f16_r, "
      "c_type: f16_r, d_type: f16_r, compute_type: f32_r, beta: 0, call_count: 2}\n";
  EXPECT_EQ(imported({bench + bench}).problems[0].calls, 2);
  EXPECT_EQ(imported({bench + bench + profile}).problems[0].calls, 2);
  EXPECT_EQ(imported({bench + bench, profile}).problems[0].calls, 4) << "two programs";
}

TEST(WorkloadImport, EstimatesAreInTheUnitOfTimesThatAreKnown) {
  const std::string untimed = "problem\n" + std::string(kKey).replace(5, 4, "m=40") + "\n";
  const Workload alone = imported({untimed}), both = imported({untimed, kLine});
  ASSERT_EQ(both.problems.size(), 2u);
  EXPECT_FALSE(alone.problems[0].timed);
  const WorkloadProblem& estimated = both.problems[both.problems[0].timed ? 1 : 0];
  EXPECT_FALSE(estimated.timed);
  EXPECT_GT(estimated.seconds, 1e-3) << "2 ms were logged for half the work";
  EXPECT_LT(estimated.seconds, 8e-3);
  EXPECT_LT(alone.problems[0].seconds, 1e-4);
}

TEST(WorkloadImport, LostTimeCounts) {
  const std::string complex = "MKL_VERBOSE ZGEMM(N,N,10,20,30,0x1,0x2,10,0x3,30,0x4,0x5,10) 6.00ms CNR:OFF\n";
  Workload w = imported({kLine + complex});
  EXPECT_DOUBLE_EQ(w.seconds(), 8e-3);
  EXPECT_DOUBLE_EQ(w.skipped_seconds(), 6e-3);
  EXPECT_NE(w.serialize().find("\"shares\":{\"problems\":0.25,\"below\":0.0,\"skipped\":0.75}"),
            std::string::npos)
      << w.serialize();
}

std::string three_problems() {
  std::string text = "problem,calls,seconds\n";
  const std::string rest = " n=10 k=30 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4,";
  for (auto [m, tail] : {std::pair{"1", "10,0.001"}, {"2", "1,0.08"}, {"3", "5,0.002"}})
    text += std::string("gemm m=") + m + rest + tail + "\n";
  return text; // 0.01, 0.08, 0.01 s
}

TEST(Workload, TheThresholdLeavesOutSmallShares) {
  Workload w = imported({three_problems()});
  ASSERT_EQ(w.problems.size(), 3u);
  EXPECT_EQ(w.problems[0].name, "m2_n10_k30_f32_nn");
  EXPECT_NE(w.serialize().find("\"share\":0.8,\"behind\":0.2"), std::string::npos) << w.serialize();
  const std::vector<WorkloadProblem> below = w.drop_below(0.11);
  EXPECT_EQ(below.size(), 2u);
  EXPECT_EQ(w.problems.size(), 1u);
  EXPECT_EQ(w.below.problems, 2);
  EXPECT_EQ(w.below.calls, 15);
  EXPECT_NEAR(w.below.seconds, 0.02, 1e-9);
  EXPECT_NEAR(w.seconds(), 0.1, 1e-9) << "nothing is forgotten";
  const std::string csv = workload_csv(w, below);
  EXPECT_NE(csv.find("kept,m2_n10_k30_f32_nn,gemm m=2 n=10"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",1,0.08,true,0.08,0.8,a.log:3,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("below threshold,m1_n10_k30_f32_nn,"), std::string::npos) << csv;
  EXPECT_NE(workload_table(w, 20).find("1 problems have 80.0% of the time; 20.0% is below the threshold"),
            std::string::npos)
      << workload_table(w, 20);
}

TEST(Workload, IsALogItself) {
  Workload w = imported({three_problems(), std::string(kLine) + "MKL_VERBOSE CGEMM(N) 1.00s\n"});
  w.drop_below(0.0005);
  const Workload again = imported({w.serialize()});
  ASSERT_EQ(again.problems.size(), w.problems.size());
  for (size_t i = 0; i < w.problems.size(); ++i) {
    EXPECT_EQ(again.problems[i].name, w.problems[i].name);
    EXPECT_EQ(again.problems[i].calls, w.problems[i].calls);
    EXPECT_EQ(again.problems[i].seconds, w.problems[i].seconds);
    EXPECT_EQ(again.problems[i].timed, w.problems[i].timed);
  }
  EXPECT_EQ(again.below.problems, w.below.problems);
  EXPECT_EQ(again.skipped_seconds(), w.skipped_seconds());
  EXPECT_DOUBLE_EQ(imported({w.serialize(), w.serialize()}).seconds(), 2 * w.seconds());
}

TEST(Workload, AnyBytesOfALogBecomeTexts) {
  const std::string bytes = "MKL_VERBOSE \x1b[2J\xff\t\x01GEMM" + std::string(3000, '\x02') + "(N) 1.00s\n";
  const std::string text =
      imported({bytes + kLine + "MKL_VERBOSE \x1b[2K\xffGEMM\xc3(N) 1.00s\n"}).serialize();
  EXPECT_EQ(Workload::parse(text, "again").serialize(), text);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("\\\\u001b[2K"), std::string::npos) << text;
}

TEST(Workload, NamesAreOfOneProblem) {
  const auto name = [](const std::string& key) { return function_name(Problem::parse(key)); };
  EXPECT_EQ(
      name("gemm m=8 n=6144 k=2560 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2"),
      "m8_n6144_k2560_bf16_nt");
  EXPECT_EQ(
      name("gemm m=8 n=4 k=2 batch=3 a=e4m3 b=e5m2 d=f16 acc=f32 layout=nn epilogue=scale_a+bias+gelu_tanh "
           "align=1"),
      "m8_n4_k2_b3_e4m3_e5m2_f16_nn_scale_a_bias_gelu_tanh");
  EXPECT_EQ(name("gemm m=8 n=4 k=2 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt groups=8 gate=silu "
                 "epilogue=none align=2"),
            "m8_n4_k2_bf16_f32_nt_g8_gate_silu");
  EXPECT_EQ(name("rows m=4096 n=2048 x=bf16 d=e4m3 kind=rms_norm options=residual+scale"),
            "rows_m4096_n2048_xbf16_de4m3_kindrms_norm_optionsresidual_scale");
}

TEST(Workload, DamageIsRefused) {
  const std::string good = imported({three_problems()}).serialize();
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    try {
      Workload::parse(text, "w.json");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("workload/1", "workload/2").find("unknown schema"), std::string::npos);
  EXPECT_NE(refused("m2_n10_k30_f32_nn", "2m").find("no name of a function"), std::string::npos);
  EXPECT_NE(refused("m2_n10_k30_f32_nn", "m1_n10_k30_f32_nn").find("comes twice"), std::string::npos);
  EXPECT_NE(refused("gemm m=2", "gemm m=1").find("comes twice"), std::string::npos);
  EXPECT_NE(refused("gemm m=2", "gemm m=0").find("size out of range"), std::string::npos);
  EXPECT_NE(refused("\"calls\":1,", "\"calls\":0,").find("out of range"), std::string::npos);
  EXPECT_NE(refused("\"seconds\":0.08", "\"seconds\":0").find("out of range"), std::string::npos);
  EXPECT_NE(refused("\"seconds\":0.08", "\"seconds\":\"x\"").find("wrong type"), std::string::npos);
  EXPECT_NE(refused("[[0,3]]", "[[1,3]]").find("'lines' is out of range"), std::string::npos);
  EXPECT_NE(refused("[[0,3]]", "[[0,3,4]]").find("wrong type"), std::string::npos);
  EXPECT_NE(refused("\"skipped\":[", "\"skipped\":[7").find("missing field"), std::string::npos);
}

} // namespace
} // namespace deepgen::workload_test
