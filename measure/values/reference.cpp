#include "measure/values/reference.h"

#include "measure/values/buffers.h"
#include "measure/values/clones.h"
#include "measure/values/operands.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace deepgen {
namespace {

constexpr double kFullFlops = 20e9, kSampleFlops = 8e9;
constexpr int64_t kFullElements = int64_t(1) << 25;
constexpr int64_t kRun = 32;

constexpr int64_t kTileM = 4, kTileN = 8, kBlockK = 256, kBlockN = 512;

/// out[4][ld] += a (packed [k][4]) * b (packed [k][8]).
DEEPGEN_CLONES void tile_product(const double* a, const double* b, int64_t k, double* out, int64_t ld) {
  typedef double Vector __attribute__((vector_size(64)));
  Vector sum[kTileM] = {};
  for (int64_t i = 0; i < k; ++i, a += kTileM, b += kTileN) {
    Vector right;
    std::memcpy(&right, b, sizeof right);
    for (int64_t r = 0; r < kTileM; ++r) sum[r] += a[r] * right;
  }
  for (int64_t r = 0; r < kTileM; ++r)
    for (int64_t j = 0; j < kTileN; ++j) out[r * ld + j] += sum[r][j];
}

double element(Type type, const char* data, int64_t index) {
  return type == Type::f32   ? reinterpret_cast<const float*>(data)[index]
         : type == Type::f64 ? reinterpret_cast<const double*>(data)[index]
                             : decoded(type, data, index);
}

/// Of the sum of K products, in terms of the norms.
double sum_tolerance(const Gemm& p) {
  const double u = unit_roundoff(computes_in(p));
  return is_integer(p.a) ? p.d == Type::i32 ? 0 : 4 * u : u * (8 + 4 * std::sqrt(double(p.k)));
}

/// What D is to hold for a value of the epilogue, and how far off it may be.
void round_to(Type d, double& value, double& tolerance) {
  if (d == Type::i8) {
    value = std::min(std::max(value, -128.0), 127.0), tolerance += 0.5;
  } else if (d == Type::i32) {
    value = double(int32_t(uint32_t(int64_t(value)))), tolerance = 0.25; // whole numbers, modulo 2^32
  } else if (d == Type::f16 || d == Type::bf16) {
    const double relative = d == Type::f16 ? 0x1p-11 : 0x1p-8;
    tolerance += relative * (std::fabs(value) + tolerance) + (d == Type::f16 ? 0x1p-24 : 0);
  }
}

/// Copies a block of `inner` k-values by `outer` rows or columns into panels of `width`, zero beyond the
/// edge. Element (o, i) lies at offset(o) + i * step.
template <typename Offset>
void pack(Type type, const char* data, int64_t outer, int64_t inner, int64_t width, int64_t step,
          Offset offset, double* out) {
  for (int64_t o0 = 0; o0 < outer; o0 += width, out += width * inner)
    for (int64_t o = 0; o < width; ++o) {
      if (o0 + o >= outer) {
        for (int64_t i = 0; i < inner; ++i) out[i * width + o] = 0;
        continue;
      }
      const int64_t base = offset(o0 + o);
      if (type == Type::f32)
        for (int64_t i = 0; i < inner; ++i)
          out[i * width + o] = reinterpret_cast<const float*>(data)[base + i * step];
      else
        for (int64_t i = 0; i < inner; ++i) out[i * width + o] = element(type, data, base + i * step);
    }
}

std::vector<int64_t> choose_rows(const Gemm& p, uint64_t seed) {
  const int64_t all = p.m * p.batch;
  std::vector<int64_t> rows;
  if (p.flops() <= kFullFlops && all * p.n <= kFullElements) {
    for (int64_t i = 0; i < all; ++i) rows.push_back(i);
    return rows;
  }
  const double row_flops = 2.0 * double(p.sum_columns()) * double(p.k);
  const auto budget = int64_t(std::min(kSampleFlops / row_flops, double(kFullElements) / double(p.n)));
  rows = {0, all - 1};
  for (int64_t run = 0; run < std::max<int64_t>(1, budget / kRun); ++run) {
    const auto start = int64_t((uniform(seed, uint64_t(run)) + 1) / 2 * double(all));
    for (int64_t i = start; i < std::min(start + kRun, all); ++i) rows.push_back(i);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

struct Sum {
  double value, tolerance;
};

Sum gated(const Gemm& p, Sum gate, Sum up) {
  const double f = apply_step(*p.gate, gate.value, 0, 0, 0), x = f * up.value;
  const double t = tolerance_after(*p.gate, computes_in(p), gate.value, 0, f, gate.tolerance);
  return {x, std::fabs(up.value) * t + (std::fabs(f) + t) * up.tolerance +
                 2 * unit_roundoff(computes_in(p)) * std::fabs(x) + smallest_normal(computes_in(p))};
}

std::string place(const Gemm& p, int64_t index, int64_t column) {
  std::string text = "row " + std::to_string(index % p.m) + ", column " + std::to_string(column);
  if (p.batch > 1) text += ", batch entry " + std::to_string(index / p.m);
  return text;
}

bool untouched(const Gemm& p, const char* data, int64_t column) {
  const int64_t bytes = size_of(p.d);
  uint32_t word[2] = {canary, canary};
  return std::memcmp(data + column * bytes, word, size_t(bytes)) == 0;
}

} // namespace

Reference::Reference(const Gemm& p, const Inputs& inputs, uint64_t seed)
    : problem_(p), ungated_(p.ungated()), inputs_(inputs), rows_(choose_rows(p, seed)) {
  product_.assign(rows_.size() * size_t(ungated_.n), 0.0);
  measure_norms();
  for (size_t begin = 0; begin < rows_.size();) {
    const int64_t entry = rows_[begin] / p.m;
    size_t end = begin;
    while (end < rows_.size() && rows_[end] / p.m == entry) ++end;
    multiply_entry(entry, begin, end);
    begin = end;
  }
}

void Reference::multiply_entry(int64_t entry, size_t begin, size_t end) {
  const Gemm& p = ungated_;
  const char* a = inputs_.a.data() + entry * p.m * p.k * size_of(p.a);
  const char* b = inputs_.b.data() + entry * p.k * p.n * size_of(p.b);
  const auto count = int64_t(end - begin);
  const int64_t most_k = std::min(kBlockK, p.k), most_n = std::min(kBlockN, p.n) + kTileN; // whole tiles
  std::vector<double> b_panels(size_t(most_k * most_n)), a_panel(size_t(most_k * kTileM));
  double edge[kTileM * kTileN];
  for (int64_t n0 = 0; n0 < p.n; n0 += kBlockN)
    for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
      const int64_t nb = std::min(kBlockN, p.n - n0), kb = std::min(kBlockK, p.k - k0);
      const auto b_at = [&](int64_t j) { return p.b_transposed() ? (n0 + j) * p.k + k0 : k0 * p.n + n0 + j; };
      pack(p.b, b, nb, kb, kTileN, p.b_transposed() ? 1 : p.n, b_at, b_panels.data());
      for (int64_t i = 0; i < count; i += kTileM) {
        const int64_t mb = std::min(kTileM, count - i);
        const auto a_at = [&](int64_t r) {
          const int64_t row = rows_[begin + size_t(i + r)] % p.m;
          return p.a_transposed() ? k0 * p.m + row : row * p.k + k0;
        };
        pack(p.a, a, mb, kb, kTileM, p.a_transposed() ? p.m : 1, a_at, a_panel.data());
        double* out = &product_[(begin + size_t(i)) * size_t(p.n) + size_t(n0)];
        for (int64_t j = 0; j < nb; j += kTileN) {
          if (mb == kTileM && nb - j >= kTileN) {
            tile_product(a_panel.data(), &b_panels[size_t(j * kb)], kb, out + j, p.n);
            continue;
          }
          std::fill(std::begin(edge), std::end(edge), 0.0);
          tile_product(a_panel.data(), &b_panels[size_t(j * kb)], kb, edge, kTileN);
          for (int64_t r = 0; r < mb; ++r)
            for (int64_t x = 0; x < std::min(kTileN, nb - j); ++x)
              out[r * p.n + j + x] += edge[r * kTileN + x];
        }
      }
    }
}

void Reference::measure_norms() {
  const Gemm& p = ungated_;
  for (int64_t index : rows_) {
    const int64_t base = index / p.m * p.m * p.k, row = index % p.m;
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const double x =
          element(p.a, inputs_.a.data(), base + (p.a_transposed() ? k * p.m + row : row * p.k + k));
      sum += x * x;
    }
    a_norms_.push_back(std::sqrt(sum));
  }
  b_norms_.assign(size_t(p.batch * p.n), 0.0);
  int64_t at = 0;
  for (int64_t entry = 0; entry < p.batch; ++entry)
    for (int64_t r = 0; r < p.b_rows(); ++r)
      for (int64_t c = 0; c < p.b_columns(); ++c) {
        const double x = element(p.b, inputs_.b.data(), at++);
        b_norms_[size_t(entry * p.n + (p.b_transposed() ? r : c))] += x * x;
      }
  for (double& x : b_norms_) x = std::sqrt(x);
}

Expected Reference::expected(double alpha, double beta, Broadcast broadcast) const {
  const Gemm& p = problem_;
  const Type type = computes_in(p);
  const double u = unit_roundoff(type), factor = sum_tolerance(p) * std::fabs(alpha);
  std::array<const StepOperand*, epilogue_op_count> operand_of{};
  const std::vector<StepOperand> operands = operands_of(p);
  for (const StepOperand& operand : operands) operand_of[size_t(operand.op)] = &operand;
  const int64_t columns = ungated_.n;
  Expected out;
  out.value.reserve(rows_.size() * size_t(p.n));
  out.tolerance.reserve(rows_.size() * size_t(p.n));
  for (size_t i = 0; i < rows_.size(); ++i) {
    const int64_t entry = rows_[i] / p.m, m = rows_[i] % p.m;
    const size_t source = broadcast.inputs ? size_t(m) : i; // all rows are there, so that these are entry 0's
    const int64_t matrix = broadcast.matrices ? 0 : entry;
    for (int64_t j = 0; j < p.n; ++j) {
      const double c = beta == 0 ? 0 : beta * element(p.d, inputs_.c.data(), (matrix * p.m + m) * p.n + j);
      const auto sum = [&](int64_t column) {
        const double norms =
            a_norms_[source] * b_norms_[size_t((broadcast.inputs ? 0 : entry) * columns + column)];
        return Sum{alpha * product_[source * size_t(columns) + size_t(column)], factor * norms};
      };
      Sum product = sum(j);
      if (p.gate) product = gated(p, product, sum(p.n + j));
      double x = product.value + c, tolerance = product.tolerance + 8 * u * std::fabs(c);
      for (EpilogueOp op : p.epilogue) {
        const StepOperand* operand = operand_of[size_t(op)];
        const double y =
            operand ? element(operand->type, inputs_.operand(op).data(), operand->index(matrix, m, j)) : 0;
        const double result = apply_step(op, x, y, inputs_.clamp_low, inputs_.clamp_high);
        tolerance = tolerance_after(op, type, x, y, result, tolerance);
        x = result;
      }
      tolerance += smallest_normal(type);
      round_to(p.d, x, tolerance);
      out.value.push_back(x);
      out.tolerance.push_back(tolerance);
    }
  }
  return out;
}

Comparison compare_row(const Gemm& p, int64_t index, const char* data, const double* value,
                       const double* tolerance) {
  Comparison worst;
  int64_t worst_column = -1;
  for (int64_t j = 0; j < p.n; ++j) {
    const double error = std::fabs(element(p.d, data, j) - value[j]) / tolerance[j];
    if (error <= worst.error) continue;
    if (!(error <= 1) && !(worst.error > 1)) worst_column = j; // the first wrong column tells most
    worst.error = std::isfinite(error) ? error : 1e30;
  }
  if (worst_column < 0) return worst;
  const double found = element(p.d, data, worst_column);
  worst.detail = untouched(p, data, worst_column)
                     ? "not written: " + place(p, index, worst_column)
                     : place(p, index, worst_column) + " is " + std::to_string(found) + ", expected " +
                           std::to_string(value[worst_column]) + " +- " +
                           std::to_string(tolerance[worst_column]);
  return worst;
}

Comparison check_finite(const Gemm& p, int64_t index, const char* data) {
  Comparison result;
  for (int64_t j = 0; j < p.n; ++j)
    if (!std::isfinite(element(p.d, data, j))) {
      result.error = 1e30;
      result.detail = (untouched(p, data, j) ? "not written: " : "not finite: ") + place(p, index, j);
      return result;
    }
  return result;
}

} // namespace deepgen
