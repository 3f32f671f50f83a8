// Tensor copies, mbarriers and wgmma, by a kernel in PTX of one warpgroup and one stage: D = A B of 64 x 64 x
// K.
#include "tests/ptx_sim/machine/launch.h"
#include "tests/ptx_sim/machine/tensor_map.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace deepgen::ptx_sim::hopper_test {
namespace {

constexpr int64_t kSize = 64, kTile = 8192; // M and N; bytes of an operand's stage

struct Spec {
  const char* type;
  Format format;
  int swizzle;
  bool a_major, b_major; ///< M or N contiguous in memory
  int64_t bytes() const { return bits_of(format) / 8; }
  /// Elements of K in a stage.
  int64_t step() const { return a_major || b_major ? 64 : swizzle / bytes(); }
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string multiply(const Spec& s, int64_t index) {
  const int64_t k = 32 / s.bytes(), a = index * (s.a_major ? k * 128 : 32) / 16,
                b = index * (s.b_major ? k * 128 : 32) / 16;
  std::string text =
      "add.s64 %rd6, %rd4, " + std::to_string(a) + ";\nadd.s64 %rd7, %rd5, " + std::to_string(b) + ";\n";
  text += "wgmma.mma_async.sync.aligned.m64n64k" + std::to_string(k) + ".f32." + s.type + "." + s.type + " {";
  for (int i = 0; i < 32; ++i) text += (i ? ", %f" : "%f") + std::to_string(i);
  text += "}, %rd6, %rd7, %p3, 1, 1";
  if (s.bytes() == 2) text += std::string(", ") + (s.a_major ? "1" : "0") + ", " + (s.b_major ? "1" : "0");
  return text + ";\n";
}

/// A matrix descriptor without the address: the stride of 8 rows, and the swizzle.
std::string descriptor(int64_t pitch, int swizzle) {
  const uint64_t code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
  return std::to_string(int64_t(code << 62 | uint64_t(8 * pitch / 16) << 32 | 1 << 16));
}

/// Row and column of the tile's pair i of accumulators: 16 warp + lane / 4 + 8 (i odd), 8 (i / 2) + 2 (lane %
/// 4).
std::string store() {
  std::string text = R"(
  shr.u32 %r10, %r0, 5; shl.b32 %r10, %r10, 4; bfe.u32 %r11, %r0, 2, 3; add.s32 %r10, %r10, %r11;
  and.b32 %r11, %r0, 3; shl.b32 %r11, %r11, 3; shl.b32 %r10, %r10, 8; add.s32 %r10, %r10, %r11;
  ld.param.u64 %rd8, [d]; cvt.u64.u32 %rd9, %r10; add.s64 %rd8, %rd8, %rd9;
)";
  for (int i = 0; i < 16; ++i)
    text += "st.global.v2.f32 [%rd8+" + std::to_string(i / 2 * 32 + i % 2 * 2048) + "], {%f" +
            std::to_string(2 * i) + ", %f" + std::to_string(2 * i + 1) + "};\n";
  return text;
}

std::string kernel(const Spec& s) {
  const int64_t steps = s.step() * s.bytes() / 32, stage = kSize * s.step() * s.bytes();
  std::string text = R"(.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry gemm(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 d, .param .u32 kt)
.reqntid 128, 1, 1
{
  .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<32>;
  mov.u32 %r0, %tid.x;
  setp.eq.s32 %p0, %r0, 0; setp.ne.s32 %p3, 1, 0;
  mov.b64 %rd1, map_a; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, map_b; cvta.param.u64 %rd2, %rd2;
  mov.u32 %r7, smem; add.s32 %r8, %r7, 8192; add.s32 %r9, %r7, 16384;
  @%p0 prefetch.tensormap [%rd1];
  @%p0 mbarrier.init.shared.b64 [%r9], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  ld.param.u32 %r1, [kt];
  mov.u32 %r2, 0; mov.u32 %r4, 0;
  shr.u32 %r6, %r7, 4; cvt.u64.u32 %rd4, %r6; shr.u32 %r6, %r8, 4; cvt.u64.u32 %rd5, %r6;
)";
  text += "or.b64 %rd4, %rd4, " + descriptor(s.a_major ? 128 : s.swizzle, s.swizzle) + ";\n";
  text += "or.b64 %rd5, %rd5, " + descriptor(s.b_major ? 128 : s.swizzle, s.swizzle) + ";\n";
  for (int i = 0; i < 32; ++i) text += "mov.b32 %f" + std::to_string(i) + ", 0f00000000;\n";
  text += "LOOP:\n@!%p0 bra WAIT;\nmul.lo.s32 %r3, %r2, " + std::to_string(s.step()) + ";\n";
  text += "mbarrier.arrive.expect_tx.shared.b64 %rd0, [%r9], " + std::to_string(2 * stage) + ";\n";
  const char* copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes ";
  text += std::string(copy) + "[%r7], [%rd1, {" + (s.a_major ? "%r4, %r3" : "%r3, %r4") + "}], [%r9];\n";
  text += std::string(copy) + "[%r8], [%rd2, {" + (s.b_major ? "%r4, %r3" : "%r3, %r4") + "}], [%r9];\n";
  text += "WAIT:\nand.b32 %r5, %r2, 1;\nTRY:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r9], %r5;\n@!%p1 "
          "bra TRY;\n";
  text += "wgmma.fence.sync.aligned;\n";
  for (int64_t i = 0; i < steps; ++i) text += multiply(s, i);
  text += R"(wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  bar.sync 0;
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p2, %r2, %r1;
  @%p2 bra LOOP;
)";
  return text + store() + "ret;\n}\n";
}

template <typename T>
std::vector<uint8_t> bytes_of(const T& x) {
  std::vector<uint8_t> out(sizeof x);
  std::memcpy(out.data(), &x, sizeof x);
  return out;
}

/// Runs the PTX; the largest error relative to 2^-20, or what went wrong.
struct Result {
  std::string fault;
  double error = 0;
};

class Gemm {
public:
  Gemm(const Spec& s, int64_t k) : s_(s), k_(k) {
    a_ = fill("a", s.a_major, x_);
    b_ = fill("b", s.b_major, y_);
    d_ = memory_.add("d", kSize * kSize * 4, 0, true);
    std::fill(memory_[d_].owned.begin(), memory_[d_].owned.end(), uint8_t(1));
  }

  Result operator()(const std::string& ptx) {
    const auto kt = uint32_t((k_ + s_.step() - 1) / s_.step());
    try {
      run_launch(ptx, {"gemm", {1, 1, 1}, {128, 1, 1}, {1, 1, 1}, 2 * kTile + 8, false},
                 {bytes_of(map(a_, s_.a_major)), bytes_of(map(b_, s_.b_major)), bytes_of(memory_[d_].base),
                  bytes_of(kt)},
                 memory_, 5);
    } catch (const Fault& f) {
      return {f.what(), 0};
    }
    Result r;
    for (int64_t m = 0; m < kSize; ++m)
      for (int64_t n = 0; n < kSize; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < k_; ++k) sum += x_[size_t(m * k_ + k)] * y_[size_t(n * k_ + k)];
        uint32_t bits;
        std::memcpy(&bits, &memory_[d_].bytes[size_t(m * kSize + n) * 4], 4);
        const double error = std::fabs(to_float(bits) - sum) * 0x1p20;
        r.error = std::isnan(error) ? INFINITY : std::max(r.error, error);
      }
    return r;
  }

private:
  /// values[outer][k]; in memory with K or the outer dimension contiguous.
  size_t fill(const char* name, bool outer_major, std::vector<double>& values) {
    const int64_t size = s_.bytes();
    const size_t region = memory_.add(name, size_t(kSize * k_ * size), 0, false);
    std::fill(memory_[region].owned.begin(), memory_[region].owned.end(), uint8_t(1));
    for (int64_t o = 0; o < kSize; ++o)
      for (int64_t k = 0; k < k_; ++k) {
        const uint64_t bits = encode(s_.format, double(random_() >> 40) * 0x1p-23 - 1);
        values.push_back(decode(s_.format, bits));
        std::memcpy(&memory_[region].bytes[size_t((outer_major ? k * kSize + o : o * k_ + k) * size)], &bits,
                    size_t(size));
      }
    return region;
  }
  SimulatedMap map(size_t region, bool outer_major) {
    const int64_t sizes[] = {outer_major ? kSize : k_, outer_major ? k_ : kSize}, steps[] = {sizes[0]};
    deepgen::TensorMap box;
    box.box_columns = outer_major ? kSize : s_.step(), box.box_rows = outer_major ? s_.step() : kSize,
    box.swizzle = s_.swizzle;
    return make_tensor_map(memory_[region].base, uint32_t(s_.bytes()), 2, sizes, steps, box);
  }

  const Spec s_;
  const int64_t k_;
  GlobalMemory memory_;
  std::mt19937_64 random_{3};
  std::vector<double> x_, y_;
  size_t a_ = 0, b_ = 0, d_ = 0;
};

constexpr Spec specs[] = {
    {"bf16", Format::bf16, 128, false, false}, {"bf16", Format::bf16, 64, false, false},
    {"bf16", Format::bf16, 32, false, false},  {"f16", Format::f16, 128, true, false},
    {"f16", Format::f16, 128, false, true},    {"bf16", Format::bf16, 128, true, true},
    {"e4m3", Format::e4m3, 64, false, false},  {"tf32", Format::tf32, 128, false, false},
};

TEST(Hopper, CopiesAndWgmmaMultiply) {
  for (const Spec& s : specs) { // K is no whole number of stages: the rest is zero
    const Result r = Gemm(s, 208)(kernel(s));
    EXPECT_EQ(r.fault, "") << s.type << " swizzle " << s.swizzle << " majors " << s.a_major << s.b_major;
    const bool narrow = s.format == Format::e4m3; // of whose sums 14 bits are kept
    EXPECT_LT(r.error, narrow ? 64 << 9 : 64)
        << s.type << " swizzle " << s.swizzle << " majors " << s.a_major << s.b_major;
    EXPECT_EQ(r.error > 64, narrow) << s.type;
  }
}

struct Planted {
  const char *what, *by, *fault; ///< a part of the fault that must be found
};

TEST(Hopper, PlantedFaultsAreFound) {
  const std::string right = kernel(specs[0]);
  const Planted all[] = {
      {"wgmma.fence.sync.aligned;", "", "without a wgmma.fence"},
      {"wgmma.wait_group.sync.aligned 0;", "", "race"}, // the next copy into what is still being read
      {"wgmma.commit_group.sync.aligned;", "", "race"},
      {"wgmma.wait_group.sync.aligned 0;", "add.f32 %f0, %f0, %f1;", "still under way"},
      {"@!%p1 bra TRY;", "", "does not know that the write has happened"},
      {"fence.mbarrier_init.release.cluster;\n  bar.sync 0;", "fence.mbarrier_init.release.cluster;",
       "mbarrier"},
      {"[%r9], 16384;", "[%r9], 16400;", "deadlock"},
      {"[%r9], 16384;", "[%r9], 8192;", "does not know that the write has happened"},
      {"[%r8], [%rd2", "[%r8+64], [%rd2", "128"},
      {"[%r8], [%rd2", "[%r7], [%rd2", "race"},
      {"prefetch.tensormap [%rd1];", "prefetch.tensormap [%rd1+256];", "the tensor map is no parameter"},
  };
  for (const Planted& p : all) {
    const Result r = Gemm(specs[0], 208)(replaced(right, p.what, p.by));
    EXPECT_NE(r.fault.find(p.fault), std::string::npos) << p.what << " -> " << p.by << ": " << r.fault;
  }
}

TEST(Numbers, OfSixteenBitsAreWhatTheirFieldsSay) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = int(bits >> 10 & 31), fraction = int(bits & 1023);
    const double found = decode(Format::f16, bits), sign = bits >> 15 ? -1 : 1;
    if (exponent == 31 && fraction) {
      ASSERT_TRUE(std::isnan(found)) << bits;
      continue;
    }
    const double finite =
        sign * std::ldexp(exponent ? 1024 + fraction : fraction, std::max(exponent, 1) - 25);
    ASSERT_EQ(found, exponent == 31 ? sign * HUGE_VAL : finite) << bits;
    ASSERT_EQ(encode(Format::f16, found), bits);
    ASSERT_EQ(std::signbit(found), bits >> 15 != 0) << bits;
  }
}

} // namespace
} // namespace deepgen::ptx_sim::hopper_test
