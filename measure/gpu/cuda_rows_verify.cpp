#include "measure/gpu/cuda_rows_verify.h"

#include "base/problem/signature.h"
#include "measure/gpu/toolbox/cuda_values.h"
#include "measure/gpu/toolbox/host_kernels.h"
#include "measure/values/rows_inputs.h"

#include <algorithm>
#include <cstring>

namespace deepgen::cuda {
namespace {

// Of each of four cases. With four times as many a candidate took the host 0.4 s, and in a round of 5 s 30 of
// 40 candidates were not measured for it.
constexpr int64_t kCheckedElements = int64_t(1) << 18;
constexpr int64_t kSpecialRows = int64_t(RowFlavour::count), kMostCheckedRows = 4096;
/// Each candidate adds two, small ones, of its awkward shape.
constexpr size_t kMostReferences = 32;

Array rows_of(const Array& x, int64_t first, int64_t count) {
  Array view = x;
  view.data += uint64_t(first * x.ld * size_of(Type(x.type))), view.rows = count;
  return view;
}

/// One row of an operand, as it is stored.
std::vector<char> stored_row(const Array& x, int64_t row) {
  std::vector<char> bytes(size_t(x.columns * size_of(Type(x.type))));
  check(driver()->cuMemcpyDtoH(bytes.data(), rows_of(x, row, 1).data, bytes.size()), "reading a row");
  return bytes;
}

std::vector<double> row_values(const Array& x, int64_t row) {
  const std::vector<char> bytes = stored_row(x, row);
  std::vector<double> out;
  out.reserve(size_t(x.columns));
  for (int64_t i = 0; i < x.columns; ++i)
    out.push_back(host::load(reinterpret_cast<uintptr_t>(bytes.data()), x.type, i));
  return out;
}

/// The smallest leading dimension above the columns whose rows start at multiples of `unit` elements alone.
int64_t padded_columns(int64_t columns, int64_t unit) {
  const int64_t units = columns / unit + 1;
  return (units % 2 ? units : units + 1) * unit;
}

} // namespace

std::vector<RowsCallCase> rows_call_cases() {
  return {{"dense"}, {"padded", true}, {"in place", true, true}, {"special rows", true, false, true}};
}

std::vector<int64_t> checked_rows(const Rows& p, uint64_t seed) {
  std::vector<int64_t> rows;
  const int64_t most = std::min(std::max(kCheckedElements / p.n, 2 * kSpecialRows), kMostCheckedRows);
  if (p.m <= most) {
    for (int64_t i = 0; i < p.m; ++i) rows.push_back(i);
    return rows;
  }
  for (int64_t i = 0; i < kSpecialRows; ++i) rows.push_back(i);
  rows.push_back(p.m - 1);
  for (int64_t i = 0; i < most - kSpecialRows - 1; ++i)
    rows.push_back(std::min(p.m - 1, int64_t((uniform(seed, uint64_t(i)) + 1) / 2 * double(p.m))));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

/// Every buffer of one call, and what it must hold afterwards.
struct RowsVerifier::Call {
  struct Buffer {
    std::string name;
    bool input, output; ///< both: in place
    std::unique_ptr<GuardedArray> array;
    std::vector<std::vector<char>> special; ///< rows that fill() did not make
  };
  std::vector<Buffer> buffers;
  RowsOperands operands;
  const Toolbox& tools;
  const uint64_t seed;

  Call(const Kernel&, const RowsCallCase&, const Toolbox&, uint64_t seed, int64_t zone);
  const Buffer* find(const std::string& name) const {
    for (const Buffer& b : buffers)
      if (b.name == name) return &b;
    return nullptr;
  }
  /// Of an output, which may be an input's.
  const Array& output(const std::string& name) const {
    return name == "d"              ? operands.d
           : name == "residual_out" ? operands.residual_out
                                    : find(name)->array->array();
  }

private:
  void fill(Buffer&, bool special);
};

RowsVerifier::Call::Call(const Kernel& kernel, const RowsCallCase& c, const Toolbox& toolbox, uint64_t seeded,
                         int64_t zone)
    : tools(toolbox), seed(seeded) {
  const Rows& p = kernel.problem.rows();
  for (const deepgen::Operand& x : signature(p)) {
    if (!x.in_memory()) continue;
    const std::string name = x.name;
    const char* of = !c.in_place                 ? nullptr
                     : name == "residual_out"    ? "residual"
                     : name == "d" && p.d == p.x ? "x"
                                                 : nullptr;
    if (of) {
      auto found =
          std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == of; });
      found->output = true;
      set_operand(operands, name, found->array->array());
      continue;
    }
    const int64_t unit = std::max<int64_t>(1, kernel.align_of(x) / size_of(x.type));
    const int64_t ld = c.padded && x.is_matrix() ? padded_columns(x.columns, unit) : x.columns;
    const bool input = x.role == deepgen::Operand::Role::in;
    buffers.push_back({name,
                       input,
                       !input,
                       std::make_unique<GuardedArray>(x.type, shape_of(x.rows, x.columns, ld, 1, 0),
                                                      c.padded ? unit * size_of(x.type) : 0, zone),
                       {}});
    buffers.back().array->poison(tools);
    if (input) fill(buffers.back(), c.special && name == "x");
    set_operand(operands, name, buffers.back().array->array());
  }
  operands.epsilon = rows_epsilon;
}

void RowsVerifier::Call::fill(Buffer& b, bool special) {
  const Array& x = b.array->array();
  const int64_t count = special ? std::min(x.rows, kSpecialRows) : 0;
  // Apart, as values go by their place in what is filled, and the usual rows are looked at alone later.
  if (count) tools.fill(rows_of(x, 0, count), rows_values(b.name, seed));
  if (count < x.rows) tools.fill(rows_of(x, count, x.rows - count), rows_values(b.name, seed));
  if (count) tools.context().synchronize();
  for (int64_t row = 0; row < count; ++row) {
    std::vector<double> values = row_values(x, row);
    std::vector<char> bytes(size_t(x.columns * size_of(Type(x.type))));
    const auto size = size_t(size_of(Type(x.type)));
    for (int64_t i = 0; i < x.columns; ++i) {
      const uint64_t bits =
          host::encode(x.type, flavoured(RowFlavour(row), Type(x.type), i, x.columns, values[size_t(i)]));
      std::memcpy(bytes.data() + size_t(i) * size, &bits, size);
    }
    check(driver()->cuMemcpyHtoD(rows_of(x, row, 1).data, bytes.data(), bytes.size()), "writing a row");
    b.special.push_back(std::move(bytes));
  }
}

Verdict RowsVerifier::verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) {
  before(loading);
  const LoadedKernel loaded(kernel, context_);
  return verify_in_turn(kernel.problem, rows_call_cases(), &RowsCallCase::name, [&](const RowsCallCase& c) {
    before(c.name);
    return verify_case(loaded, kernel, c);
  });
}

/// Ahead of the call, which may overwrite what it is computed from.
const RowsVerifier::Reference& RowsVerifier::reference_of(const Call& call, const Rows& p,
                                                          const RowsCallCase& c) {
  const std::string key = Problem(p).key() + (c.special ? " special" : "");
  if (auto found = references_.find(key); found != references_.end()) return found->second;
  if (references_.size() >= kMostReferences) references_.clear();
  context_.synchronize();
  const auto values = [&](const char* name, int64_t row) {
    const Call::Buffer* b = call.find(name);
    return b ? row_values(b->array->array(), row) : std::vector<double>();
  };
  const std::vector<double> scale = values("scale", 0), bias = values("bias", 0);
  Reference rows;
  for (int64_t row : checked_rows(p, seed_)) {
    const std::vector<double> x = values("x", row), residual = values("residual", row);
    rows.emplace(row, ExpectedRow(p, {x.data(), residual.data(), scale.data(), bias.data(), rows_epsilon}));
  }
  return references_.emplace(key, std::move(rows)).first->second;
}

Verdict RowsVerifier::verify_case(const LoadedKernel& loaded, const Kernel& kernel, const RowsCallCase& c) {
  const Rows& p = kernel.problem.rows();
  const Call call(kernel, c, tools_, seed_, zone_);
  const Reference& reference = reference_of(call, p, c);
  loaded.enqueue(call.operands, context_.stream());
  context_.synchronize(); // what the kernel did wrong shows here, before anything else is enqueued
  const Verdict verdict = damage(call);
  return verdict.status == "ok" ? numbers(call, p, reference) : verdict;
}

/// Whether it wrote where it should not have, or left out what it should have written.
Verdict RowsVerifier::damage(const Call& call) const {
  std::vector<Finding> findings(2 * call.buffers.size());
  const Memory results(findings.size() * sizeof(Finding));
  check(driver()->cuMemcpyHtoD(results.address(), findings.data(), results.bytes()), "copying to the device");
  Address next = results.address();
  for (const Call::Buffer& b : call.buffers) {
    const Array& x = b.array->array();
    b.array->check_gaps(tools_, next);
    next += sizeof(Finding);
    const auto special = int64_t(b.special.size());
    if (b.output && Type(x.type) != Type::i8) // of which the canary is a number
      tools_.check_written(x, next);
    else if (!b.output && x.rows > special)
      tools_.check_values(rows_of(x, special, x.rows - special), rows_values(b.name, seed_), next);
    next += sizeof(Finding);
  }
  context_.synchronize();
  check(driver()->cuMemcpyDtoH(findings.data(), results.address(), results.bytes()), "reading the findings");
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const Call::Buffer& b = call.buffers[i];
    const Finding &gaps = findings[2 * i], &elements = findings[2 * i + 1];
    if (gaps.count) return {"out_of_bounds", b.name + " written " + b.array->place_of_damage(gaps.place), 0};
    const int64_t columns = b.array->array().columns, place = int64_t(elements.place);
    if (elements.count && b.output)
      return {"wrong",
              "not written: " + b.name + ", row " + std::to_string(place / columns) + ", column " +
                  std::to_string(place % columns),
              0};
    for (size_t row = 0; !b.output && row < b.special.size(); ++row)
      if (stored_row(b.array->array(), int64_t(row)) != b.special[row])
        return {"out_of_bounds", b.name + " was changed in row " + std::to_string(row), 0};
    if (elements.count) return {"out_of_bounds", b.name + " was changed", 0};
  }
  return {};
}

Verdict RowsVerifier::numbers(const Call& call, const Rows& p, const Reference& reference) const {
  Verdict verdict;
  const auto judge = [&](const std::string& what, double found, double error, const ExpectedRow& expected,
                         int64_t column) {
    verdict.error = std::max(verdict.error, error);
    if (error <= 1 || verdict.status != "ok") return;
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", found);
    verdict.status = "wrong";
    verdict.detail = what + " is " + text + "; of D " + expected.text_of_d(column) + " is expected";
  };
  const std::vector<double> scales =
      p.quantised() ? row_values(call.output("row_scales"), 0) : std::vector<double>();
  for (const auto& [row, expected] : reference) {
    const std::string where = "row " + std::to_string(row) + ", column ";
    const auto compare = [&](const char* name, double (ExpectedRow::*error)(int64_t, double) const) {
      const std::vector<double> found = row_values(call.output(name), row);
      for (int64_t n = 0; n < p.n; ++n)
        judge(std::string(name) + ", " + where + std::to_string(n), found[size_t(n)],
              (expected.*error)(n, found[size_t(n)]), expected, n);
    };
    compare("d", &ExpectedRow::error_of_d);
    if (p.output_residual) compare("residual_out", &ExpectedRow::error_of_residual);
    if (p.quantised())
      judge("row_scales, row " + std::to_string(row), scales[size_t(row)],
            expected.error_of_scale(scales[size_t(row)]), expected, 0);
  }
  return verdict;
}

} // namespace deepgen::cuda
