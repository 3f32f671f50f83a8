#include "generator/sample.h"

#include "generator/space.h"

#include <gtest/gtest.h>
#include <set>

namespace deepgen {
namespace {

SampleSpec spec_of(uint64_t seed) {
  SampleSpec spec;
  spec.archs = {"sm_80", "sm_120"};
  spec.seed = seed;
  return spec;
}

std::vector<std::string> texts(const std::vector<Sample>& samples) {
  std::vector<std::string> out;
  for (const Sample& s : samples) out.push_back(s.arch + " " + s.problem.key() + " " + s.choice.text());
  return out;
}

TEST(Sample, LegalAndOfEveryKindThatIsServed) {
  std::set<std::string> kinds;
  for (const Sample& s : draw_samples(spec_of(1))) {
    EXPECT_EQ(Problem::parse(s.problem.key()), s.problem);
    EXPECT_EQ(why_illegal(s.problem, s.arch, generic_gpu(s.arch), s.choice), "") << s.problem.key();
    EXPECT_LE(std::max({s.problem.m, s.problem.n, s.problem.k}), 3000);
    kinds.insert(s.arch + to_string(s.problem.a) + to_string(s.problem.b) + to_string(s.problem.d) +
                 to_string(s.problem.layout));
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

} // namespace
} // namespace deepgen
