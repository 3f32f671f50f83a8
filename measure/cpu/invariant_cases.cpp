#include "measure/cpu/invariant_cases.h"

#include "base/kernel/kernel_call.h"
#include "measure/cpu/packed_operand.h"
#include "measure/values/buffers.h"

#include <algorithm>

namespace deepgen {

/// Beside the sizes, what a row's bits must not depend on.
struct InvariantCases::Case {
  const char* name;
  bool scaled; ///< with other alpha and beta than 1 and 0: then bits are others
  int64_t gap; ///< of columns, between two rows of D
  GridCut cut;
};

namespace {

constexpr double kEqualRowsFlops = 1e9;
constexpr int64_t kWidestGap = 3;

Gemm largest_of(const Gemm& p, const InvariantCalls& calls) { return problem_at(p, calls.calls.back()); }

/// Row 0 of every operand that has rows of its own, at all places.
void repeat_rows(const Gemm& p, const std::vector<int64_t>& places, Inputs& x) {
  const int64_t a = size_of(p.a), d = size_of(p.d);
  repeat_row(x.a.data(), places, p.k, a, p.a_transposed() ? a : p.k * a, p.a_transposed() ? p.m * a : a);
  repeat_row(x.c.data(), places, p.n, d, p.n * d, d);
  for (const StepOperand& step : operands_of(p)) {
    const int64_t bytes = size_of(step.type);
    char* data = x.operand(step.op).data();
    if (step.shape == Operand::Shape::matrix) repeat_row(data, places, p.n, bytes, p.n * bytes, bytes);
    if (step.shape == Operand::Shape::per_row) repeat_row(data, places, 1, bytes, bytes, bytes);
  }
}

} // namespace

InvariantCases::InvariantCases(const Gemm& p, uint64_t seed, std::unique_ptr<CaseSet> cases)
    : problem_(p), cases_(std::move(cases)) {
  for (const InvariantCalls& what : invariant_calls(p, kEqualRowsFlops)) {
    const Gemm largest = largest_of(p, what);
    const int64_t elements = (largest.batch * largest.m + 1) * (largest.n + kWidestGap);
    calls_.push_back({what, largest, Inputs(largest, seed), PageBuffer(size_t(elements * size_of(p.d))),
                      PageBuffer(size_t(std::max<int64_t>(packed_bytes(largest), 1)))});
    Calls& calls = calls_.back();
    repeat_rows(largest, what.places, calls.inputs);
    if (p.packed_b) pack_b(largest, buffers(calls, {"", false, 0, GridCut::whole}), calls.packed_b.data());
  }
}

CallBuffers InvariantCases::buffers(const Calls& calls, const Case& c) const {
  const Gemm& p = calls.largest;
  const Inputs& in = calls.inputs;
  CallBuffers x;
  x.a = in.a.data(), x.lda = p.a_columns(), x.stride_a = p.m * p.k;
  x.b = in.b.data(), x.ldb = p.b_columns(), x.stride_b = p.k * p.sum_columns();
  x.packed_b = calls.packed_b.data();
  x.c = c.scaled ? in.c.data() : nullptr;
  x.ldc = p.n, x.stride_c = p.m * p.n;
  x.ldd = p.n + c.gap, x.stride_d = p.m * x.ldd;
  for (const StepOperand& operand : operands_of(p)) {
    CallBuffers::Step& step = x.step(operand.op);
    step.data = in.operand(operand.op).data();
    if (operand.is_matrix()) step.ld = p.n, step.stride = p.m * p.n;
  }
  x.clamp_low = in.clamp_low, x.clamp_high = in.clamp_high;
  x.alpha = in.unit_alpha;
  if (c.scaled) x.alpha *= p.d == Type::i32 ? 3 : 1.25, x.beta = p.d == Type::i32 ? -2 : -0.75;
  if (!c.scaled) x.beta = 0;
  return x;
}

/// Words for a row with other bits.
std::string InvariantCases::run(const Calls& calls, const Sizes& sizes, const Case& c,
                                const LoadedKernel& kernel, void* workspace, EqualRows& rows) const {
  CallBuffers x = buffers(calls, c);
  const int64_t bytes = size_of(problem_.d);
  x.d = calls.d.data(), x.workspace = workspace;
  const SlotValues values = values_of(x, problem_at(problem_, sizes));
  for (const TileRanges& range : cut_ranges(kernel.full_range(values), c.cut)) kernel.call(values, range);
  for (int64_t place : calls.what.places) {
    if (place >= sizes.m) break;
    std::string difference =
        rows.add(c.name, sizes, place, calls.d.data() + place * x.ldd * bytes, sizes.n * bytes, bytes);
    if (!difference.empty()) return difference;
  }
  return "";
}

Verdict InvariantCases::verify(const LoadedKernel& kernel, int64_t workspace,
                               const std::function<void(const std::string&)>& before) {
  Verdict verdict = cases_->verify(kernel, workspace, before);
  if (verdict.status != "ok") return verdict;
  const PageBuffer scratch(size_t(std::max<int64_t>(workspace, 1)));
  const Case plain[] = {{"dense", false, 0, GridCut::whole}, {"gaps in D, by rows", false, 1, GridCut::rows}},
             scaled[] = {{"alpha and beta", true, 0, GridCut::columns},
                         {"alpha and beta, gaps in D, by rows", true, kWidestGap, GridCut::rows}};
  EqualRows rows;
  for (const Calls& calls : calls_)
    for (const auto& cases : {plain, scaled}) {
      for (const Sizes& sizes : calls.what.calls)
        for (size_t i = 0; i < std::size(plain); ++i) {
          before(std::string("equal rows, ") + cases[i].name);
          const std::string difference = run(calls, sizes, cases[i], kernel, scratch.data(), rows);
          if (!difference.empty()) return {"varies", difference, verdict.error};
        }
      rows.next();
    }
  if (!calls_.empty()) verdict.row_bits = rows.hash();
  return verdict;
}

double invariant_case_bytes(const Gemm& p) {
  double bytes = 0;
  for (const InvariantCalls& calls : invariant_calls(p, kEqualRowsFlops)) {
    const Gemm largest = largest_of(p, calls);
    for (const Operand& x : signature(largest)) bytes += 2 * x.bytes(); // and D of a call
    bytes += double(packed_bytes(largest));
  }
  return bytes;
}

} // namespace deepgen
