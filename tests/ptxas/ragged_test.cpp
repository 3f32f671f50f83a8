// Registers of kernels of simt whose tiles end behind the matrix, by ptxas for sm_90a.
#include "base/kernel/device.h"
#include "generator/codegen/compile.h"
#include "generator/codegen/ptxas.h"
#include "templates/gpu/simt/simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepgen {
namespace {

using testing::HasSubstr;

constexpr const char* kArch = "sm_90a";

Gemm square(int64_t size, const std::string& layout) {
  const std::string n = std::to_string(size);
  return Gemm::parse("gemm m=" + n + " n=" + n + " k=" + n +
                     " batch=1 a=f32 b=f32 d=f32 acc=f32 layout=" + layout + " epilogue=none align=4");
}

class Ragged : public testing::TestWithParam<std::string> {};

/// The largest tile of which a multiprocessor holds two: 64 sums of a thread in 128 registers.
TEST_P(Ragged, TwoBlocksOfAMultiprocessorDoNotSpill) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas";
  for (const char* splits : {"1", "8"}) {
    const Config config = Config::parse(std::string("wide=1 bm=128 bn=128 bk=16 tm=8 tn=8 stages=3 blocks=2"
                                                    " group=4 splits=") +
                                        splits);
    const KernelFile file =
        compile_candidate(square(1530, GetParam()), kArch, {"simt", config}, false, false);
    EXPECT_EQ(file.status, "ok") << file.detail << ", splits=" << splits;
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, Ragged, testing::Values("nt", "nn", "tn", "tt"),
                         [](const auto& info) { return info.param; });

TEST(RaggedRules, ManyRowsOfAThreadLeaveNoRoomForAsManyBlocks) {
  Device device;
  device.arch = kArch, device.cores = 132;
  device.shared_block = 232448, device.shared_multiprocessor = 233472;
  const auto why_illegal = [&](int64_t size, const std::string& tile) {
    return Simt().why_illegal(square(size, "nt"), device,
                              Config::parse("wide=1 " + tile + " bk=8 tm=8 tn=8 stages=2 splits=1 group=1"));
  };
  const std::string wide = "bm=32 bn=256 blocks=4", square_tile = "bm=128 bn=128 blocks=2";
  EXPECT_THAT(why_illegal(1530, wide), HasSubstr("registers of 512 threads exceed 65536"));
  EXPECT_EQ(why_illegal(1536, wide), ""); // none may end
  EXPECT_EQ(why_illegal(1530, square_tile), "");
}

} // namespace
} // namespace deepgen
