// The lines of the golden logs, replayed: what the library that wrote a line would compute, by its own
// definition and naively, beside the default kernel of the problem that the line became, on the same buffers.
// So a transposition, a scale or a bias that is translated wrongly shows as wrong numbers. Sizes are made
// small, and all types f32: neither is what is tested here.
#include "measure/values/operands.h"
#include "tests/numerics/numerics.h"
#include "tests/paths.h"
#include "workload/import.h"

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

namespace deepgen::replay_test {
namespace {

using namespace numerics;

/// A product as a library's manual defines it, read off a line by hand.
struct Product {
  const char* log;
  int line;
  const char* order; ///< "columns": column-major BLAS; "rows"
  bool ta, tb;       ///< columns: op(A), op(B); rows: whether A, B lie transposed in memory
  int64_t m, n, k, batch;
  double beta;
  /// Columns: scaleA, scaleB (tensor), rowsA, columnsB (vectors), bias (length M) and an activation. Rows:
  /// scaleA, columnsB, bias (length N), multiply (a matrix) and an activation. In the order of the library.
  std::vector<std::string> steps;
  bool one_b = false; ///< all entries of the batch have the same B
};

const std::vector<Product> kProducts = {
    {"hipblaslt_64.log", 1, "columns", true, false, 16032, 109, 16384, 1, 0, {}},
    {"hipblaslt_64.log", 2, "columns", false, true, 768, 32, 512, 4, 0, {"bias", "gelu_tanh"}},
    {"hipblaslt_128.log", 2, "columns", true, false, 768, 3072, 2048, 1, 0, {"scaleA", "scaleB", "silu"}},
    {"hipblaslt_128.log", 3, "columns", true, false, 768, 3072, 2048, 1, 0, {"scaleA", "scaleB", "silu"}},
    {"hipblaslt_128.log", 4, "columns", true, false, 96, 40, 56, 1, 0, {"rowsA", "columnsB"}},
    {"hipblaslt_32.log", 1, "columns", false, false, 1024, 512, 2048, 1, 1, {}},
    {"hipblaslt_32.log", 2, "columns", false, false, 1024, 512, 2048, 1, 1, {}},
    {"hipblaslt_32.log", 3, "columns", true, false, 10240, 1, 8192, 1, 0, {"rowsA", "columnsB", "bias"}},
    {"hipblaslt_32.log", 4, "columns", true, false, 64, 48, 32, 1, 0, {}},
    {"rocblas_bench.log", 1, "columns", true, false, 17408, 2048, 5120, 1, 0, {}},
    {"rocblas_bench.log", 2, "columns", false, true, 33, 44, 55, 6, -1, {}},
    {"rocblas_bench.log", 3, "columns", false, false, 128, 64, 32, 1, 0, {}},
    {"rocblas_profile.log", 1, "columns", false, true, 256, 108, 512, 1, 0, {}},
    {"rocblas_profile.log", 2, "columns", true, true, 100, 50, 25, 1, 0, {}},
    {"rocblas_profile.log", 3, "columns", false, false, 10, 20, 30, 8, 0, {}},
    {"cublaslt.log", 1, "columns", false, false, 1000, 300, 700, 1, 0, {}},
    {"cublaslt.log", 2, "columns", true, false, 2048, 32, 1024, 1, 0, {"scaleA", "scaleB"}},
    {"cublaslt.log", 3, "columns", false, true, 96, 40, 64, 12, 0, {"bias", "relu"}},
    {"mkl.log", 2, "columns", false, true, 10, 128, 64, 1, 1, {}},
    {"mkl.log", 3, "columns", false, true, 10, 128, 64, 1, 1, {}},
    {"mkl.log", 4, "columns", true, false, 300, 200, 100, 1, 1, {}},
    {"mkl.log", 5, "columns", false, false, 64, 32, 16, 1, 1, {}},
    {"tunableop.csv", 3, "columns", true, false, 6144, 8, 2560, 1, 0, {}},
    {"tunableop.csv", 4, "columns", true, false, 128, 120, 64, 96, 0, {}},
    {"tunableop.csv", 5, "columns", true, false, 64, 12288, 2048, 1, 0, {"rowsA", "columnsB"}},
    {"tunableop.csv", 6, "columns", true, false, 64, 128, 2048, 1, 0, {"scaleA", "scaleB", "bias"}},
    {"tunableop.csv", 7, "columns", false, true, 96, 80, 48, 1, 0, {"bias"}},
    {"onednn_v1.log", 3, "rows", false, false, 128, 37888, 3584, 1, 0, {}},
    {"onednn_v1.log", 4, "rows", false, false, 128, 37888, 3584, 1, 0, {}},
    {"onednn_v1.log", 5, "rows", false, true, 77, 48, 64, 1, 0, {"bias", "gelu", "multiply"}},
    {"onednn_v1.log", 6, "rows", false, true, 16, 32, 64, 1, 0, {"scaleA", "columnsB"}},
    {"onednn_primitive.log", 1, "rows", false, true, 256, 4096, 11008, 1, 0, {}},
    {"onednn_primitive.log", 2, "rows", true, false, 32, 64, 16, 8, 1, {}, true},
    {"onednn_primitive.log", 3, "rows", false, true, 256, 4096, 1024, 1, 0, {"bias", "relu"}},
    {"onednn_exec.log", 1, "rows", false, true, 1024, 1024, 1000, 1, 0, {}},
    {"onednn_exec.log", 2, "rows", false, false, 32, 48, 64, 1, 0, {"bias", "relu"}},
    {"torch_cpu.json", 6, "rows", false, true, 512, 1408, 500, 1, 0, {"bias"}},
    {"torch_cpu.json", 7, "rows", false, true, 512, 1408, 500, 1, 0, {"bias"}},
    {"torch_cpu.json", 8, "rows", true, false, 128, 96, 64, 12, 0, {}},
    {"torch_cpu.json", 10, "rows", false, true, 16, 32, 64, 1, 0, {"rowsA", "columnsB"}},
    {"torch_gpu.json", 2, "rows", false, false, 64, 48, 32, 1, 0, {}},
    {"torch_gpu.json", 3, "rows", false, false, 64, 48, 32, 1, 0, {}},
};

std::vector<std::string> lines_of(const std::string& log) {
  std::ifstream file(paths::in_source("tests/workload/logs/" + log));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The GEMMs of one line alone; an event of a trace as one with nothing else.
std::vector<Gemm> imported(const std::string& log, std::string line) {
  if (log.ends_with(".json")) {
    if (line.find("\"ph\"") == line.npos) return {};
    if (line.ends_with(",")) line.pop_back();
    line = "{\"schemaVersion\": 1,\n\"traceEvents\": [\n" + line + "\n]}\n";
  }
  std::vector<Gemm> found;
  try {
    Importer importer;
    importer.read(*log_of(line + "\n", "line"), "line");
    for (const WorkloadProblem& p : importer.workload().problems)
      if (const Gemm* gemm = std::get_if<Gemm>(&p.problem.which())) found.push_back(*gemm);
  } catch (const Error&) { // no line of a log
  }
  return found;
}

/// Small sizes, different ones for different ones; 1 stays.
struct Smaller {
  std::map<int64_t, int64_t> sizes = {{1, 1}};
  int64_t operator()(int64_t size) {
    constexpr int64_t kSmall[] = {13, 22, 35, 41, 6};
    return sizes.try_emplace(size, kSmall[(sizes.size() - 1) % std::size(kSmall)]).first->second;
  }
};

struct Buffers {
  std::vector<float> a, b, c, row_vector, column_vector, bias, matrix;
  float scale_a = 1.25f, scale_b = 0.75f;
};

Buffers buffers_for(const Product& x) {
  Rng rng(11);
  std::uniform_real_distribution<float> value(-1, 1);
  const auto many = [&](int64_t count) {
    std::vector<float> v(static_cast<size_t>(count));
    for (float& y : v) y = value(rng);
    return v;
  };
  const int64_t longest = std::max(x.m, x.n);
  return {many(x.m * x.k * x.batch),
          many(x.k * x.n * x.batch),
          many(x.m * x.n * x.batch),
          many(longest),
          many(longest),
          many(longest),
          many(x.m * x.n * x.batch)};
}

double activated(const std::string& name, double x) {
  if (name == "relu") return std::max(x, 0.0);
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  if (name == "gelu_tanh") return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  throw Error("the test knows no such step", name);
}

/// The library's definition, element by element.
std::vector<double> by_the_library(const Product& x, const Buffers& in) {
  const bool columns = x.order[0] == 'c';
  std::vector<double> d(size_t(x.m * x.n * x.batch));
  // Of a matrix with so many rows and columns as stored in memory.
  const auto at = [&](int64_t row, int64_t column, int64_t rows, int64_t stored) {
    return size_t(columns ? row + column * rows : row * stored + column);
  };
  for (int64_t z = 0; z < x.batch; ++z)
    for (int64_t i = 0; i < x.m; ++i)
      for (int64_t j = 0; j < x.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < x.k; ++k) {
          const size_t a = x.ta ? at(k, i, x.k, x.m) : at(i, k, x.m, x.k);
          const size_t b = x.tb ? at(j, k, x.n, x.k) : at(k, j, x.k, x.n);
          sum += double(in.a[a + size_t(z * x.m * x.k)]) * in.b[b + (x.one_b ? 0 : size_t(z * x.k * x.n))];
        }
        const size_t here = at(i, j, x.m, x.n) + size_t(z * x.m * x.n);
        bool added = false;
        const auto add_c = [&] {
          if (!added) sum += x.beta * in.c[here];
          added = true;
        };
        for (const std::string& step : x.steps) {
          if (step == "scaleA")
            sum *= in.scale_a;
          else if (step == "scaleB")
            sum *= in.scale_b;
          else if (step == "rowsA")
            sum *= in.row_vector[size_t(i)];
          else if (step == "columnsB")
            sum *= in.column_vector[size_t(j)];
          else if (add_c(), step == "bias")
            sum += in.bias[size_t(columns ? i : j)];
          else if (step == "multiply")
            sum *= in.matrix[here];
          else
            sum = activated(step, sum);
        }
        add_c();
        d[here] = sum;
      }
  return d;
}

/// The operand of a step of DeepGen's, in the library's buffers.
const float* operand(EpilogueOp op, bool columns, const Buffers& in) {
  switch (op) {
  case EpilogueOp::scale_a:
    return columns ? &in.scale_b : &in.scale_a;
  case EpilogueOp::scale_b:
    return columns ? &in.scale_a : &in.scale_b;
  case EpilogueOp::scale_row:
    return columns ? in.column_vector.data() : in.row_vector.data();
  case EpilogueOp::scale_col:
    return columns ? in.row_vector.data() : in.column_vector.data();
  case EpilogueOp::bias:
    return in.bias.data();
  case EpilogueOp::multiply:
    return in.matrix.data();
  default:
    return nullptr;
  }
}

/// DeepGen's default kernel. Column-major, its A is the library's B.
std::vector<float> by_deepgen(const Gemm& p, const Product& x, const Buffers& in) {
  const bool columns = x.order[0] == 'c';
  const KernelFile file = compile_candidate(
      p, "cpu", Space(p, "cpu", device_of_level(host_level())).default_choice(), true, false);
  std::vector<float> d(size_t(p.m * p.n * p.batch), NAN);
  CallBuffers call;
  call.a = columns ? in.b.data() : in.a.data(), call.b = columns ? in.a.data() : in.b.data();
  call.c = in.c.data(), call.d = d.data(), call.beta = x.beta;
  call.lda = p.a_columns(), call.ldb = p.b_columns(), call.ldc = call.ldd = p.n;
  call.stride_a = p.m * p.k, call.stride_b = x.one_b ? 0 : p.k * p.n,
  call.stride_c = call.stride_d = p.m * p.n;
  call.bias = in.bias.data();
  for (EpilogueOp op : p.epilogue) call.step(op) = {operand(op, columns, in), p.n, p.m * p.n};
  const Kernel& kernel = *file.find("main");
  std::vector<char> workspace(size_t(kernel.workspace) + 64);
  call.workspace = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64);
  LoadedKernel(kernel).call(values_of(call, p));
  return d;
}

void replay(const Product& logged) {
  const std::vector<Gemm> problems = imported(logged.log, lines_of(logged.log)[size_t(logged.line - 1)]);
  ASSERT_EQ(problems.size(), 1u);
  Gemm p = problems.front();
  Product x = logged;
  Smaller small, entries;
  for (int64_t* size : {&x.m, &x.n, &x.k}) *size = small(*size);
  x.batch = entries(x.batch);
  const size_t known = small.sizes.size();
  for (int64_t* size : {&p.m, &p.n, &p.k}) *size = small(*size);
  p.batch = entries(p.batch);
  ASSERT_EQ(small.sizes.size(), known) << "a size that the line does not have: " << problems.front().key();
  ASSERT_EQ(p.m * p.n * p.batch, x.m * x.n * x.batch) << problems.front().key();
  p.a = p.b = p.d = p.accumulate = Type::f32;
  complete(p);
  const Buffers in = buffers_for(x);
  const std::vector<double> expected = by_the_library(x, in);
  const std::vector<float> found = by_deepgen(p, x, in);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-4) << problems.front().key() << " at " << i;
}

/// One of several shares, so that ctest runs them in parallel.
class Replay : public testing::TestWithParam<int> {};

TEST_P(Replay, GoldenLinesComputeWhatTheirLibraryDoes) {
  for (size_t i = size_t(GetParam()); i < kProducts.size(); i += 2) {
    SCOPED_TRACE(kProducts[i].log + (":" + std::to_string(kProducts[i].line)));
    replay(kProducts[i]);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Halves, Replay, testing::Range(0, 2));

TEST(ReplayedLines, AreAllThatBecomeGemms) {
  std::set<std::pair<std::string, int>> known;
  std::set<std::string> logs;
  for (const Product& x : kProducts) known.insert({x.log, x.line}), logs.insert(x.log);
  EXPECT_EQ(logs.size(), 13u) << "all kinds but keys, which are DeepGen's own";
  for (const std::string& log : logs) {
    const std::vector<std::string> lines = lines_of(log);
    for (size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(imported(log, lines[i]).empty(), !known.count({log, int(i) + 1})) << log << ":" << i + 1;
  }
}

} // namespace
} // namespace deepgen::replay_test
