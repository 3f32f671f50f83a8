// What the tests of numerics share: random problems, and the verdict on all kernels of a file.
#pragma once

#include "base/kernel/cpu_isa.h"
#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "measure/cpu/subject.h"
#include "runtime/cpu/cpu.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>

namespace deepgen::numerics {

using Rng = std::mt19937;

inline int64_t pick(Rng& rng, const std::vector<int64_t>& values) { return values[rng() % values.size()]; }
inline int64_t between(Rng& rng, int64_t low, int64_t high) {
  return low + int64_t(rng() % uint64_t(high - low + 1));
}

inline Device device_of_level(int64_t level) {
  Device device;
  device.isa = level;
  return device;
}

/// With the extensions of `isa`, too (base/kernel/cpu_isa.h).
inline Device device_of_isa(int64_t isa) {
  Device device = device_of_level(level_of(isa));
  device.features = {"amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512vnni", "avxvnni"};
  limit_features(device, isa);
  return device;
}

inline int64_t host_level() { return int64_t(cpu::hardware_level()); }

/// Sizes that break tile code: 1, primes, a tile or a vector more or less one.
inline int64_t awkward_size(Rng& rng) {
  switch (rng() % 4) {
  case 0:
    return 1;
  case 1:
    return pick(rng, {2, 3, 5, 7, 11, 13, 17, 29, 37, 61, 97, 113, 131});
  case 2:
    return pick(rng, {4, 8, 14, 16, 32, 48, 64, 96}) + between(rng, -1, 1);
  default:
    return between(rng, 1, 160);
  }
}

/// All but the epilogue. Types and layouts alternate with `index`.
inline Gemm random_problem(Rng& rng, size_t index) {
  Gemm p;
  p.m = awkward_size(rng), p.n = awkward_size(rng),
  p.k = rng() % 8 == 0 ? between(rng, 500, 700) : awkward_size(rng);
  p.batch = rng() % 4 == 0 ? between(rng, 2, 3) : 1;
  p.layout = Layout(index % 4);
  p.a = p.b = p.d = p.accumulate = rng() % 3 == 0 ? Type::f64 : Type::f32;
  p.align = size_of(p.d);
  return p;
}

/// The kind, D's type and the level alternate with `index`.
inline Rows random_rows(Rng& rng, size_t index) {
  Rows p;
  p.kind = RowsKind(index % 4);
  p.x = std::vector{Type::f32, Type::f16, Type::bf16}[index / 4 % 3];
  const Type others[] = {p.x, Type::f32, Type::e4m3, Type::i8, Type::f16, Type::bf16};
  p.d = others[index / 12 % 6];
  p.m = rng() % 3 == 0 ? 1 : between(rng, 2, 23);
  p.n = awkward_size(rng);
  if (rng() % 4 == 0) p.n = pick(rng, {1023, 1024, 1025, 1500, 2048 + 37, 4096, 4097, 5000, 9000});
  if (rng() % 40 == 0) p.m = between(rng, 1, 3), p.n = pick(rng, {16384, 16385, 40000, 70001});
  p.residual = rng() % 2, p.output_residual = p.residual && rng() % 2;
  if (p.normalises()) p.scale = rng() % 2, p.bias = rng() % 2;
  validate(p);
  return p;
}

/// Up to six steps, in any order.
inline std::vector<EpilogueOp> random_epilogue(Rng& rng) {
  std::vector<EpilogueOp> ops(epilogue_op_count);
  for (size_t i = 0; i < ops.size(); ++i) {
    ops[i] = EpilogueOp(i);
    std::swap(ops[i], ops[rng() % (i + 1)]);
  }
  ops.resize(rng() % 7);
  return ops;
}

/// What the last two problems are verified with: tests take many configs of one, whose reference costs more
/// than a kernel of it. Two, as the awkward problem goes with the config's own.
inline CaseSet& cases_of(const Problem& p) {
  static std::deque<std::unique_ptr<CaseSet>> known;
  for (const auto& cases : known)
    if (cases->problem() == p) return *cases;
  if (known.size() == 2) known.pop_front();
  known.push_back(subject_of(p)->cases(7));
  return *known.back();
}

/// Verifies every kernel of the file that this CPU runs; returns how many.
inline int verify_all(const KernelFile& file, const std::string& context) {
  EXPECT_EQ(file.status, "ok") << file.detail << "\n" << context;
  int verified = 0;
  for (const Kernel& kernel : file.kernels) {
    if (!runs_on(kernel.isa, int64_t(cpu::usable_isa()))) continue;
    std::string step;
    Verdict verdict =
        cases_of(kernel.problem).verify(LoadedKernel(kernel), kernel.workspace, [&](const std::string& s) {
          step = s;
        });
    EXPECT_EQ(verdict.status, "ok") << kernel.role << ": " << verdict.detail << "\n"
                                    << step << "\n"
                                    << kernel.problem.key() << "\n"
                                    << kernel.choice.text();
    ++verified;
  }
  return verified;
}

/// One of several shares of random pairs of a problem and a config, so that ctest runs them in parallel.
/// `draw` makes the problem of an index.
template <typename Draw>
void check_random_pairs(uint32_t seed, int share, Draw draw) {
  constexpr int kPairs = 50;
  Rng rng(seed + uint32_t(share));
  int pairs = 0;
  for (int i = 0; i < kPairs; ++i) {
    const Problem p = draw(rng, size_t(share * kPairs + i));
    const int64_t level = std::min(host_level(), pick(rng, {4, 4, 3, 1}));
    const Space space(p, "cpu", device_of_level(level));
    ASSERT_GT(space.size(), 0u) << "no legal config: " << p.key() << " at level " << level;
    const Choice choice = i % 5 == 0 ? space.default_choice() : space.choice(rng() % space.size());
    SCOPED_TRACE(p.key() + " | " + choice.text());
    pairs += verify_all(compile_candidate(p, "cpu", choice, true, i % 10 == 0), choice.text()) > 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(pairs, kPairs);
}

/// By a parameter's name and value: in how many legal configs.
using ValueCounts = std::map<std::pair<std::string, int64_t>, int>;

/// Each value of each parameter, at least once, on this host. A value that no legal config has (nc below N
/// with B in place, say) cannot be covered; all others must be, and are returned.
inline ValueCounts check_every_value(const Problem& p) {
  const Space space(p, "cpu", device_of_level(host_level()));
  ValueCounts covered, legal;
  Rng rng(5);
  const size_t stride = 7919; // a prime: visits the whole space, ranks far apart
  for (size_t i = 0, rank = rng() % space.size(); i < space.size();
       ++i, rank = (rank + stride) % space.size()) {
    const Choice choice = space.choice(rank);
    bool is_new = false;
    for (const auto& value : choice.config.values) is_new |= covered[value]++ == 0;
    if (!is_new) continue;
    SCOPED_TRACE(choice.text());
    EXPECT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
    if (testing::Test::HasFailure()) return legal;
  }
  for (size_t rank = 0; rank < space.size(); ++rank)
    for (const auto& value : space.choice(rank).config.values) legal[value]++;
  for (const auto& [value, count] : legal)
    EXPECT_TRUE(covered.count(value))
        << value.first << "=" << value.second << ", in " << count << " legal configs";
  return legal;
}

} // namespace deepgen::numerics
