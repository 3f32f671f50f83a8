// What measuring stands on: the reference and its tolerance, guarded buffers, workers, statistics, the
// vendor. Races: race_test.cpp.
#include "base/error.h"
#include "base/json.h"
#include "measure/arms.h"
#include "measure/buffers.h"
#include "measure/devices.h"
#include "measure/operands.h"
#include "measure/statistics.h"
#include "measure/stopwatch.h"
#include "measure/vendor.h"
#include "measure/vendor_epilogue.h"
#include "measure/verify.h"
#include "measure/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deepgen {
namespace {

// --- reference
// ----------------------------------------------------------------------------------------------------

double at(Type type, const PageBuffer& x, int64_t i) {
  return type == Type::f32 ? reinterpret_cast<const float*>(x.data())[i]
                           : reinterpret_cast<const double*>(x.data())[i];
}

/// Of the product of `columns` columns.
double dot(const Problem& p, const Inputs& in, int64_t entry, int64_t m, int64_t n, int64_t columns) {
  double x = 0;
  for (int64_t k = 0; k < p.k; ++k)
    x += at(p.a, in.a, entry * p.m * p.k + (p.a_transposed() ? k * p.m + m : m * p.k + k)) *
         at(p.b, in.b, entry * p.k * columns + (p.b_transposed() ? n * p.k + k : k * columns + n));
  return x;
}

double naive(const Problem& p, const Inputs& in, int64_t entry, int64_t m, int64_t n, double alpha,
             double beta) {
  double x = alpha * dot(p, in, entry, m, n, p.gate ? 2 * p.n : p.n);
  if (p.gate == EpilogueOp::silu) x = x / (1 + std::exp(-x)) * alpha * dot(p, in, entry, m, p.n + n, 2 * p.n);
  if (p.gate == EpilogueOp::relu) x = std::max(x, 0.0) * alpha * dot(p, in, entry, m, p.n + n, 2 * p.n);
  x += beta * at(p.d, in.c, (entry * p.m + m) * p.n + n);
  const auto y = [&](EpilogueOp op, int64_t i) { return at(p.d, in.operand(op), i); };
  const int64_t place = (entry * p.m + m) * p.n + n;
  for (EpilogueOp op : p.epilogue) switch (op) {
    case EpilogueOp::bias:
      x += y(op, n);
      break;
    case EpilogueOp::bias_row:
      x += y(op, m);
      break;
    case EpilogueOp::relu:
      x = x > 0 ? x : 0;
      break;
    case EpilogueOp::gelu:
      x = x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
      break;
    case EpilogueOp::gelu_tanh:
      x = x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      break;
    case EpilogueOp::silu:
      x = x / (1 + std::exp(-x));
      break;
    case EpilogueOp::sigmoid:
      x = 0.5 + 0.5 * std::tanh(x / 2);
      break;
    case EpilogueOp::clamp:
      x = std::clamp(x, in.clamp_low, in.clamp_high);
      break;
    case EpilogueOp::residual:
      x += y(op, place);
      break;
    case EpilogueOp::multiply:
      x *= y(op, place);
      break;
    case EpilogueOp::scale_row:
      x *= y(op, m);
      break;
    case EpilogueOp::scale_col:
      x *= y(op, n);
      break;
    case EpilogueOp::scale_a:
    case EpilogueOp::scale_b:
    case EpilogueOp::scale_d:
      x *= y(op, 0);
      break;
    }
  return x;
}

TEST(Reference, EqualsTheNaiveLoop) {
  for (const char* key :
       {"gemm m=5 n=9 k=3 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4",
        "gemm m=70 n=530 k=300 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4",
        "gemm m=21 n=17 k=40 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=tt gate=silu epilogue=bias+residual "
        "align=8",
        "gemm m=5 n=530 k=300 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn gate=relu epilogue=none align=4",
        "gemm m=33 n=17 k=257 batch=3 a=f64 b=f64 d=f64 acc=f64 layout=tn epilogue=silu align=8",
        "gemm m=1 n=1 k=1 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=tt epilogue=relu+bias align=8",
        "gemm m=21 n=17 k=40 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=nn "
        "epilogue=scale_a+scale_b+bias_row+gelu_tanh+multiply+scale_row+residual align=4",
        "gemm m=21 n=17 k=40 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=nn "
        "epilogue=residual+clamp+scale_col+sigmoid+multiply+scale_d align=8"}) {
    const Problem p = Problem::parse(key);
    const Inputs inputs(p, 3);
    const Reference reference(p, inputs, 3);
    ASSERT_EQ(int64_t(reference.rows().size()), p.m * p.batch);
    const Expected e = reference.expected(1.5, -0.25);
    for (int64_t row = 0; row < p.m * p.batch; ++row)
      for (int64_t n = 0; n < p.n; ++n) {
        const size_t i = size_t(row * p.n + n);
        ASSERT_NEAR(e.value[i], naive(p, inputs, row / p.m, row % p.m, n, 1.5, -0.25), 1e-12) << key;
        ASSERT_GT(e.tolerance[i], 0);
      }
  }
}

/// f32 results for all rows, in the order of k, with `skip` left out; as a kernel without tiles would.
std::vector<float> multiply_f32(const Problem& p, const Inputs& in, int64_t skip) {
  const auto *a = reinterpret_cast<const float*>(in.a.data()),
             *b = reinterpret_cast<const float*>(in.b.data());
  std::vector<float> d(size_t(p.m * p.n));
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t k = 0; k < p.k; ++k)
      if (k != skip)
        for (int64_t n = 0; n < p.n; ++n) d[size_t(m * p.n + n)] += a[m * p.k + k] * b[k * p.n + n];
  return d;
}

TEST(Tolerance, HoldsForCorrectSumsAndCatchesADroppedTerm) {
  for (int64_t k : {1, 2, 7, 64, 1000, 4096, 16384}) {
    Problem p;
    p.m = 12, p.n = 24, p.k = k;
    const Inputs inputs(p, uint64_t(k));
    const Reference reference(p, inputs, 1);
    const Expected expected = reference.expected(1, 0);
    const auto check = [&](const std::vector<float>& d) {
      return compare(p, reference.rows(), expected, [&](int64_t, int64_t row) {
        return reinterpret_cast<const char*>(&d[size_t(row * p.n)]);
      });
    };
    const Comparison good = check(multiply_f32(p, inputs, -1));
    EXPECT_TRUE(good.ok()) << "k=" << k << ": " << good.detail;
    EXPECT_LT(good.error, 0.5) << "k=" << k << ": correct results need some room";
    for (int64_t skip : {int64_t(0), k / 2, k - 1})
      EXPECT_FALSE(check(multiply_f32(p, inputs, skip)).ok()) << "k=" << k << " without term " << skip;
  }
}

TEST(Reference, SamplesLargeProblems) {
  Problem p;
  p.m = 40000, p.n = 1000, p.k = 1;
  const Inputs inputs(p, 1, false);
  const Reference reference(p, inputs, 1);
  EXPECT_TRUE(reference.sampled());
  EXPECT_EQ(reference.rows().front(), 0);
  EXPECT_EQ(reference.rows().back(), p.m - 1);
  EXPECT_TRUE(std::is_sorted(reference.rows().begin(), reference.rows().end()));
  const Expected e = reference.expected(1, 0);
  const size_t row = reference.rows().size() / 2;
  const int64_t m = reference.rows()[row];
  EXPECT_NEAR(e.value[row * size_t(p.n) + 7], at(p.a, inputs.a, m) * at(p.b, inputs.b, 7), 1e-12);
  // A row that is not in the sample must at least be finite.
  std::vector<float> line(size_t(p.n), 1.0f);
  EXPECT_TRUE(check_finite(p, 5, reinterpret_cast<const char*>(line.data())).ok());
  std::memcpy(&line[3], &canary, 4);
  EXPECT_NE(check_finite(p, 5, reinterpret_cast<const char*>(line.data())).detail.find("not written"),
            std::string::npos);
}

// --- buffers
// ------------------------------------------------------------------------------------------------------

TEST(Buffers, CanariesShowEveryStrayWrite) {
  const View view{3, 5, 9, 2, 40};
  for (Guard guard : {Guard::behind, Guard::in_front})
    for (Type type : {Type::f32, Type::f64}) {
      GuardedMatrix matrix("M", type, view, guard, true);
      const int64_t bytes = size_of(type);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.data()) % uintptr_t(bytes), 0u);
      EXPECT_NE(reinterpret_cast<uintptr_t>(matrix.data()) % 16, 0u) << "no vector alignment";
      matrix.poison();
      EXPECT_EQ(matrix.damage(), "");
      std::memset(matrix.row(1, 2), 0, size_t(5 * bytes)); // elements may change
      EXPECT_EQ(matrix.damage(), "");
      for (char* stray : {matrix.row(0, 0) + 5 * bytes, matrix.row(0, 2) + 6 * bytes, matrix.row(1, 0) - 1}) {
        const char old = *stray;
        *stray = char(old + 1);
        EXPECT_NE(matrix.damage(), "") << stray - matrix.data();
        *stray = old;
        EXPECT_EQ(matrix.damage(), "");
      }
    }
}

TEST(Buffers, PoisonIsNaNInBothTypes) {
  GuardedMatrix narrow("M", Type::f32, View::dense(1, 2, 1), Guard::behind, false);
  GuardedMatrix wide("M", Type::f64, View::dense(1, 2, 1), Guard::behind, false);
  narrow.poison(), wide.poison();
  EXPECT_TRUE(std::isnan(reinterpret_cast<float*>(narrow.data())[1]));
  EXPECT_TRUE(std::isnan(reinterpret_cast<double*>(wide.data())[1]));
}

TEST(Cuts, ShareOutTheGridOnce) {
  const TileRanges full{0, 5, 0, 4, 0, 2};
  for (Case::Cut cut : {Case::whole, Case::rows, Case::columns, Case::entries}) {
    int seen[2][5][4] = {};
    const auto ranges = cut_ranges(full, cut);
    EXPECT_EQ(ranges.size(), cut == Case::whole ? 1u : cut == Case::entries ? 2u : 3u);
    for (const TileRanges& r : ranges)
      for (int64_t b = r.b0; b < r.b1; ++b)
        for (int64_t m = r.m0; m < r.m1; ++m)
          for (int64_t n = r.n0; n < r.n1; ++n) seen[b][m][n]++;
    for (auto& plane : seen)
      for (auto& row : plane)
        for (int count : row) EXPECT_EQ(count, 1);
  }
}

// --- worker
// -------------------------------------------------------------------------------------------------------

TEST(Worker, DeliversMessagesAndEnds) {
  std::vector<int> seen;
  const WorkerEnd end = run_worker(
      [](Channel& channel) {
        channel.step("counting", 5);
        // Words of the protocol may be words of a message.
        for (int i = 0; i < 1000; ++i) channel.send({{"i", i}, {"error", 1}, {"done", 2}, {"step", 3}});
      },
      [&](const Json& m) { seen.push_back(m.value("i", -1)); });
  EXPECT_EQ(end.kind, WorkerEnd::done);
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_EQ(seen.back(), 999);
}

TEST(Worker, SurvivesCrashAndHang) {
  const auto ignore = [](const Json&) {};
  WorkerEnd end = run_worker(
      [](Channel& channel) {
        channel.step("the bad part", 5);
        std::abort();
      },
      ignore);
  EXPECT_EQ(end.kind, WorkerEnd::crash);
  EXPECT_EQ(end.detail, "SIGABRT in: the bad part");
  EXPECT_FALSE(end.killed);
  EXPECT_TRUE(run_worker([](Channel&) { raise(SIGKILL); }, ignore).killed);
  const double start = wall_seconds();
  end = run_worker(
      [](Channel& channel) {
        channel.step("sleeping", 0.2);
        pause();
      },
      ignore);
  EXPECT_EQ(end.kind, WorkerEnd::timeout);
  EXPECT_FALSE(end.killed) << "by whom, if not by us";
  EXPECT_LT(wall_seconds() - start, 5);
  EXPECT_THROW(run_worker([](Channel&) { throw Error("bad input"); }, ignore), Error);
}

/// Why run_worker() threw a HostFault; empty when it did not.
std::string host_fault(const std::function<void(Channel&)>& body) {
  try {
    run_worker(body, [](const Json&) {});
  } catch (const HostFault& e) {
    return e.what();
  }
  return "";
}

/// Not the fault of what runs in it, even where it runs through code that bears no exception.
TEST(Worker, LackOfMemoryIsTheHosts) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends a process that finds no memory";
#endif
  const auto exhaust = [](Channel& channel) noexcept {
    channel.step("the large part", 20);
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
    std::vector<std::string> all;
    while (true) all.emplace_back(size_t(1) << 20, 'x');
  };
  const std::string text = host_fault(exhaust);
  for (const char* part : {"not enough memory", "in: the large part", "the machine has", "remedy:"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  const std::string operand = host_fault([](Channel& channel) {
    channel.step("operands", 20);
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
    const GuardedMatrix matrix("C", Type::f32, View::dense(1024, 1024, 1), Guard::behind, false);
  });
  for (const char* part :
       {"where:  C", " MiB (", "bytes) were refused", "the limit on address space is 0 bytes (ulimit -v)",
        "remedy:", "in:     operands"})
    EXPECT_NE(operand.find(part), std::string::npos) << operand;
  EXPECT_EQ(host_fault([](Channel&) {}), "");
  try {
    GuardedWorkspace workspace(int64_t(1) << 50);
    FAIL();
  } catch (const HostFault& e) {
    FAIL() << "no machine has that, so it is the config's: " << e.what();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("workspace"), std::string::npos) << e.what();
  }
}

/// Ctrl-Z for longer than the limit.
TEST(Worker, TimeInWhichBothWereStoppedDoesNotCount) {
  int working[2], go_on[2];
  ASSERT_EQ(pipe(working), 0);
  ASSERT_EQ(pipe(go_on), 0);
  const pid_t group = fork();
  if (group == 0) {
    setpgid(0, 0);
    const auto body = [&](Channel& channel) {
      channel.step("working", 1);
      const double start = wall_seconds();
      char x = 'x';
      if (write(working[1], &x, 1) != 1 || read(go_on[0], &x, 1) != 1) _exit(9);
      channel.send({{"clock went on", wall_seconds() - start > 2}});
    };
    bool went_on = false;
    const WorkerEnd end = run_worker(body, [&](const Json& m) { went_on = m.value("clock went on", true); });
    _exit(end.kind != WorkerEnd::done ? 1 : went_on ? 2 : 0);
  }
  char x = 0;
  ASSERT_EQ(read(working[0], &x, 1), 1);
  kill(-group, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  kill(-group, SIGCONT);
  ASSERT_EQ(write(go_on[1], &x, 1), 1);
  int status = -1;
  waitpid(group, &status, 0);
  EXPECT_EQ(status, 0) << "1: it was a timeout; 2: the budget ran out meanwhile: " << WEXITSTATUS(status);
  for (int fd : {working[0], working[1], go_on[0], go_on[1]}) close(fd);
}

// --- statistics
// ---------------------------------------------------------------------------------------------------

TEST(Statistics, Quantiles) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(quantile({0, 1, 2, 3, 4}, 0.25), 1);
}

std::vector<double> noise(size_t count, double centre, double width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(centre, width);
  std::vector<double> values(count);
  for (double& x : values) x = normal(random);
  return values;
}

TEST(Statistics, BootstrapCoversTheMedian) {
  int covered = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Interval i = bootstrap_median(noise(30, -0.05, 0.02, seed), seed);
    EXPECT_LE(i.low, i.middle);
    EXPECT_LE(i.middle, i.high);
    EXPECT_LT(i.high - i.low, 0.05);
    covered += i.low <= -0.05 && -0.05 <= i.high;
  }
  EXPECT_GE(covered, 85);
  const Interval once = bootstrap_median({1, 2, 3}, 9), again = bootstrap_median({1, 2, 3}, 9);
  EXPECT_EQ(once.low, again.low);
}

TEST(Statistics, NoiseFloorGrowsWithNoiseAndDrift) {
  EXPECT_EQ(noise_floor({0.1, 0.1}), 0);
  const double quiet = noise_floor(noise(30, 0, 0.002, 1)), loud = noise_floor(noise(30, 0, 0.05, 1));
  EXPECT_LT(quiet, 0.004);
  EXPECT_GT(loud, 5 * quiet);
  std::vector<double> drift = noise(30, 0, 0.002, 1);
  for (size_t i = 20; i < 30; ++i) drift[i] += 0.03;
  EXPECT_GT(noise_floor(drift), 0.02);
  const double more = noise_floor(noise(120, 0, 0.05, 1));
  EXPECT_LT(more, 0.7 * loud) << "more rounds tell more";
}

/// What the floor says of one half of the rounds, the other half differs from it.
TEST(Statistics, NoiseFloorIsWhatTheSameNumberOfRoundsDiffers) {
  int beyond = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> rounds = noise(60, 0, 0.01, seed), others = noise(60, 0, 0.01, seed + 1000);
    beyond += std::fabs(median(others)) > std::log1p(noise_floor(rounds));
  }
  EXPECT_GE(beyond, 2); // of 200: 5 % if the floor knew the truth
  EXPECT_LE(beyond, 24);
}

// --- vendor and devices
// -------------------------------------------------------------------------------------------

TEST(VendorBaseline, ComputesTheProblem) {
  const auto vendor = Vendor::open();
  if (!vendor) GTEST_SKIP() << "no OpenBLAS";
  for (const char* steps : {"epilogue=bias+gelu", "epilogue=silu", "epilogue=relu+bias_row+scale_a+scale_b",
                            "epilogue=scale_row+multiply+residual", "epilogue=clamp+scale_col+gelu_tanh",
                            "epilogue=residual+sigmoid+scale_d+multiply", "gate=silu epilogue=none",
                            "gate=gelu_tanh epilogue=bias+clamp"})
    for (const char* rest : {"a=f32 b=f32 d=f32 acc=f32 layout=tn", "a=f64 b=f64 d=f64 acc=f64 layout=nt"}) {
      const std::string text = std::string("gemm m=13 n=11 k=17 batch=2 ") + rest + " " + steps;
      const Problem p = Problem::parse(text + (rest[3] == '3' ? " align=4" : " align=8"));
      const Inputs in(p, 1);
      const Reference reference(p, in, 1);
      const TimingOperands operands(p, 1, 1);
      const CallBuffers x = operands.buffers();
      vendor->prepare(p, x)();
      const Comparison c =
          compare(p, reference.rows(), reference.expected(1, 0), [&](int64_t entry, int64_t row) {
            return static_cast<const char*>(x.d) + (entry * p.m + row) * p.n * size_of(p.d);
          });
      EXPECT_TRUE(c.ok()) << p.key() << ": " << c.detail;
    }
}

/// Every activation over the whole range of its type, within what a kernel's may differ from the reference.
template <typename T>
void check_activation(EpilogueOp op) {
  Problem p = Problem::parse(
      sizeof(T) == 4
          ? "gemm m=1 n=4001 k=1 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4"
          : "gemm m=1 n=4001 k=1 batch=1 a=f64 b=f64 d=f64 acc=f64 layout=nn epilogue=none align=8");
  p.epilogue = {op};
  CallBuffers x;
  x.ldd = p.n;
  const VendorEpilogue<T> epilogue(p, x);
  const double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53, tiny = double(std::numeric_limits<T>::min());
  for (double scale : {1e-30, 1e-3, 1.0, 5.0, 30.0, 90.0, 800.0, 1e10}) {
    std::vector<T> in(size_t(p.n)), out;
    for (size_t i = 0; i < in.size(); ++i) in[i] = T((double(i) - 1999.5) / 2000 * scale);
    out = in;
    epilogue.run(0, out.data(), nullptr);
    for (size_t i = 0; i < in.size(); ++i) {
      const double expected = apply_step(op, double(in[i]), 0, 0, 0);
      const double size = op == EpilogueOp::sigmoid ? expected : std::fabs(double(in[i]));
      ASSERT_NEAR(double(out[i]), expected, 16 * u * size + tiny) << int(op) << " of " << in[i];
    }
  }
}

TEST(VendorEpilogue, ActivationsAreRight) {
  for (EpilogueOp op :
       {EpilogueOp::gelu, EpilogueOp::gelu_tanh, EpilogueOp::silu, EpilogueOp::sigmoid, EpilogueOp::relu})
    check_activation<float>(op), check_activation<double>(op);
}

/// Rows longer than the pieces that steps are applied to, with operands of every shape.
TEST(VendorEpilogue, LongRowsArePiecesOfOnePass) {
  for (const char* steps :
       {"epilogue=bias+gelu+residual+bias_row", "gate=silu epilogue=scale_col+multiply"}) {
    const Problem p = Problem::parse(
        std::string("gemm m=3 n=2500 k=5 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=nn ") + steps + " align=4");
    const Inputs in(p, 1);
    const Reference reference(p, in, 1);
    const TimingOperands operands(p, 1, 1);
    const CallBuffers x = operands.buffers();
    // Plain loops in place of the library.
    const auto *a = static_cast<const float*>(x.a), *b = static_cast<const float*>(x.b);
    auto* d = static_cast<float*>(x.d);
    const int64_t columns = p.sum_columns();
    std::vector<float> sums(size_t(p.m * columns));
    const VendorEpilogue<float> epilogue(p, x);
    for (int64_t entry = 0; entry < p.batch; ++entry) {
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < p.k; ++k)
            sum += a[entry * x.stride_a + i * x.lda + k] * b[entry * x.stride_b + k * x.ldb + j];
          sums[size_t(i * columns + j)] = sum;
          if (!p.gate) d[entry * x.stride_d + i * x.ldd + j] = sum;
        }
      epilogue.run(entry, d + entry * x.stride_d, sums.data());
    }
    const Comparison c =
        compare(p, reference.rows(), reference.expected(1, 0), [&](int64_t entry, int64_t row) {
          return reinterpret_cast<const char*>(d + entry * x.stride_d + row * x.ldd);
        });
    EXPECT_TRUE(c.ok()) << p.key() << ": " << c.detail;
  }
}

TEST(Devices, DescribesTheCpu) {
  const Device d = find_device("cpu");
  EXPECT_TRUE(d.present);
  EXPECT_FALSE(d.name.empty());
  EXPECT_GE(d.isa, 1);
  EXPECT_GE(d.cores, 1);
  EXPECT_GE(d.l1d, 4 << 10);
  EXPECT_EQ(Device::from_json(d.to_json()), d);
  EXPECT_THROW(find_device("riscv"), Error);
  EXPECT_FALSE(list_devices().empty());
}

} // namespace
} // namespace deepgen
