// Faults planted in right kernels: the simulator must find each, and say what it is. Also the bank conflicts
// that it counts.
#include "tests/amd_sim/by_hand/kernel_text.h"

#include <numeric>

namespace deepgen::amd_sim::faults_test {
namespace {

constexpr const char* barrier = "  call void @llvm.amdgcn.s.barrier()\n";
constexpr const char* release = "  fence syncscope(\"workgroup\") release\n";

std::string run_gemm(const std::string& ir, const std::string& arch = "gfx942") {
  Device device(arch);
  const std::vector<uint16_t> ones(64 * 96, 0x3c00);
  device.input(ones), device.input(ones);
  const size_t d = device.output(64 * 64 * 4);
  device.number(96);
  std::string fault = device.run(ir, 256);
  for (float x : device.values<float>(d))
    if (fault.empty() && x != 96) fault = "wrong numbers";
  return fault;
}

std::string run_transpose(const std::string& ir, const std::string& arch = "gfx942") {
  Device device(arch);
  std::vector<float> x(256);
  std::iota(x.begin(), x.end(), 1.0f);
  device.input(x);
  device.output(1024);
  return device.run(ir, 256);
}

std::string run_copy(const std::string& ir, const std::string& arch = "gfx942") {
  Device device(arch);
  device.input(std::vector<uint32_t>(1024, 5));
  device.output(4096);
  return device.run(ir, 256);
}

void expect_fault(const std::string& found, const std::string& expected) {
  EXPECT_NE(found.find(expected), std::string::npos) << "expected: " << expected << "\nfound: " << found;
}

/// The text behind the n-th occurrence is changed.
std::string changed(const std::string& text, int n, const std::string& what, const std::string& by) {
  size_t at = text.find(what);
  while (n-- > 0 && at != std::string::npos) at = text.find(what, at + 1);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : std::string(text).replace(at, what.size(), by);
}

TEST(AmdFaults, KernelsAreRightWithoutThem) {
  EXPECT_EQ(run_gemm(mfma_gemm("gfx942")), "");
  EXPECT_EQ(run_transpose(transpose()), "");
  EXPECT_EQ(run_copy(copy_through_lds(4)), "");
}

TEST(AmdFaults, MissingBarriers) {
  for (int n : {0, 1}) expect_fault(run_gemm(changed(mfma_gemm("gfx942"), n, barrier, "")), "race");
  expect_fault(run_transpose(replaced(transpose(), barrier, "")), "race");
  expect_fault(run_copy(replaced(copy_through_lds(4), barrier, "")), "race");
}

/// A barrier alone does not wait for LDS operations; on gfx906 the backend does.
TEST(AmdFaults, MissingWaitsForLds) {
  for (int n : {0, 1}) expect_fault(run_gemm(changed(mfma_gemm("gfx942"), n, release, "")), "race");
  for (const char* arch : {"gfx90a", "gfx950", "gfx1100"})
    expect_fault(run_transpose(replaced(transpose(), release, ""), arch), "race");
  EXPECT_EQ(run_transpose(replaced(transpose(), release, ""), "gfx906"), "");
  const std::string narrow = "  fence syncscope(\"wavefront\") release\n";
  expect_fault(run_transpose(replaced(transpose(), release, narrow)), "race");
}

TEST(AmdFaults, MissingWaitsForCopies) {
  const std::string right = copy_through_lds(4), wait = "  call void @llvm.amdgcn.s.waitcnt(i32 3952)\n";
  expect_fault(run_copy(replaced(right, wait, "")), "race");
  // vmcnt(1): the last copy may still be under way.
  expect_fault(run_copy(replaced(right, "s.waitcnt(i32 3952)", "s.waitcnt(i32 3953)")), "race");
  // lgkmcnt(0) alone; a fence at agent scope waits for everything.
  expect_fault(run_copy(replaced(right, "s.waitcnt(i32 3952)", "s.waitcnt(i32 49279)")), "race");
  EXPECT_EQ(run_copy(replaced(replaced(right, wait, ""), release, "  fence syncscope(\"agent\") release\n")),
            "");
  EXPECT_EQ(run_copy(replaced(copy_through_lds(16), wait, wait), "gfx950"), "");
  expect_fault(run_copy(copy_through_lds(16)), "no loads to LDS of 16 bytes");
}

TEST(AmdFaults, WrongLayouts) {
  // A's rows by a lane's number modulo 16; results of rows that are not those of the lane.
  const std::string right = mfma_gemm("gfx942");
  Device device("gfx942");
  std::vector<uint16_t> a(64 * 96, 0), b(64 * 96, 0x3c00);
  for (size_t row = 0; row < 64; ++row)
    for (size_t k = 0; k < 96; ++k) a[row * 96 + k] = uint16_t(0x3c00 + row);
  const auto result = [&](const std::string& ir) {
    Device d("gfx942");
    d.input(a), d.input(b);
    const size_t out = d.output(64 * 64 * 4);
    d.number(96);
    EXPECT_EQ(d.run(ir, 256), "");
    return d.values<float>(out);
  };
  const auto expected = result(right);
  EXPECT_NE(result(replaced(right, "%lane.row = and i32 %lane, 31", "%lane.row = and i32 %lane, 15")),
            expected);
  EXPECT_NE(
      result(replaced(right, "%group.row = shl i32 %lane.group, 2", "%group.row = and i32 %lane.group, 0")),
      expected);
}

TEST(AmdFaults, AccessesOutOfBounds) {
  const std::string right = mfma_gemm("gfx942");
  expect_fault(run_gemm(replaced(right, "%at = add i32 %row.k, %k.here", "%at = add i32 %row.k, 96")),
               "out of bounds");
  expect_fault(run_gemm(replaced(right, "%d.row.at = shl i32 %d.row, 6", "%d.row.at = shl i32 %d.row, 7")),
               "out of bounds");
  expect_fault(run_gemm(replaced(right, "i32 5120\n", "i32 5152\n")), "shared memory out of bounds");
  expect_fault(run_gemm(replaced(right, "store <8 x half> %va, ptr addrspace(3) %to.a",
                                 "store <8 x half> %va, ptr addrspace(1) %a")),
               "writes an input");
  // A resource that claims more than the operand has.
  expect_fault(
      run_copy(replaced(copy_through_lds(4), "%lane.at = mul i32 %t, 4", "%lane.at = mul i32 %t, 8")),
      "depends on the chip");
  expect_fault(
      run_copy(replaced(replaced(copy_through_lds(4), "%lane.at = mul i32 %t, 4", "%lane.at = mul i32 %t, 8"),
                        "i64 4096", "i64 8192")),
      "out of bounds");
  expect_fault(run_copy(replaced(copy_through_lds(4), "i32 159744", "i32 0")), "no data format");
}

TEST(AmdFaults, MisalignedAccesses) {
  expect_fault(
      run_gemm(replaced(mfma_gemm("gfx942"), "%row.lds = mul i32 %row, 40", "%row.lds = mul i32 %row, 36")),
      "not aligned to 16");
  expect_fault(
      run_copy(replaced(copy_through_lds(4), "%lane.at = mul i32 %t, 4", "%lane.at = mul i32 %t, 6")),
      "aligned to less than 4");
}

TEST(AmdFaults, DivergentMatrixOperations) {
  const std::string ir = mfma_gemm("gfx942");
  // A wave leaves the loop lane by lane.
  expect_fault(run_gemm(replaced(ir, "%more = icmp ult i32 %k.next, %K",
                                 "%end = sub i32 %K, %lane\n  %more = icmp ult i32 %k.next, %end")),
               "divergent");
  // Half of a wave takes part.
  const std::string half = module_of("", "ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %low = icmp ult i32 %t, 32
  br i1 %low, label %multiply, label %done
multiply:
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8(i64 0, i64 0, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %g = getelementptr <4 x float>, ptr addrspace(1) %y, i32 %t
  store <4 x float> %d, ptr addrspace(1) %g, align 16
  br label %done
done:
)");
  Device device("gfx942");
  device.output(1024);
  expect_fault(device.run(half, 64), "divergent matrix operation: 32 of 64");
}

TEST(AmdFaults, DivergentBarriers) {
  const std::string split = "  %lane = and i32 %t, 63\n  %low = icmp ult i32 %lane, 40\n  br i1 %low, label "
                            "%then, label %join\nthen:\n" +
                            std::string(barrier) + "  br label %join\njoin:\n";
  expect_fault(run_transpose(replaced(transpose(), barrier, split)), "s_barrier in divergent control flow");
}

TEST(AmdFaults, RacesAmongLanes) {
  // Lanes of one wave read each other's words: a fence must keep the compiler from reordering.
  const std::string ir = module_of("@tile = internal addrspace(3) global [64 x i32] poison, align 4\n",
                                   "ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %to = getelementptr i32, ptr addrspace(3) @tile, i32 %t
  store i32 %t, ptr addrspace(3) %to, align 4
  fence syncscope("wavefront") release
  %other = xor i32 %t, 1
  %from = getelementptr i32, ptr addrspace(3) @tile, i32 %other
  %v = load i32, ptr addrspace(3) %from, align 4
  %g = getelementptr i32, ptr addrspace(1) %y, i32 %t
  store i32 %v, ptr addrspace(1) %g, align 4
)");
  const auto run = [](const std::string& text) {
    Device device("gfx942");
    device.output(256);
    return device.run(text, 64);
  };
  EXPECT_EQ(run(ir), "");
  expect_fault(run(replaced(ir, "  fence syncscope(\"wavefront\") release\n", "")), "within a wave");
  expect_fault(run(replaced(ir, "i32 %t\n  store i32 %t", "i32 0\n  store i32 %t")), "different values");
}

TEST(AmdFaults, KernelsThatAreNotLaunchable) {
  const auto run = [](const std::string& ir, int64_t threads) { return Device("gfx942").run(ir, threads); };
  expect_fault(run("define void @k() { ret void }", 64), "amdgcn");
  const std::string nothing = module_of("", "", "");
  EXPECT_EQ(run(nothing, 64), "");
  expect_fault(run(replaced(nothing, "amdgpu_kernel ", ""), 64), "calling convention");
  expect_fault(run(replaced(nothing, "@k() {", "@k() \"amdgpu-flat-work-group-size\"=\"1,64\" {"), 128),
               "up to 64 threads");
  expect_fault(run(module_of("", "i32 %n", ""), 64), "1 parameters");
}

/// 64 lanes read `bytes` each from rows of `pitch` bytes: as an MFMA's A operand, 16 rows by 4 parts of K.
double read_factor(const std::string& arch, int bytes, int pitch, bool rows_first = true) {
  const std::string type = "<" + std::to_string(bytes / 4) + " x i32>";
  std::string body =
      "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %row = and i32 %t, 15\n  %part = lshr i32 %t, 4\n";
  if (!rows_first) body = replaced(body, "%row = and i32 %t, 15", "%row = and i32 %t, 0");
  body += "  %r = mul i32 %row, " + std::to_string(pitch) + "\n  %p = mul i32 %" +
          std::string(rows_first ? "part" : "t") + ", " + std::to_string(bytes) +
          "\n  %at = add i32 %r, %p\n";
  body += "  %from = getelementptr i8, ptr addrspace(3) @tile, i32 %at\n  %v = load " + type +
          ", ptr addrspace(3) %from, align 4\n  %g = getelementptr " + type +
          ", ptr addrspace(1) %y, i32 %t\n  store " + type + " %v, ptr addrspace(1) %g, align 4\n";
  Device device(arch);
  device.output(size_t(64 * bytes));
  EXPECT_EQ(device.run(module_of("@tile = internal addrspace(3) global [32768 x i8] poison, align 16\n",
                                 "ptr addrspace(1) %y", body),
                       64),
            "");
  EXPECT_EQ(device.report.lds.size(), 1u);
  return device.report.lds.at(0).conflict_factor;
}

TEST(AmdBanks, ConflictsAreCounted) {
  for (const char* arch : {"gfx906", "gfx942", "gfx950"})
    for (int bytes : {4, 8, 16}) EXPECT_EQ(read_factor(arch, bytes, 0, false), 1) << arch << " " << bytes;
  // Rows of 128 bytes: every row begins at bank 0; 4 bytes: 16 rows by 2 parts are served at once.
  EXPECT_EQ(read_factor("gfx942", 4, 128), 16);
  EXPECT_EQ(read_factor("gfx942", 8, 128), 16);
  // 16 bytes: rows 0 to 3 of one part and 4 to 7 of the next go together.
  EXPECT_EQ(read_factor("gfx942", 16, 128), 4);
  EXPECT_EQ(read_factor("gfx942", 16, 128 + 16), 2);
  EXPECT_EQ(read_factor("gfx942", 16, 128 + 32), 1);
  EXPECT_EQ(read_factor("gfx942", 8, 128 + 8), 1);
  // 64 banks: rows of 128 bytes begin at two of them.
  EXPECT_EQ(read_factor("gfx950", 8, 128), 8);
  EXPECT_EQ(read_factor("gfx950", 16, 256), 8);
  EXPECT_EQ(read_factor("gfx950", 16, 256 + 16), 2);
  EXPECT_EQ(read_factor("gfx950", 16, 256 + 32), 1);
}

} // namespace
} // namespace deepgen::amd_sim::faults_test
