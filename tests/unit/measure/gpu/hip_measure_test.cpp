// Verifying and timing on AMD's devices, with the fake HIP: its hook computes a product on the host, and errs
// when told.
#include "base/json/json.h"
#include "tests/unit/runtime/amd/hip_devices.h"

#include "base/files/files.h"
#include "base/search/decide.h"
#include "base/search/plan.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "measure/commands/run.h"
#include "measure/devices/cuda_devices.h"
#include "measure/devices/cuda_take.h"
#include "measure/devices/devices.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/cuda_verify_all.h"
#include "measure/gpu/toolbox/host_kernels.h"
#include "tests/paths.h"
#include "tests/unit/environment.h"
#include "tests/unit/short_host.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace deepgen::cuda::hip_measure_test {
namespace {

namespace tests = deepgen::hip_tests;

/// What the "kernel" does wrong.
enum Fault { none, wrong_value, not_written, writes_a_gap, changes_a, launch_fails } fault = none;

struct Arguments { // as lay_out() places them
  const float *a, *b, *c;
  float* d;
  int64_t lda, ldb, ldc, ldd;
  float alpha, beta;
};
const std::vector<std::string> kArguments = {"a", "b", "c", "d", "lda", "ldb", "ldc", "ldd", "alpha", "beta"};
const std::vector<uint32_t> kSizes = {8, 8, 8, 8, 8, 8, 8, 8, 4, 4};
constexpr int64_t kM = 40, kN = 24, kK = 17;

/// A product in layout nt, of the kernel "faulty" a wrong one; the first thread computes it all.
int multiply(const fake_hip_launch* launch) {
  if (fault == launch_fails) return 719;
  Arguments x;
  std::memcpy(&x, launch->kernarg, sizeof x);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < kK; ++k) sum += x.a[i * x.lda + k] * x.b[j * x.ldb + k];
      if (fault == not_written && i == 33 && j == 7) continue;
      x.d[i * x.ldd + j] = x.alpha * sum + (x.beta != 0 ? x.beta * x.c[i * x.ldc + j] : 0);
    }
  if (fault == wrong_value || launch->kernel == std::string("faulty")) x.d[5 * x.ldd + 3] += 0.01f;
  if (fault == writes_a_gap) x.d[kM * x.ldd + 1] = 0;
  if (fault == changes_a) const_cast<float*>(x.a)[7] = 2;
  return 0;
}

Gemm product() {
  return Gemm::parse("gemm m=40 n=24 k=17 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4");
}

Kernel kernel_of(const std::string& entry, const std::string& target = "gfx942") {
  Kernel k;
  k.role = "main", k.problem = product(), k.choice = {entry, {}};
  k.args = kArguments, k.target = target;
  k.code = tests::code_object(target, {entry}, kSizes);
  k.sha256 = sha256_hex(k.code);
  k.align_a = k.align_b = k.align_d = 4;
  Launch launch;
  launch.entry = entry, launch.grid = {2, 1, 1}, launch.block = {64, 1, 1};
  k.launches = {launch};
  return k;
}

KernelFile file_of(const std::string& entry) {
  KernelFile f;
  f.problem = product(), f.arch = "gfx942", f.choice = {entry, {}}, f.origin = "default";
  f.kernels = {kernel_of(entry)};
  return f;
}

class HipMeasure : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", paths::fake_hip, 1);
    fake_hip::reset({tests::mi300x(), tests::radeon()});
    fake_hip::state().hook = multiply;
    fault = none;
  }
  void TearDown() override { use(Platform::cuda); }
};

TEST_F(HipMeasure, ListsDevices) {
  const std::vector<Device> found = devices(Platform::hip);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].arch, "gfx942");
  EXPECT_EQ(found[0].name, "AMD Instinct MI300X");
  EXPECT_EQ(found[0].features, (std::vector<std::string>{"sramecc+", "xnack-"}));
  EXPECT_EQ(found[0].cores, 304);
  EXPECT_EQ(found[0].uuid, "GPU-fa4e000000000000");
  EXPECT_EQ(found[0].shared_block, 64 << 10);
  EXPECT_EQ(found[0].l2, 32 << 20) << "of all dies";
  EXPECT_EQ(found[0].l3, 256 << 20) << "the last-level cache, which decides the ring of operands";
  EXPECT_EQ(found[0].memory_bandwidth, 5300000000000);
  EXPECT_EQ(found[1].arch, "gfx1100");
  EXPECT_TRUE(found[1].features.empty());
  EXPECT_EQ(find_device("gfx1100").name, "Radeon RX 7900 XTX");
  EXPECT_EQ(platform(), Platform::cuda) << "it was another process that asked";
  EXPECT_FALSE(same_model(found[0], found[1]));
  const std::vector<std::string> lines = list_devices();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].rfind("gfx942   AMD Instinct MI300X, 304 compute units", 0), 0u) << lines[1];
  fake_hip::reset({});
  EXPECT_TRUE(devices(Platform::hip).empty());
}

Verdict verdict_on(const KernelFile& file) {
  use(Platform::hip);
  VerifyOptions options;
  options.uuid = devices(Platform::hip).at(0).uuid;
  Verdict verdict{"not verified", "", 0};
  verify_files({&file}, options, [&](size_t, const Verdict& v) { verdict = v; });
  return verdict;
}

TEST_F(HipMeasure, VerifiesOnTheHost) {
  const Verdict good = verdict_on(file_of("product"));
  EXPECT_EQ(good.status, "ok") << good.detail;
  EXPECT_GT(good.error, 0) << "f32 sums are not exact";
  EXPECT_LT(good.error, 1);
  const auto expect = [](Fault planted, const char* status, const char* text) {
    fault = planted;
    const Verdict v = verdict_on(file_of("product"));
    EXPECT_EQ(v.status, status) << v.detail;
    EXPECT_NE(v.detail.find(text), std::string::npos) << v.detail;
  };
  expect(wrong_value, "wrong", "row 5, column 3 (1 elements)");
  expect(not_written, "wrong", "not written: row 33, column 7");
  expect(writes_a_gap, "out_of_bounds", "D written");
  expect(changes_a, "out_of_bounds", "A was changed");
  expect(launch_fails, "crash", "launching the kernel");
}

TEST_F(HipMeasure, CodeOfAnotherArchIsUnsupported) {
  KernelFile file = file_of("product");
  file.kernels[0].target = "gfx90a";
  const Verdict v = verdict_on(file);
  EXPECT_EQ(v.status, "unsupported");
  EXPECT_NE(v.detail.find("a kernel for gfx90a does not run on this device"), std::string::npos) << v.detail;
}

/// deepgen-measure run over two kernels, of which one takes twice as long.
std::string measured_round() {
  const std::string folder = testing::TempDir() + "hip_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::vector<std::string> entries = {"slow", "fast"};
  fake_hip::state().seconds = {{"slow", 40e-6}, {"fast", 20e-6}};
  fake_hip::state().recording = fake_hip::state().replays = false;
  Plan plan;
  plan.problem = product(), plan.arch = "gfx942";
  for (size_t i = 0; i < entries.size(); ++i) {
    plan.slots.push_back({{entries[i], {}}, i ? "random" : "default"});
    KernelFile file = file_of(entries[i]);
    file.origin = plan.slots[i].origin;
    write_atomically(folder + "/s0" + std::to_string(i) + ".dgk", file.serialize());
  }
  write_atomically(folder + "/plan.json", plan.serialize());
  write_atomically(folder + "/device.json", find_device("gfx942").to_json().dump());
  RunCommand command;
  command.plan = folder + "/plan.json", command.kernels = folder, command.slots = 2;
  command.device = folder + "/device.json", command.output = folder + "/records.jsonl",
  command.cache = folder + "/cache";
  command.options.seconds = 20;
  run(command);
  return folder;
}

TEST_F(HipMeasure, TimesByGraphsAndEvents) {
  const std::string folder = measured_round();
  const RecordLog log = RecordLog::read(folder + "/records.jsonl");
  ASSERT_EQ(log.records.size(), 2u);
  for (const Record& r : log.records) {
    EXPECT_EQ(r.status, "ok") << r.detail;
    ASSERT_TRUE(r.timing) << r.slot;
  }
  EXPECT_NEAR(log.records[1].timing->ratio, 0.5, 1e-3)
      << "of made-up time: launches are counted, and the graph's alone";
  EXPECT_NEAR(log.records[1].timing->seconds, 20e-6, 1e-8);
  EXPECT_EQ(log.environment["driver"].get<std::string>(), "HIP 60000000");
  EXPECT_EQ(log.environment["clock_mhz"], (Json{0, 0, 0})) << "nobody tells";
  // Timing may be none: its device's time is made up, and less than half a millisecond is left out.
  EXPECT_GT(log.environment["spent"]["verifying"], 0);
  EXPECT_EQ(log.environment["ended"].get<std::string>().size(), 20u);
  std::filesystem::remove_all(folder);
}

/// As tests/fake_hip/fake_rocm_smi.cpp tells: MHz, reasons (the power limit), the metrics' version,
/// processes.
TEST_F(HipMeasure, RecordsClockAndPowerWhereTheDriverTells) {
  const Environment set("FAKE_ROCM_SMI", "1890 0x4 3 1");
  const std::string folder = measured_round();
  const RecordLog log = RecordLog::read(folder + "/records.jsonl");
  EXPECT_EQ(log.environment["clock_mhz"], (Json{1890, 1890, 1890}));
  EXPECT_EQ(log.environment["power_limit_watts"], 750);
  EXPECT_EQ(log.environment["other_processes"], 1);
  EXPECT_EQ(log.environment["driver"].get<std::string>(), "HIP 60000000, driver 6.10.5");
  ASSERT_EQ(log.records.size(), 2u);
  EXPECT_EQ(log.records[1].status, "ok") << "the power limit is no disturbance";
  std::filesystem::remove_all(folder);
}

/// What `deepgen compile --finalist` writes.
std::string write_awkward(const std::string& folder, const std::string& choice, const std::string& entry) {
  KernelFile file = file_of(entry.empty() ? choice : entry);
  file.choice = {choice, {}};
  file.kernels[0].role = "awkward";
  if (entry.empty()) file.status = "failed", file.detail = "no registers left", file.kernels.clear();
  const std::string path = folder + "/" + choice + ".dgk";
  write_atomically(path, file.serialize());
  return path;
}

TEST_F(HipMeasure, WhatIsWrongOnAnAwkwardShapeIsNoFinalist) {
  const std::string folder = measured_round();
  PlayoffCommand command;
  command.device = folder + "/device.json", command.output = folder + "/final.jsonl";
  command.records = {folder + "/records.jsonl"};
  command.options.seconds = 20, command.options.samples = 11, command.options.vendor = false;
  EXPECT_THROW(playoff(command), Error) << "nobody has verified the finalists on an awkward shape";
  const auto final = [&](const std::string& slow, const std::string& fast) {
    command.awkward = {write_awkward(folder, "fast", fast), write_awkward(folder, "slow", slow)};
    playoff(command);
    return RecordLog::read(command.output);
  };
  RecordLog log = final("slow", "fast");
  ASSERT_EQ(log.records.size(), 4u) << "both in the finals and in the hold-out";
  EXPECT_EQ(decide(log).winner.choice.template_name, "fast");
  EXPECT_TRUE(decide(log).improved);

  log = final("slow", "faulty");
  ASSERT_GE(log.records.size(), 2u);
  EXPECT_EQ(log.records[0].status, "wrong");
  EXPECT_EQ(log.records[0].choice.template_name, "fast");
  EXPECT_EQ(log.records[0].detail.rfind("awkward kernel: ", 0), 0u) << log.records[0].detail;
  EXPECT_EQ(decide(log).winner.choice.template_name, "slow");
  EXPECT_FALSE(decide(log).improved);

  log = final("faulty", "fast");
  EXPECT_EQ(decide(log).winner.choice.template_name, "fast");
  EXPECT_NE(decide(log).reason.find("the default config failed: wrong"), std::string::npos)
      << decide(log).reason;

  log = final("", "faulty");
  ASSERT_EQ(log.records.size(), 2u) << "nothing is left to be timed";
  EXPECT_EQ(log.records[0].status, "compile_error");
  EXPECT_EQ(log.records[0].detail, "awkward kernel: no registers left");
  EXPECT_FALSE(decide(log).found);
  std::filesystem::remove_all(folder);
}

/// Independent of host_cuda.h: by the definition of the formats.
double decoded(unsigned bits, int exponent_bits, int fraction_bits) {
  const int sign = int(bits >> (exponent_bits + fraction_bits)), bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = int(bits >> fraction_bits & ((1u << exponent_bits) - 1));
  const double fraction = double(bits & ((1u << fraction_bits) - 1)) / double(1u << fraction_bits);
  const double x =
      exponent ? std::pow(2.0, exponent - bias) * (1 + fraction) : std::pow(2.0, 1 - bias) * fraction;
  return sign ? -x : x;
}

TEST(HostKernels, SmallFloats) {
  struct Format {
    Type type;
    int exponent_bits, fraction_bits;
    unsigned largest;
  };
  for (const Format& f : {Format{Type::f16, 5, 10, 0x7bff}, Format{Type::bf16, 8, 7, 0x7f7f},
                          Format{Type::e4m3, 4, 3, 0x7e}, Format{Type::e5m2, 5, 2, 0x7b}}) {
    const unsigned sign = 1u << (f.exponent_bits + f.fraction_bits);
    uint64_t memory = 0;
    for (unsigned bits = 0; bits <= f.largest; ++bits) {
      const double x = decoded(bits, f.exponent_bits, f.fraction_bits);
      for (unsigned one : {bits, bits | sign}) {
        memory = one;
        const double value = host::load(reinterpret_cast<uintptr_t>(&memory), int32_t(f.type), 0);
        ASSERT_EQ(value, one & sign ? -x : x) << to_string(f.type) << " " << one;
        ASSERT_EQ(host::encode(int32_t(f.type), value), one) << to_string(f.type);
      }
      if (bits == f.largest) continue;
      const double middle = (x + decoded(bits + 1, f.exponent_bits, f.fraction_bits)) / 2,
                   tick = middle * 0x1p-40;
      ASSERT_EQ(host::encode(int32_t(f.type), middle), bits + (bits & 1)) << "ties to even";
      ASSERT_EQ(host::encode(int32_t(f.type), middle + tick), bits + 1);
      ASSERT_EQ(host::encode(int32_t(f.type), middle - tick), bits);
    }
    const bool saturates = f.type == Type::e4m3 || f.type == Type::e5m2;
    EXPECT_EQ(host::encode(int32_t(f.type), 1e30 * 1e30), saturates ? f.largest : f.largest + 1)
        << to_string(f.type);
    EXPECT_EQ(host::encode(int32_t(f.type), -INFINITY), sign | (saturates ? f.largest : f.largest + 1));
    memory = host::encode(int32_t(f.type), NAN);
    EXPECT_TRUE(std::isnan(host::load(reinterpret_cast<uintptr_t>(&memory), int32_t(f.type), 0)))
        << to_string(f.type);
  }
  EXPECT_EQ(host::encode(int32_t(Type::i8), 200.0), 127u);
  EXPECT_EQ(host::encode(int32_t(Type::f32), 0.1), 0x3dcccccdu);
}

/// HIP's library is looked for by the runtime too, which must not remember that it was not to be had.
[[noreturn]] void load_on_a_short_host() {
  const deepgen::tests::LibraryCopy copy(paths::fake_hip, true);
  setenv("DEEPGEN_HIP_DRIVER", copy.path(), 1);
  use(Platform::hip);
  bool hosts_fault = false;
  try {
    const deepgen::tests::ShortOf host(RLIMIT_NOFILE);
    driver();
  } catch (const HostFault&) {
    hosts_fault = true;
  }
  const bool loaded = driver();
  std::filesystem::remove(copy.path());
  std::_Exit(hosts_fault ? loaded ? 0 : 2 : 1);
}

TEST(HipMeasureDeathTest, WhatTheHostCannotLoadNowIsTriedAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "UBSan's check of virtual tables needs a pipe, which a process without descriptors cannot have";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load_on_a_short_host(), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace deepgen::cuda::hip_measure_test
