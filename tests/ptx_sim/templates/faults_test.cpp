// Faults planted in the PTX of right kernels: the simulator must find each of them.
#include "generator/codegen/compile.h"
#include "tests/ptx_sim/check/check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <regex>

namespace deepgen::faults_test {
namespace {

Kernel compile(const std::string& problem, const std::string& name, const std::string& config) {
  setenv("DEEPGEN_PTXAS", "none", 1);
  const KernelFile file =
      compile_candidate(Gemm::parse(problem), "sm_90a", {name, Config::parse(config)}, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail;
  return file.kernels.at(0);
}

/// The first fault that one of the cases shows.
std::string first_fault(const Kernel& k) {
  for (uint64_t seed : {1, 2})
    for (const cuda::CallCase& c : ptx_sim::chosen_cases(k.problem.gemm(), seed))
      if (const std::string fault = ptx_sim::check_case(k, c, seed).fault; !fault.empty()) return fault;
  return "";
}

using Change = std::function<std::string(const std::smatch&)>;

/// Changes the matches of `pattern` one at a time, and expects that each change is found.
int plant(const Kernel& right, const std::string& pattern, const Change& change) {
  const std::regex expression(pattern);
  int planted = 0;
  for (std::sregex_iterator i(right.ptx.begin(), right.ptx.end(), expression), end; i != end;
       ++i, ++planted) {
    Kernel wrong = right;
    wrong.ptx.replace(size_t(i->position()), size_t(i->length()), change(*i));
    EXPECT_NE(first_fault(wrong), "")
        << "not found: " << i->str() << " changed to " << change(*i) << " at byte " << i->position();
  }
  return planted;
}

Change removed() {
  return [](const std::smatch&) { return std::string(); };
}

/// Offsets of addresses: "[%rd5+16]" becomes "[%rd5+16+by]".
Change shifted(int by) {
  return [by](const std::smatch& m) {
    const int offset = m[3].matched ? std::stoi(m[3]) : 0;
    return m[1].str() + m[2].str() + "+" + std::to_string(offset + by) + "]";
  };
}
constexpr const char* address = R"((%rd?\d+)(?:\+(-?\d+))?\])";

/// M and N end within the smallest part of a tile that one instruction copies, so that every predicate
/// matters.
Kernel mma_kernel() {
  return compile("gemm m=84 n=72 k=200 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nn epilogue=bias align=2",
                 "mma_sync",
                 "bm=64 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=1 stages=3 blocks=1 splits=1 group=1 pdl=0 "
                 "align_a=16 align_b=16 align_d=16");
}
Kernel simt_kernel() {
  return compile("gemm m=70 n=50 k=61 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4",
                 "simt", "wide=0 bm=32 bn=32 bk=8 tm=4 tn=4 stages=2 blocks=2 splits=1 group=1");
}
/// Several warps share K, so that partial sums go through shared memory.
Kernel gemv_kernel() {
  return compile("gemm m=300 n=2 k=260 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nn epilogue=none align=2",
                 "gemv", "form=0 vec=2 width=8 rwarps=1 kwarps=4 unroll=2 splits=1 hint=0 pipe=0 pdl=0");
}

TEST(PlantedFaults, KernelsAreRightWithoutThem) {
  for (const Kernel& k : {mma_kernel(), simt_kernel(), gemv_kernel()})
    EXPECT_EQ(first_fault(k), "") << k.choice.text();
}

TEST(PlantedFaults, MissingBarriersAreFound) {
  for (const Kernel& k : {mma_kernel(), simt_kernel(), gemv_kernel()})
    EXPECT_GE(plant(k, R"(bar\.sync\s+0;)", removed()), 1) << k.choice.text();
}

TEST(PlantedFaults, MissingWaitsAreFound) {
  EXPECT_GE(plant(mma_kernel(), R"(cp\.async\.wait_group\s+\d+;)", removed()), 1);
}

TEST(PlantedFaults, ShiftedAddressesAreFound) {
  for (const Kernel& k : {mma_kernel(), simt_kernel(), gemv_kernel()})
    EXPECT_GE(plant(k, std::string(R"((st\.global[.\w]*\s+\[))") + address, shifted(4)), 1)
        << k.choice.text();
  EXPECT_GE(plant(gemv_kernel(), std::string(R"((st\.shared[.\w]*\s+\[))") + address, shifted(16)), 1);
  EXPECT_GE(plant(simt_kernel(), std::string(R"((ld\.shared[.\w]*\s+\{[^}]*\}, \[))") + address, shifted(16)),
            1);
  EXPECT_GE(plant(mma_kernel(), std::string(R"((ldmatrix[.\w]*\s+\{[^}]*\}, \[))") + address, shifted(16)),
            1);
  EXPECT_GE(plant(mma_kernel(), std::string(R"((cp\.async[.\w]*\s+\[))") + address, shifted(16)), 1);
}

TEST(PlantedFaults, DroppedPredicatesAreFound) {
  EXPECT_GE(plant(mma_kernel(), R"(@%p\d+ (?=cp\.async))", removed()), 1);
}

} // namespace
} // namespace deepgen::faults_test
