#include "tests/ptx_sim/check/check.h"

#include "measure/gpu/cuda_tolerance.h"
#include "measure/gpu/toolbox/cuda_values.h"
#include "tests/ptx_sim/check/attention_check.h"
#include "tests/ptx_sim/check/operands.h"
#include "tests/ptx_sim/check/rows_check.h"
#include "tests/ptx_sim/machine/launch.h"
#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <cmath>

namespace deepgen::ptx_sim {
namespace {

/// The reference's value of one element, and the error that a correct kernel may make.
struct Expected {
  double x, tolerance;

  void add(double y, double u) {
    tolerance += 2 * u * (std::fabs(x) + std::fabs(y));
    x += y;
  }
  void scale(double y, double u) {
    x *= y;
    tolerance = tolerance * std::fabs(y) + 2 * u * std::fabs(x);
  }
  void multiply(const Expected& y, double u) {
    tolerance = tolerance * (std::fabs(y.x) + y.tolerance) + std::fabs(x) * y.tolerance;
    x *= y.x;
    tolerance += 2 * u * std::fabs(x);
  }
  void apply(double value, double slope, double u) {
    tolerance = slope * tolerance + 32 * u * std::max(std::fabs(x), std::fabs(value));
    x = value;
  }
};

class Reference {
public:
  Reference(const Kernel& k, const Operands& o)
      : p_(k.problem.gemm()), o_(o), t_(cuda::tolerance_of(p_, k.target)) {}

  /// Of a row; that of a group, or 0.
  int64_t group_of(int64_t m) const {
    return p_.groups ? std::upper_bound(o_.offsets.begin(), o_.offsets.end(), m) - o_.offsets.begin() - 1 : 0;
  }
  /// Rows of no group are to be left alone.
  bool is_expected(int64_t m) const {
    return !p_.groups || (m >= o_.offsets.front() && m < o_.offsets.back());
  }

  Expected at(int64_t entry, int64_t m, int64_t n) const {
    double product, magnitude;
    multiply(entry, m, n, product, magnitude);
    const double c = o_.beta == 0 ? 0 : matrix("c", entry, m, n), u = t_.epilogue;
    if (p_.d == Type::i32) {
      const uint64_t sum = uint64_t(int64_t(o_.alpha)) * uint64_t(int64_t(product)) +
                           uint64_t(int64_t(o_.beta)) * uint64_t(int64_t(c));
      return {double(int32_t(uint32_t(sum))), 0};
    }
    Expected e{o_.alpha * product, std::fabs(o_.alpha) * t_.sum * magnitude};
    if (p_.gate) {
      multiply(entry, m, p_.n + n, product, magnitude);
      step(*p_.gate, entry, m, n, e);
      e.multiply({o_.alpha * product, std::fabs(o_.alpha) * t_.sum * magnitude}, u);
    }
    e.x += o_.beta * c, e.tolerance += 8 * u * std::fabs(o_.beta * c);
    for (EpilogueOp op : p_.epilogue) step(op, entry, m, n, e);
    if (p_.d == Type::i8) {
      e.x = std::fmin(std::fmax(e.x, -128.0), 127.0);
      e.tolerance += 0.5;
    } else {
      e.tolerance += t_.output * (std::fabs(e.x) + e.tolerance) + t_.smallest;
    }
    return e;
  }

  double error(double found, const Expected& e) const {
    if (t_.largest > 0 && std::isinf(found) && std::fabs(e.x) + e.tolerance >= t_.largest &&
        (found > 0) == (e.x > 0))
      return 0;
    if (found == e.x) return 0;
    const double error = std::fabs(found - e.x) / e.tolerance;
    return std::isnan(error) ? INFINITY : error;
  }

private:
  double matrix(const char* name, int64_t entry, int64_t m, int64_t n) const {
    return o_.values.at(name)[size_t((entry * p_.m + m) * p_.n + n)];
  }
  /// Of a step for one element of D; 0 of one that has none.
  double operand(EpilogueOp op, int64_t entry, int64_t m, int64_t n) const {
    for (const deepgen::Operand& x : operands_of(op, p_)) {
      if (!x.in_memory()) continue;
      int64_t at = 0;
      if (x.is_matrix()) at = (entry * p_.m + m) * p_.n + n;
      if (x.shape == deepgen::Operand::Shape::per_row) at = m;
      if (x.shape == deepgen::Operand::Shape::per_column) at = group_of(m) * p_.n + n;
      return o_.values.at(x.name)[size_t(at)];
    }
    return 0;
  }

  void multiply(int64_t entry, int64_t m, int64_t n, double& product, double& magnitude) const {
    const auto &a = o_.matrices.at("a"), &b = o_.matrices.at("b");
    const int64_t b_number = p_.groups ? group_of(m) : b.batch > 1 ? entry : 0;
    const double* x = o_.values.at("a").data() + (a.batch > 1 ? entry : 0) * p_.m * p_.k +
                      m * (p_.a_transposed() ? 1 : p_.k);
    const double* y =
        o_.values.at("b").data() + b_number * p_.sum_columns() * p_.k + n * (p_.b_transposed() ? p_.k : 1);
    const int64_t x_step = p_.a_transposed() ? p_.m : 1, y_step = p_.b_transposed() ? 1 : p_.sum_columns();
    // Four sums at a time: one alone waits for itself.
    double products[4] = {}, xx[4] = {}, yy[4] = {};
    const auto add = [&](int64_t k, int lane) {
      const double u = x[k * x_step], v = y[k * y_step];
      products[lane] += u * v, xx[lane] += u * u, yy[lane] += v * v;
    };
    int64_t k = 0;
    for (; k + 4 <= p_.k; k += 4)
      for (int lane = 0; lane < 4; ++lane) add(k + lane, lane);
    for (; k < p_.k; ++k) add(k, 0);
    const auto sum = [](const double* s) { return s[0] + s[1] + (s[2] + s[3]); };
    product = sum(products), magnitude = std::sqrt(sum(xx)) * std::sqrt(sum(yy));
  }

  void step(EpilogueOp op, int64_t entry, int64_t m, int64_t n, Expected& e) const {
    const double x = e.x, u = t_.epilogue, y = operand(op, entry, m, n);
    switch (op) {
    case EpilogueOp::bias:
    case EpilogueOp::bias_row:
    case EpilogueOp::residual:
      return e.add(y, u);
    case EpilogueOp::multiply:
    case EpilogueOp::scale_a:
    case EpilogueOp::scale_b:
    case EpilogueOp::scale_row:
    case EpilogueOp::scale_col:
    case EpilogueOp::scale_d:
      return e.scale(y, u);
    case EpilogueOp::relu:
      e.x = std::fmax(x, 0.0);
      return;
    case EpilogueOp::prelu:
      e.x = x > 0 ? x : x * y;
      e.tolerance = e.tolerance * std::fmax(1.0, std::fabs(y)) + 2 * u * std::fabs(e.x);
      return;
    case EpilogueOp::gelu:
      return e.apply(0.5 * x * std::erfc(-x * std::sqrt(0.5)), 1.13, u);
    case EpilogueOp::gelu_tanh:
      return e.apply(0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))), 1.13, u);
    case EpilogueOp::silu:
      return e.apply(x / (1 + std::exp(-x)), 1.1, u);
    case EpilogueOp::sigmoid:
      return e.apply(1 / (1 + std::exp(-x)), 0.25, u);
    case EpilogueOp::clamp:
      e.x = std::fmin(std::fmax(x, o_.clamp_low), o_.clamp_high);
      return;
    }
  }

  const Gemm& p_;
  const Operands& o_;
  const cuda::Tolerance t_;
};

std::string place(int64_t entry, int64_t m, int64_t n) {
  return "D[" + std::to_string(m) + "," + std::to_string(n) + "] of batch entry " + std::to_string(entry);
}

Outcome compare(const Kernel& k, const Operands& o) {
  const Gemm& p = k.problem.gemm();
  const Reference reference(k, o);
  const Matrix& d = o.matrices.at("d");
  Outcome out;
  int64_t wrong = 0;
  for (int64_t entry = 0; entry < p.batch; ++entry)
    for (int64_t m = 0; m < p.m; ++m)
      for (int64_t n = 0; n < p.n; ++n) {
        if (!reference.is_expected(m)) {
          if (!o.is_untouched(d, entry, m, n) && wrong++ == 0)
            out.fault = "of no group, but written: " + place(entry, m, n);
          continue;
        }
        const Expected e = reference.at(entry, m, n);
        const double found = o.element(d, entry, m, n), error = reference.error(found, e);
        out.error = std::max(out.error, error);
        if (error > 1 && wrong++ == 0)
          out.fault = (o.is_untouched(d, entry, m, n) ? "not written: " : "") + place(entry, m, n) + " is " +
                      std::to_string(found) + ", expected " + std::to_string(e.x) + " +- " +
                      std::to_string(e.tolerance);
      }
  if (wrong)
    out.fault += "; " + std::to_string(wrong) + " of " + std::to_string(p.batch * p.m * p.n) + " are wrong";
  return out;
}

} // namespace

Runner runner(const Kernel& k) {
  return [&k](const Launch& l, const std::vector<std::vector<uint8_t>>& arguments, GlobalMemory& memory,
              uint64_t seed) {
    run_launch(k.ptx, {l.entry, l.grid, l.block, l.cluster, l.shared, l.dependent}, arguments, memory, seed);
  };
}

Outcome check_case(const Kernel& k, const cuda::CallCase& c, uint64_t seed) {
  return check_case(k, c, seed, runner(k));
}

Outcome check_case(const Kernel& k, const cuda::CallCase& c, uint64_t seed, const Runner& run) {
  try {
    Operands o(k, c, seed);
    std::vector<std::vector<uint8_t>> arguments;
    for (const std::string& name : k.args) arguments.push_back(o.argument(k, name));
    for (size_t i = 0; i < k.launches.size(); ++i) {
      Launch l = k.launches[i];
      // A small device, so that blocks have several tiles.
      if (l.persistent) l.grid[0] = std::min(l.grid[0], l.cluster[0] * int64_t(1 + (seed + i) % 6));
      run(l, arguments, o.memory, seed + i);
    }
    return compare(k, o);
  } catch (const Fault& f) {
    return {f.what(), 0};
  }
}

std::vector<cuda::CallCase> chosen_cases(const Gemm& p, uint64_t seed) {
  const std::vector<cuda::CallCase> all = cuda::call_cases(p);
  std::vector<cuda::CallCase> padded;
  for (const cuda::CallCase& c : all)
    if (c.padded) padded.push_back(c);
  return {padded.back(), padded[seed % (padded.size() - 1)]};
}

std::vector<Check> checks(const Kernel& k, uint64_t seed, bool all) {
  std::vector<Check> out;
  if (std::holds_alternative<Rows>(k.problem.which())) {
    for (const RowsCase& c : rows_cases())
      out.push_back({c.name, [=, &k](const Runner& run) { return check_rows(k, c, seed, run); }});
    return out;
  }
  if (std::holds_alternative<Attention>(k.problem.which())) {
    for (const AttentionCase& c : cases_for(k.problem.attention()))
      out.push_back({c.name, [=, &k](const Runner& run) { return check_attention(k, c, seed, run); }});
    return out;
  }
  for (const cuda::CallCase& c :
       all ? cuda::call_cases(k.problem.gemm()) : chosen_cases(k.problem.gemm(), seed))
    out.push_back({c.name, [=, &k](const Runner& run) { return check_case(k, c, seed, run); }});
  return out;
}

} // namespace deepgen::ptx_sim
