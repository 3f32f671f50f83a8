// Right kernels, written by hand in LLVM IR: what the simulator computes.
#include "tests/amd_sim/by_hand/kernel_text.h"
#include "tests/amd_sim/instructions/small_floats.h"
#include "tests/ptx_sim/program/numbers.h"

#include <cmath>
#include <numeric>
#include <random>

namespace deepgen::amd_sim::kernels_test {
namespace {

using ptx_sim::Format;

/// Normal numbers: gfx90a takes others for zeros.
std::vector<uint16_t> random_halves(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint16_t> all(n);
  for (uint16_t& x : all) {
    const double value = double(random() >> 40) * 0x1p-23 - 1;
    x = uint16_t(encode(Format::f16, std::fabs(value) < 0x1p-14 ? 0x1p-14 : value));
  }
  return all;
}
double half(uint16_t bits) { return decode(Format::f16, bits); }

std::vector<uint32_t> counted(size_t n) {
  std::vector<uint32_t> all(n);
  std::iota(all.begin(), all.end(), 1000u);
  return all;
}

TEST(AmdKernels, TransposeThroughLds) {
  for (const char* arch : {"gfx906", "gfx942", "gfx1100"}) {
    Device device(arch);
    std::vector<float> x(256);
    std::iota(x.begin(), x.end(), 1.0f);
    device.input(x);
    const size_t y = device.output(1024);
    ASSERT_EQ(device.run(transpose(), 256), "") << arch;
    const auto found = device.values<float>(y);
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(found[i], x[i % 16 * 16 + i / 16]) << arch << " " << i;
  }
}

/// Largest error of D = A B with f16 inputs and K contiguous.
double gemm_error(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, const std::vector<float>& d,
                  size_t rows, size_t columns, size_t k) {
  double most = 0;
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (size_t l = 0; l < k; ++l) sum += half(a[i * k + l]) * half(b[j * k + l]);
      const double error = std::fabs(sum - double(d[i * columns + j]));
      most = std::isnan(error) ? INFINITY : std::max(most, error);
    }
  return most;
}

TEST(AmdKernels, MfmaGemm) {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950"}) {
    Device device(arch);
    const uint32_t k = 96;
    const auto a = random_halves(64 * k, 1), b = random_halves(64 * k, 2);
    device.input(a), device.input(b);
    const size_t d = device.output(64 * 64 * 4);
    device.number(k);
    ASSERT_EQ(device.run(mfma_gemm(arch), 256), "") << arch;
    EXPECT_LT(gemm_error(a, b, device.values<float>(d), 64, 64, k), 1e-5) << arch;
    EXPECT_EQ(device.report.matrix_operations, 4u * 3 * (std::string(arch) == "gfx950" ? 2 : 4)) << arch;
  }
}

/// One wave, one tile: lane l loads what the instruction wants of it.
std::string wmma(bool gfx12) {
  std::string body = "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %row = and i32 %t, 15\n"
                     "  %group = lshr i32 %t, 4\n  %at.row = shl i32 %row, 4\n";
  body += gfx12 ? "  %at.k = shl i32 %group, 3\n" : "  %at.k = and i32 %group, 0\n";
  const std::string f = gfx12 ? "<8 x half>" : "<16 x half>";
  body += "  %at = add i32 %at.row, %at.k\n";
  for (const char* x : {"a", "b"}) {
    body += std::string("  %g") + x + " = getelementptr half, ptr addrspace(1) %" + x + ", i32 %at\n";
    body += std::string("  %v") + x + " = load " + f + ", ptr addrspace(1) %g" + x + ", align 16\n";
  }
  body += "  %d8 = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32." +
          std::string(gfx12 ? "v8f16" : "v16f16") + "(" + f + " %va, " + f +
          " %vb, <8 x float> zeroinitializer)\n";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    body += "  %r" + n + " = mul i32 %group, " + (gfx12 ? "8" : "1") + "\n  %s" + n + " = add i32 %r" + n +
            ", " + std::to_string(gfx12 ? i : 2 * i) + "\n  %p" + n + " = shl i32 %s" + n + ", 4\n  %q" + n +
            " = add i32 %p" + n + ", %row\n";
    body += "  %o" + n + " = getelementptr float, ptr addrspace(1) %d, i32 %q" + n + "\n  %e" + n +
            " = extractelement <8 x float> %d8, i32 " + n + "\n  store float %e" + n +
            ", ptr addrspace(1) %o" + n + ", align 4\n";
  }
  return module_of("", "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d", body);
}

TEST(AmdKernels, Wmma) {
  for (const char* arch : {"gfx1100", "gfx1201"}) {
    Device device(arch);
    const auto a = random_halves(256, 3), b = random_halves(256, 4);
    device.input(a), device.input(b);
    const size_t d = device.output(1024);
    ASSERT_EQ(device.run(wmma(arch[4] == '2'), 32), "") << arch;
    EXPECT_LT(gemm_error(a, b, device.values<float>(d), 16, 16, 16), 1e-5) << arch;
  }
}

TEST(AmdKernels, LoadsToLds) {
  for (const auto& [arch, bytes] : {std::pair("gfx942", 4), std::pair("gfx950", 16)}) {
    Device device(arch);
    const auto x = counted(1024);
    device.input(x);
    const size_t y = device.output(4096);
    ASSERT_EQ(device.run(copy_through_lds(bytes), 256), "") << arch;
    const auto found = device.values<uint32_t>(y);
    for (size_t i = 0; i < 1024; ++i) ASSERT_EQ(found[i], x[1023 - i]) << arch << " " << i;
  }
}

/// Each of 64 lanes copies 16 bytes through two resources of `in` and `out` bytes.
std::string copy_by_buffers(int in, int out) {
  return module_of(
      "", "ptr addrspace(1) %x, ptr addrspace(1) %y",
      "  %rx = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %x, i16 0, "
      "i64 " +
          std::to_string(in) +
          ", i32 159744)\n"
          "  %ry = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %y, i16 0, "
          "i64 " +
          std::to_string(out) + R"(, i32 159744)
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %at = shl i32 %t, 4
  %v = call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %rx, i32 %at, i32 0, i32 0)
  call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32> %v, ptr addrspace(8) %ry, i32 %at, i32 0, i32 0)
)");
}

TEST(AmdKernels, BuffersReadZeroBeyondTheirEndAndDropWrites) {
  Device device("gfx942");
  const auto x = counted(100);
  device.input(x);
  const size_t y = device.output(1000);
  // 100 words in, of which lane 25 and later see nothing; 250 words out, the last two of lane 62 dropped.
  ASSERT_EQ(device.run(copy_by_buffers(400, 1000), 64), "");
  const auto found = device.values<uint32_t>(y);
  for (size_t i = 0; i < 250; ++i) EXPECT_EQ(found[i], i < 100 ? x[i] : 0) << i;
}

TEST(AmdKernels, FatPointersCheckBounds) {
  Device device("gfx1100");
  const auto x = counted(40);
  device.input(x);
  const size_t y = device.output(256);
  const std::string ir = module_of("", "ptr addrspace(1) %x, ptr addrspace(1) %y", R"(
  %rx = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %x, i16 0, i64 160, i32 822243328)
  %fx = addrspacecast ptr addrspace(8) %rx to ptr addrspace(7)
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %px = getelementptr i32, ptr addrspace(7) %fx, i32 %t
  %v = load i32, ptr addrspace(7) %px, align 4
  %gy = getelementptr i32, ptr addrspace(1) %y, i32 %t
  store i32 %v, ptr addrspace(1) %gy, align 4
)");
  ASSERT_EQ(device.run(ir, 64), "");
  const auto found = device.values<uint32_t>(y);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(found[i], i < 40 ? x[i] : 0) << i;
}

TEST(AmdKernels, LanesTellEachOther) {
  const std::string ir = module_of("", "ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %back = sub i32 63, %t
  %back.at = shl i32 %back, 2
  %x0 = call i32 @llvm.amdgcn.ds.bpermute(i32 %back.at, i32 %t)
  %x1 = call i32 @llvm.amdgcn.update.dpp.i32(i32 77, i32 %t, i32 273, i32 15, i32 15, i1 false)
  %odd = trunc i32 %t to i1
  %votes = call i64 @llvm.amdgcn.ballot.i64(i1 %odd)
  %low = trunc i64 %votes to i32
  %x2.low = call i32 @llvm.amdgcn.mbcnt.lo(i32 %low, i32 0)
  %x2 = call i32 @llvm.amdgcn.mbcnt.hi(i32 %low, i32 %x2.low)
  %seven = add i32 %t, 7
  %x3 = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %seven)
  %x4 = call i32 @llvm.amdgcn.ds.swizzle(i32 %t, i32 1055)
  %v0 = insertelement <4 x i32> poison, i32 %x0, i32 0
  %v1 = insertelement <4 x i32> %v0, i32 %x1, i32 1
  %v2 = insertelement <4 x i32> %v1, i32 %x2, i32 2
  %x34 = shl i32 %x4, 8
  %both = or i32 %x34, %x3
  %v3 = insertelement <4 x i32> %v2, i32 %both, i32 3
  %g = getelementptr <4 x i32>, ptr addrspace(1) %y, i32 %t
  store <4 x i32> %v3, ptr addrspace(1) %g, align 16
)");
  Device device("gfx942");
  const size_t y = device.output(1024);
  ASSERT_EQ(device.run(ir, 64), "");
  const auto found = device.values<uint32_t>(y);
  for (uint32_t t = 0; t < 64; ++t) {
    EXPECT_EQ(found[4 * t], 63 - t);
    EXPECT_EQ(found[4 * t + 1], t % 16 ? t - 1 : 77u); // row_shr:1
    EXPECT_EQ(found[4 * t + 2], t / 2);
    EXPECT_EQ(found[4 * t + 3], (t ^ 1) << 8 | 7u); // swizzle by xor of 1
  }
}

/// Lanes leave the loop after different turns, and a switch parts them again: they meet behind both.
TEST(AmdKernels, LanesPartAndMeetAgain) {
  const std::string ir = module_of("", "ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %next ]
  %s = phi i32 [ 0, %entry ], [ %s.next, %next ]
  %old = phi i32 [ 5, %entry ], [ %s, %next ]
  %kind = and i32 %i, 3
  switch i32 %kind, label %other [ i32 1, label %one
                                   i32 2, label %two
                                   i32 3, label %other ]
one:
  %s1 = add i32 %s, 10
  br label %next
two:
  %s2 = add i32 %s, 100
  br label %next
other:
  br label %next
next:
  %s.next = phi i32 [ %s1, %one ], [ %s2, %two ], [ %s, %other ]
  %i.next = add i32 %i, 1
  %more = icmp ule i32 %i.next, %t
  br i1 %more, label %loop, label %done
done:
  %first = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %s.next)
  %both = shl i32 %s.next, 8
  %sum = add i32 %both, %first
  %out = add i32 %sum, %old
  %g = getelementptr i32, ptr addrspace(1) %y, i32 %t
  store i32 %out, ptr addrspace(1) %g, align 4
)");
  Device device("gfx1100");
  const size_t y = device.output(256);
  ASSERT_EQ(device.run(ir, 64), "");
  const auto found = device.values<uint32_t>(y);
  const auto sum = [](uint32_t turns) {
    uint32_t s = 0, old = 5;
    for (uint32_t i = 0; i < turns; ++i) {
      const uint32_t before = s;
      s += i % 4 == 1 ? 10 : i % 4 == 2 ? 100 : 0;
      if (i + 1 < turns) old = before;
    }
    return std::pair(s, old);
  };
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(found[t], (sum(t + 1).first << 8) + sum(t / 32 * 32 + 1).first + sum(t + 1).second) << t;
}

TEST(AmdKernels, DotProducts) {
  const std::string ir = module_of("", "ptr addrspace(1) %x, ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %gx = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %v = load i32, ptr addrspace(1) %gx, align 4
  %h = bitcast i32 %v to <2 x half>
  %f = call float @llvm.amdgcn.fdot2(<2 x half> %h, <2 x half> %h, float 1.0, i1 false)
  %i = call i32 @llvm.amdgcn.sdot4(i32 %v, i32 %v, i32 -3, i1 false)
  %b = bitcast float %f to i32
  %p0 = insertelement <2 x i32> poison, i32 %b, i32 0
  %p1 = insertelement <2 x i32> %p0, i32 %i, i32 1
  %gy = getelementptr <2 x i32>, ptr addrspace(1) %y, i32 %t
  store <2 x i32> %p1, ptr addrspace(1) %gy, align 8
)");
  Device device("gfx906");
  const auto x = random_halves(128, 8);
  device.input(x);
  const size_t y = device.output(512);
  ASSERT_EQ(device.run(ir, 64), "");
  const auto found = device.values<uint32_t>(y);
  for (size_t t = 0; t < 64; ++t) {
    const double a = half(x[2 * t]), b = half(x[2 * t + 1]);
    EXPECT_NEAR(ptx_sim::to_float(found[2 * t]), 1 + a * a + b * b, 1e-6);
    int sum = -3;
    for (uint16_t h : {x[2 * t], x[2 * t + 1]})
      sum += int8_t(h) * int8_t(h) + int8_t(h >> 8) * int8_t(h >> 8);
    EXPECT_EQ(int32_t(found[2 * t + 1]), sum);
  }
}

/// The sum and both products of a dot product, and what comes of them.
struct Dot {
  float c, products[2], sum;
};

/// A product of f16 or bf16 is exact. Sums are rounded one after the other; subnormal f32 are zeros.
constexpr Dot kDots[] = {
    {0x1p24f, {1, 1}, 0x1p24f}, // both ties to even; added up first they would give 2^24 + 2
    {0x1p24f, {3, 1}, 0x1p24f + 4},       {-1, {1, 0x1p-20f}, 0x1p-20f},          {0x1p-127f, {0, 0}, 0},
    {0x1p-127f, {0x1p-20f, 0}, 0x1p-20f}, {-0x1p-126f, {0x1p-10f, -0x1p-10f}, 0}, // 2^-10 - 2^-126 is 2^-10
    {2048, {-2048, 0x1p-24f}, 0x1p-24f}};                                         // subnormal as f16

template <typename F>
void check_dots(const std::string& arch, const std::string& type, const std::string& name, F encoded) {
  Device device(arch);
  std::vector<uint16_t> x;
  std::vector<float> c;
  for (const Dot& d : kDots) {
    for (float product : d.products) x.push_back(encoded(product));
    c.push_back(d.c);
  }
  x.resize(128), c.resize(64);
  device.input(x), device.input(c);
  const size_t y = device.output(256);
  const std::string one = type == "half" ? "0xH3C00" : "0xR3F80", pair = "<2 x " + type + ">";
  const std::string call = "call float @llvm.amdgcn." + name + "(" + pair + " %v, " + pair + " <" + type +
                           " " + one + ", " + type + " " + one + ">, float %c.v, i1 false)";
  ASSERT_EQ(device.run(module_of("", "ptr addrspace(1) %x, ptr addrspace(1) %c, ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %gx = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %v = load )" + pair + R"(, ptr addrspace(1) %gx, align 4
  %gc = getelementptr i32, ptr addrspace(1) %c, i32 %t
  %c.v = load float, ptr addrspace(1) %gc, align 4
  %f = )" + call + R"(
  %gy = getelementptr i32, ptr addrspace(1) %y, i32 %t
  store float %f, ptr addrspace(1) %gy, align 4
)"),
                       64),
            "");
  const auto found = device.values<float>(y);
  for (size_t i = 0; i < std::size(kDots); ++i)
    EXPECT_EQ(found[i], kDots[i].sum) << arch << " " << type << " " << i;
}

TEST(AmdKernels, DotProductsRoundEachSum) {
  check_dots("gfx906", "half", "fdot2", [](float x) { return uint16_t(encode(Format::f16, x)); });
  check_dots("gfx950", "bfloat", "fdot2.f32.bf16",
             [](float x) { return uint16_t(ptx_sim::encode(Format::bf16, x)); });
}

std::string four(const std::string& x) { return "<" + x + ", " + x + ", " + x + ", " + x + ">"; }

/// 16 products of 1 and the smallest f16; of 1 and the smallest e5m2 as bf16, which is normal there; a dot
/// product of two of the first.
TEST(AmdKernels, Gfx90aTakesSubnormalOperandsForZeros) {
  const std::string zeros = ", <4 x float> zeroinitializer, i32 0, i32 0, i32 0)\n";
  const std::string ir =
      module_of("", "ptr addrspace(1) %y",
                "  %h = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> " +
                    four("half 0xH0001") + ", <4 x half> " + four("half 0xH3C00") + zeros +
                    "  %b = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16bf16.1k(<4 x i16> " +
                    four("i16 14208") + ", <4 x i16> " + four("i16 16256") + zeros + R"(
  %d = call float @llvm.amdgcn.fdot2(<2 x half> <half 0xH0001, half 0xH3C00>, <2 x half> <half 0xH3C00, half 0xH0001>, float 0.0, i1 false)
  %h0 = extractelement <4 x float> %h, i32 0
  %b0 = extractelement <4 x float> %b, i32 0
  %v0 = insertelement <4 x float> zeroinitializer, float %h0, i32 0
  %v1 = insertelement <4 x float> %v0, float %b0, i32 1
  %v2 = insertelement <4 x float> %v1, float %d, i32 2
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %t
  store <4 x float> %v2, ptr addrspace(1) %g, align 16
)");
  for (const std::string arch : {"gfx90a", "gfx942"}) {
    Device device(arch);
    const size_t y = device.output(1024);
    ASSERT_EQ(device.run(ir, 64), "") << arch;
    const auto found = device.values<float>(y);
    const bool flushes = arch == "gfx90a";
    for (size_t lane = 0; lane < 64; ++lane) {
      EXPECT_EQ(found[4 * lane], flushes ? 0 : 0x1p-20f) << arch;
      EXPECT_EQ(found[4 * lane + 1], 0x1p-12f) << arch;
      EXPECT_EQ(found[4 * lane + 2], flushes ? 0 : 0x1p-23f) << arch;
    }
  }
}

/// Modulo 2^32, and of i8 whose products do not fit in i16 together.
TEST(AmdKernels, DotProductsOfBytes) {
  const std::string text = module_of("", "ptr addrspace(1) %y", R"(
  %near = call i32 @llvm.amdgcn.sdot4(i32 -2139062144, i32 -2139062144, i32 2147483647, i1 false)
  %mixed = call i32 @llvm.amdgcn.sudot4(i1 true, i32 -1, i1 false, i32 -1, i32 7, i1 false)
  %p0 = insertelement <2 x i32> poison, i32 %near, i32 0
  %p1 = insertelement <2 x i32> %p0, i32 %mixed, i32 1
  store <2 x i32> %p1, ptr addrspace(1) %y, align 8
)");
  Device device("gfx1100");
  const size_t y = device.output(8);
  ASSERT_EQ(device.run(text, 1), "");
  EXPECT_EQ(device.values<uint32_t>(y),
            (std::vector<uint32_t>{0x80000000u + 4 * 128 * 128 - 1, uint32_t(7 - 4 * 255)}));
}

/// A = B = 0x40 everywhere: 2 in OCP's e4m3, 1 in that of gfx942.
TEST(AmdKernels, Fp8IsThatOfTheChip) {
  const std::string ir = module_of("", "ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8(i64 4629771061636907072, i64 4629771061636907072, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %g = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %t
  store <4 x float> %d, ptr addrspace(1) %g, align 16
)");
  for (const auto& [arch, expected] : {std::pair("gfx942", 32.0f), std::pair("gfx950", 128.0f)}) {
    Device device(arch);
    const size_t y = device.output(1024);
    ASSERT_EQ(device.run(ir, 64), "") << arch;
    for (float x : device.values<float>(y)) EXPECT_EQ(x, expected) << arch;
  }
}

TEST(AmdKernels, SmallFloatsRoundToEven) {
  for (const bool fnuz : {false, true})
    for (const int exponent_bits : {4, 5}) {
      const SmallFormat f{exponent_bits, fnuz};
      for (uint64_t i = 0; i < 256; ++i) {
        const double x = decode_small(f, i);
        if (!std::isfinite(x)) continue;
        EXPECT_EQ(decode_small(f, encode_small(f, x)), x) << exponent_bits << fnuz << " " << i;
        const double up = decode_small(f, i + 1);
        if (i < 0x7f && std::isfinite(up)) {
          EXPECT_EQ(encode_small(f, (x + up) / 2), i + i % 2) << exponent_bits << fnuz << " " << i;
        }
      }
    }
  EXPECT_EQ(decode_small({4, false}, 0x7e), 448);
  EXPECT_EQ(decode_small({4, true}, 0x7f), 240);
  EXPECT_EQ(decode_small({5, true}, 0x7f), 57344);
  EXPECT_EQ(encode_small({4, true}, 1000), 0x7fu);
}

} // namespace
} // namespace deepgen::amd_sim::kernels_test
