#include "generator/space/sample.h"

#include "generator/space/space.h"
#include "tests/unit/sanitized.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace deepgen::sample_test {
namespace {

SampleSpec spec_of(uint64_t seed) {
  SampleSpec spec;
  spec.archs = {"sm_80", "sm_120"};
  spec.seed = seed;
  return spec;
}

std::vector<std::string> texts(const std::vector<RandomCandidate>& samples) {
  std::vector<std::string> out;
  for (const RandomCandidate& s : samples)
    out.push_back(s.arch + " " + s.problem.key() + " " + s.choice.text());
  return out;
}

TEST(Sample, LegalAndOfEveryKindThatIsServed) {
  std::set<std::string> kinds;
  for (const RandomCandidate& s : draw_samples(spec_of(1))) {
    EXPECT_EQ(Gemm::parse(s.problem.key()), s.problem);
    EXPECT_EQ(why_illegal(s.problem, s.arch, generic_gpu(s.arch), s.choice), "") << s.problem.key();
    EXPECT_LE(std::max({s.problem.gemm().m, s.problem.gemm().n, s.problem.gemm().k}), 3000);
    kinds.insert(s.arch + to_string(s.problem.gemm().a) + to_string(s.problem.gemm().b) +
                 to_string(s.problem.gemm().d) + to_string(s.problem.gemm().layout));
  }
  EXPECT_GE(kinds.size(), 50u);
}

TEST(Sample, TheSeedDecides) {
  SampleSpec spec = spec_of(1), other = spec_of(2);
  spec.count = other.count = 20;
  const auto first = texts(draw_samples(spec));
  EXPECT_EQ(first.size(), 20u);
  EXPECT_EQ(first, texts(draw_samples(spec)));
  EXPECT_NE(first, texts(draw_samples(other)));
}

TEST(Sample, ACountIsReachedWithBoundedWorkAndLargeSizes) {
  if (kSanitized) GTEST_SKIP() << "the smaller samples touch the same memory";
  SampleSpec spec = spec_of(3);
  spec.archs = {"sm_90a"};
  spec.count = 600; // of fewer cells
  spec.most_flops = 4e9;
  const std::vector<RandomCandidate> samples = draw_samples(spec);
  EXPECT_EQ(samples.size(), 600u);
  int64_t largest = 0;
  size_t batched = 0;
  std::map<Type, size_t> types;
  for (const RandomCandidate& s : samples) {
    EXPECT_LE(s.problem.flops(), 4e9) << s.problem.key();
    largest = std::max({largest, s.problem.gemm().m, s.problem.gemm().n, s.problem.gemm().k});
    batched += s.problem.gemm().batch > 1;
    ++types[s.problem.gemm().a];
  }
  EXPECT_GE(largest, 2900);
  EXPECT_GE(batched, 60u);
  EXPECT_EQ(types.size(), 8u);
  for (const auto& [type, count] : types) EXPECT_GE(count, 40u) << to_string(type);
}

} // namespace
} // namespace deepgen::sample_test
