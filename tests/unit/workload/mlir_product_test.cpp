// Every permutation of the maps of a product: what is recognised computes the same as the plain sum.
#include "workload/mlir/product.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace deepgen::tensors::mlir_product_test {
namespace {

/// A product of these extents: loops, and for A, B and D their maps.
Graph graph_of(const std::vector<int64_t>& extents, const std::vector<Map>& maps, int sums = 1) {
  Graph g;
  g.functions.emplace_back();
  Operation o;
  o.name = "linalg.contract", o.extents = extents, o.maps = maps, o.inputs = 2;
  for (size_t i = 0; i < extents.size(); ++i) o.reduction.push_back(int(i) >= int(extents.size()) - sums);
  for (const Map& map : maps) {
    Value v;
    v.tensor = true, v.element = "f32";
    for (int loop : map) v.shape.push_back(loop >= 0 ? extents[size_t(loop)] : 1);
    o.operands.push_back(int(g.values.size()));
    g.values.push_back(v);
  }
  Value result = g.values.back();
  result.producer = 0;
  o.result = int(g.values.size());
  g.values.push_back(result);
  Formula& f = o.body;
  const int a = f.add({Step::argument, "f32", {}, 0, 0, ""}),
            b = f.add({Step::argument, "f32", {}, 1, 0, ""}),
            c = f.add({Step::argument, "f32", {}, 2, 0, ""});
  const int product = f.add({Step::multiply, "f32", {b, a}, 0, 0, ""});
  f.root = f.add({Step::add, "f32", {c, product}, 0, 0, ""});
  g.operations.push_back(o);
  return g;
}

/// The operation as it stands: all loops over dense operands.
std::vector<double> plain(const Operation& o, const std::vector<std::vector<double>>& in, size_t size) {
  std::vector<double> d(size);
  std::vector<int64_t> at(o.extents.size());
  const auto offset = [&](int operand) {
    int64_t place = 0;
    for (int loop : o.maps[size_t(operand)]) place = place * o.extents[size_t(loop)] + at[size_t(loop)];
    return size_t(place);
  };
  for (bool more = true; more;) {
    d[offset(2)] += in[0][offset(0)] * in[1][offset(1)];
    more = false;
    for (size_t i = at.size(); i-- > 0 && !more;) more = ++at[i] < o.extents[i] || (at[i] = 0, false);
  }
  return d;
}

/// As DeepGen computes it: by layout, leading dimensions and strides.
std::vector<double> by_problem(const Product& p, const std::vector<double>& a, const std::vector<double>& b,
                               size_t size) {
  const Gemm& g = p.gemm;
  const auto pick = [](int64_t given, int64_t dense) { return given == 0 ? dense : given == -1 ? 0 : given; };
  const int64_t lda = pick(p.place_a.ld, g.a_columns()), ldb = pick(p.place_b.ld, g.b_columns()),
                ldd = pick(p.place_d.ld, g.n);
  const int64_t sa = pick(p.place_a.stride, g.a_rows() * lda), sb = pick(p.place_b.stride, g.b_rows() * ldb),
                sd = pick(p.place_d.stride, g.m * ldd);
  std::vector<double> d(size);
  for (int64_t batch = 0; batch < g.batch; ++batch)
    for (int64_t m = 0; m < g.m; ++m)
      for (int64_t n = 0; n < g.n; ++n)
        for (int64_t k = 0; k < g.k; ++k)
          d.at(size_t(batch * sd + m * ldd + n)) +=
              a.at(size_t(batch * sa + (g.a_transposed() ? k * lda + m : m * lda + k))) *
              b.at(size_t(batch * sb + (g.b_transposed() ? n * ldb + k : k * ldb + n)));
  return d;
}

/// Whether it is recognised; then it computes what the operation does.
bool recognised(const Graph& g) {
  const Operation& o = g.operation(0);
  const Match match = match_product(g, 0);
  const Product* p = std::get_if<Product>(&match);
  if (!p) return false;
  std::mt19937 random(1);
  std::vector<std::vector<double>> in;
  for (int i : {0, 1}) {
    in.emplace_back(size_t(g.value(o.operands[size_t(i)]).size()));
    for (double& x : in.back()) x = double(random() % 17) - 8;
  }
  const size_t size = size_t(g.value(o.operands[2]).size());
  const bool swapped = p->a == o.operands[1];
  EXPECT_EQ(by_problem(*p, in[swapped], in[!swapped], size), plain(o, in, size)) << p->gemm.key();
  return true;
}

std::vector<Map> permutations(Map map) {
  std::sort(map.begin(), map.end());
  std::vector<Map> all;
  do all.push_back(map);
  while (std::next_permutation(map.begin(), map.end()));
  return all;
}

/// How many of all permutations of A's, B's and D's dimensions are recognised.
int count_recognised(const std::vector<int64_t>& extents, const Map& a, const Map& b, const Map& d,
                     int sums = 1) {
  int count = 0;
  for (const Map& x : permutations(a))
    for (const Map& y : permutations(b))
      for (const Map& z : permutations(d)) count += recognised(graph_of(extents, {x, y, z}, sums));
  return count;
}

TEST(MlirProduct, AllMapsOfAProduct) {
  EXPECT_EQ(count_recognised({3, 4, 5}, {0, 2}, {2, 1}, {0, 1}), 8);
  EXPECT_EQ(count_recognised({3, 4, 5}, {1, 2}, {2, 0}, {0, 1}), 8); // B comes first
}

TEST(MlirProduct, AllMapsOfABatch) {
  // All but those whose innermost dimension is the batch: four of six for each operand.
  EXPECT_EQ(count_recognised({2, 3, 4, 5}, {0, 1, 3}, {0, 3, 2}, {0, 1, 2}), 64);
  EXPECT_EQ(count_recognised({1, 1, 1, 1}, {0, 1, 3}, {0, 3, 2}, {0, 1, 2}), 64);
}

TEST(MlirProduct, LoopsThatAreOne) {
  EXPECT_TRUE(recognised(graph_of({2, 3, 4, 5}, {{0, 1, 3}, {3, 2}, {0, 1, 2}}))); // tokens of a batch
  EXPECT_TRUE(recognised(graph_of({2, 3, 4, 5}, {{1, 0, 3}, {3, 2}, {0, 1, 2}}))); // as a batch with one B
  EXPECT_TRUE(
      recognised(graph_of({2, 3, 4, 5, 6}, {{0, 1, 2, 4}, {0, 1, 4, 3}, {0, 1, 2, 3}}))); // two batches
  EXPECT_TRUE(recognised(graph_of({3, 4, 2, 5}, {{0, 2, 3}, {2, 3, 1}, {0, 1}}, 2)));     // two sums
  EXPECT_FALSE(recognised(graph_of({3, 4, 2, 5}, {{0, 3, 2}, {2, 3, 1}, {0, 1}}, 2)));    // in another order
  EXPECT_FALSE(recognised(graph_of({2, 2, 3, 4, 5}, {{1, 0, 2, 4}, {0, 1, 4, 3}, {0, 1, 2, 3}})));
}

TEST(MlirProduct, Vectors) {
  EXPECT_TRUE(recognised(graph_of({3, 5}, {{0, 1}, {1}, {0}})));
  EXPECT_TRUE(recognised(graph_of({3, 5}, {{1, 0}, {1}, {0}})));
  EXPECT_TRUE(recognised(graph_of({4, 5}, {{1}, {1, 0}, {0}})));
  EXPECT_TRUE(recognised(graph_of({4, 5}, {{1}, {0, 1}, {0}})));
  EXPECT_TRUE(recognised(graph_of({5}, {{0}, {0}, {}})));
  EXPECT_TRUE(recognised(graph_of({2, 3, 5}, {{0, 1, 2}, {0, 2}, {0, 1}})));
  EXPECT_TRUE(recognised(graph_of({2, 3, 5}, {{0, 1, 2}, {0, 2}, {1, 0}})) == false);
}

TEST(MlirProduct, OtherThings) {
  EXPECT_FALSE(recognised(graph_of({3, 4, 5}, {{0, 2}, {2, kOddIndex}, {0, 1}})));
  EXPECT_FALSE(recognised(graph_of({3, 4, 5}, {{0, 2}, {1}, {0, 1}})));       // a sum over A alone
  EXPECT_FALSE(recognised(graph_of({3, 4, 5}, {{0, 2, 2}, {2, 1}, {0, 1}}))); // a diagonal
  Graph huge = graph_of({int64_t(1) << 40, 4, int64_t(1) << 40}, {{0, 2}, {2, 1}, {0, 1}});
  EXPECT_TRUE(std::holds_alternative<Refused>(match_product(huge, 0)));
  Graph dynamic = graph_of({3, 4, 5}, {{0, 2}, {2, 1}, {0, 1}});
  dynamic.operations[0].extents[1] = -1;
  EXPECT_TRUE(std::holds_alternative<Refused>(match_product(dynamic, 0)));
}

} // namespace
} // namespace deepgen::tensors::mlir_product_test
