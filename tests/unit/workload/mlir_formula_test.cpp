#include "workload/mlir/formula.h"

#include <gtest/gtest.h>

namespace deepgen::tensors::mlir_formula_test {
namespace {

class Activations : public testing::Test {
protected:
  int c(double number) { return f.add({Step::constant, "f32", {}, 0, number, ""}); }
  int op(Step step, int x, int y = -1) {
    return f.add({step, "f32", y < 0 ? std::vector<int>{x} : std::vector<int>{x, y}, 0, 0, ""});
  }
  int mul(int x, int y) { return op(Step::multiply, x, y); }
  int add(int x, int y) { return op(Step::add, x, y); }
  std::optional<EpilogueOp> found(int root) { return activation_of(f, root, x); }

  Formula f;
  int x = f.add({Step::product, "f32", {}, 0, 0, ""});
};

TEST_F(Activations, Gelu) {
  const int erf = op(Step::erf, mul(x, c(0.707106769)));
  EXPECT_EQ(found(mul(mul(x, c(0.5)), add(erf, c(1)))), EpilogueOp::gelu);
  EXPECT_EQ(found(mul(x, mul(c(0.5), add(c(1), erf)))), EpilogueOp::gelu);
  EXPECT_EQ(found(add(mul(c(0.5), x), mul(mul(x, erf), c(0.5)))), EpilogueOp::gelu);
  EXPECT_EQ(found(mul(x, add(erf, c(1)))), std::nullopt);
  EXPECT_EQ(found(mul(mul(x, c(0.5)), add(op(Step::erf, mul(x, c(0.7071))), c(1)))),
            std::nullopt); // 1e-5 beside it
}

TEST_F(Activations, GeluTanh) {
  const int cube = op(Step::power, x, c(3)), inner = add(x, mul(c(0.044714998453855515), cube));
  const int t = op(Step::tanh, mul(c(0.79788458347320557), inner));
  EXPECT_EQ(found(mul(mul(c(0.5), x), add(c(1), t))), EpilogueOp::gelu_tanh);
  // By the sigmoid: x / (1 + exp(-2u))
  const int e = op(Step::exp, mul(c(-1.5957691216057308), add(x, mul(mul(x, mul(x, x)), c(0.044715)))));
  EXPECT_EQ(found(op(Step::divide, x, add(c(1), e))), EpilogueOp::gelu_tanh);
}

TEST_F(Activations, Sigmoids) {
  const int e = op(Step::exp, op(Step::negate, x));
  const int sigmoid = op(Step::divide, c(1), add(e, c(1)));
  EXPECT_EQ(found(sigmoid), EpilogueOp::sigmoid);
  EXPECT_EQ(found(mul(sigmoid, x)), EpilogueOp::silu);
  EXPECT_EQ(found(op(Step::divide, x, add(e, c(1)))), EpilogueOp::silu);
  EXPECT_EQ(found(add(mul(op(Step::tanh, mul(x, c(0.5))), c(0.5)), c(0.5))), EpilogueOp::sigmoid);
  const int quick = op(Step::exp, mul(x, c(-1.702)));
  EXPECT_EQ(found(op(Step::divide, x, add(c(1), quick))), std::nullopt);
  EXPECT_EQ(found(op(Step::tanh, x)), std::nullopt);
  EXPECT_EQ(found(e), std::nullopt);
}

TEST_F(Activations, OnlyOfSmoothOperations) {
  const int e = op(Step::exp, op(Step::negate, x));
  const int sigmoid = op(Step::divide, c(1), add(e, c(1)));
  EXPECT_EQ(found(op(Step::maximum, sigmoid, c(-1))), std::nullopt); // the same at every point
  EXPECT_EQ(found(add(sigmoid, f.add({Step::operand, "f32", {}, 0, 0, ""}))), std::nullopt);
}

} // namespace
} // namespace deepgen::tensors::mlir_formula_test
