#include "tests/amd_sim/by_hand/kernel_text.h"

namespace deepgen::amd_sim {
namespace {

constexpr const char* kHead = R"(
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgcn-amd-amdhsa"
)";

constexpr const char* kDeclarations = R"(
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare void @llvm.amdgcn.s.barrier()
declare void @llvm.amdgcn.s.waitcnt(i32)
declare void @llvm.amdgcn.s.setprio(i16)
declare void @llvm.amdgcn.sched.barrier(i32)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16bf16.1k(<4 x i16>, <4 x i16>, <4 x float>, i32, i32, i32)
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x16.f16(<8 x half>, <8 x half>, <16 x float>, i32, i32, i32)
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8(i64, i64, <4 x float>, i32, i32, i32)
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half>, <16 x half>, <8 x float>)
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half>, <8 x half>, <8 x float>)
declare float @llvm.amdgcn.fdot2(<2 x half>, <2 x half>, float, i1)
declare float @llvm.amdgcn.fdot2.f32.bf16(<2 x bfloat>, <2 x bfloat>, float, i1)
declare i32 @llvm.amdgcn.sdot4(i32, i32, i32, i1)
declare i32 @llvm.amdgcn.sudot4(i1, i32, i1, i32, i32, i1)
declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1), i16, i64, i32)
declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(<4 x i32>, ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8), ptr addrspace(3), i32, i32, i32, i32, i32)
declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.mbcnt.hi(i32, i32)
declare i64 @llvm.amdgcn.ballot.i64(i1)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
)";

} // namespace

std::string module_of(const std::string& globals, const std::string& parameters, const std::string& body) {
  return std::string(kHead) + globals + kDeclarations + "define amdgpu_kernel void @k(" + parameters +
         ") {\nentry:\n" + body + "  ret void\n}\n";
}

std::string transpose() {
  return module_of("@tile = internal addrspace(3) global [272 x float] poison, align 16\n",
                   "ptr addrspace(1) %x, ptr addrspace(1) %y", R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %row = lshr i32 %t, 4
  %column = and i32 %t, 15
  %row.pitch = mul i32 %row, 17
  %to = add i32 %row.pitch, %column
  %from.x = getelementptr float, ptr addrspace(1) %x, i32 %t
  %v = load float, ptr addrspace(1) %from.x, align 4
  %to.lds = getelementptr float, ptr addrspace(3) @tile, i32 %to
  store float %v, ptr addrspace(3) %to.lds, align 4
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %column.pitch = mul i32 %column, 17
  %from = add i32 %column.pitch, %row
  %from.lds = getelementptr float, ptr addrspace(3) @tile, i32 %from
  %w = load float, ptr addrspace(3) %from.lds, align 4
  %to.y = getelementptr float, ptr addrspace(1) %y, i32 %t
  store float %w, ptr addrspace(1) %to.y, align 4
)");
}

/// LDS: rows of 40 halves for 32 of K, A's 64 rows and then B's. Thread t brings 8 halves of row t / 4 each.
std::string mfma_gemm(const std::string& arch) {
  const bool deep = arch == "gfx950";
  const int step = deep ? 16 : 8, items = step / 2;
  const std::string fragment = "<" + std::to_string(items) + " x half>";
  std::string body = R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %row = lshr i32 %t, 2
  %part = and i32 %t, 3
  %k.first = shl i32 %part, 3
  %row.k = mul i32 %row, %K
  %row.lds = mul i32 %row, 40
  %to = add i32 %row.lds, %k.first
  %to.a = getelementptr half, ptr addrspace(3) @tiles, i32 %to
  %to.b = getelementptr i8, ptr addrspace(3) %to.a, i32 5120
  %lane = and i32 %t, 63
  %wave = lshr i32 %t, 6
  %wave.m = and i32 %wave, 1
  %wave.n = lshr i32 %wave, 1
  %lane.row = and i32 %lane, 31
  %lane.group = lshr i32 %lane, 5
  %m.first = shl i32 %wave.m, 5
  %n.first = shl i32 %wave.n, 5
  %m = add i32 %m.first, %lane.row
  %n = add i32 %n.first, %lane.row
)";
  body += "  %lane.k = mul i32 %lane.group, " + std::to_string(items) + R"(
  %m.lds = mul i32 %m, 40
  %n.lds = mul i32 %n, 40
  %from.m = add i32 %m.lds, %lane.k
  %from.n = add i32 %n.lds, %lane.k
  %from.a = getelementptr half, ptr addrspace(3) @tiles, i32 %from.m
  %from.b0 = getelementptr half, ptr addrspace(3) @tiles, i32 %from.n
  %from.b = getelementptr i8, ptr addrspace(3) %from.b0, i32 5120
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <16 x float> [ zeroinitializer, %entry ], [ %sum.next, %loop ]
  %k.here = add i32 %k, %k.first
  %at = add i32 %row.k, %k.here
  %ga = getelementptr half, ptr addrspace(1) %a, i32 %at
  %gb = getelementptr half, ptr addrspace(1) %b, i32 %at
  %va = load <8 x half>, ptr addrspace(1) %ga, align 16
  %vb = load <8 x half>, ptr addrspace(1) %gb, align 16
  store <8 x half> %va, ptr addrspace(3) %to.a, align 16
  store <8 x half> %vb, ptr addrspace(3) %to.b, align 16
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
)";
  std::string sum = "%sum";
  for (int i = 0; i < 32 / step; ++i) {
    const std::string n = std::to_string(i), next = i == 32 / step - 1 ? "%sum.next" : "%sum" + n;
    for (const char* x : {"a", "b"}) {
      body += std::string("  %p") + x + n + " = getelementptr half, ptr addrspace(3) %from." + x + ", i32 " +
              std::to_string(i * step) + "\n";
      body += std::string("  %f") + x + n + " = load " + fragment + ", ptr addrspace(3) %p" + x + n +
              ", align 8\n";
    }
    body += "  " + next + " = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x" + (deep ? "16.f16(" : "8f16(") +
            fragment + " %fa" + n + ", " + fragment + " %fb" + n + ", <16 x float> " + sum +
            ", i32 0, i32 0, i32 0)\n";
    sum = next;
  }
  body += R"(  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %k.next = add i32 %k, 32
  %more = icmp ult i32 %k.next, %K
  br i1 %more, label %loop, label %done
done:
  %group.row = shl i32 %lane.group, 2
  %d.row = add i32 %m.first, %group.row
  %d.row.at = shl i32 %d.row, 6
  %d.at = add i32 %d.row.at, %n
)";
  for (int i = 0; i < 16; ++i) {
    const std::string n = std::to_string(i);
    body += "  %d.at" + n + " = add i32 %d.at, " + std::to_string((8 * (i / 4) + i % 4) * 64) + "\n";
    body += "  %x" + n + " = extractelement <16 x float> %sum.next, i32 " + n + "\n";
    body += "  %gd" + n + " = getelementptr float, ptr addrspace(1) %d, i32 %d.at" + n + "\n";
    body += "  store float %x" + n + ", ptr addrspace(1) %gd" + n + ", align 4\n";
  }
  return module_of("@tiles = internal addrspace(3) global [5120 x half] poison, align 16\n",
                   "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d, i32 %K", body);
}

std::string copy_through_lds(int bytes) {
  const std::string size = std::to_string(bytes), wave = std::to_string(64 * bytes),
                    all = std::to_string(256 * bytes);
  std::string body = R"(
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %wave.v = lshr i32 %t, 6
  %wave = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %wave.v)
)";
  body += "  %wave.at = mul i32 %wave, " + wave + "\n  %lane.at = mul i32 %t, " + size + "\n";
  body += "  %rsrc = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %x, i16 0, "
          "i64 4096, i32 159744)\n";
  for (int first = 0; first < 4096; first += 256 * bytes) {
    const std::string n = std::to_string(first);
    body += "  %lds" + n + " = getelementptr i8, ptr addrspace(3) @tile, i32 " + n + "\n";
    body += "  %to" + n + " = getelementptr i8, ptr addrspace(3) %lds" + n + ", i32 %wave.at\n";
    body += "  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %rsrc, ptr addrspace(3) %to" +
            n + ", i32 " + size + ", i32 %lane.at, i32 " + n + ", i32 0, i32 0)\n";
  }
  // vmcnt(0), lgkmcnt any, expcnt any: gfx9's encoding.
  body += R"(  call void @llvm.amdgcn.s.waitcnt(i32 3952)
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
)";
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    body += "  %i" + n + " = add i32 %t, " + std::to_string(256 * i) + "\n";
    body += "  %j" + n + " = sub i32 1023, %i" + n + "\n";
    body += "  %l" + n + " = getelementptr i32, ptr addrspace(3) @tile, i32 %j" + n + "\n";
    body += "  %v" + n + " = load i32, ptr addrspace(3) %l" + n + ", align 4\n";
    body += "  %g" + n + " = getelementptr i32, ptr addrspace(1) %y, i32 %i" + n + "\n";
    body += "  store i32 %v" + n + ", ptr addrspace(1) %g" + n + ", align 4\n";
  }
  return module_of("@tile = internal addrspace(3) global [4096 x i8] poison, align 16\n",
                   "ptr addrspace(1) %x, ptr addrspace(1) %y", body);
}

} // namespace deepgen::amd_sim
