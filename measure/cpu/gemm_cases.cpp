#include "measure/cpu/gemm_cases.h"

#include "measure/cpu/packed_operand.h"
#include "measure/values/operands.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

/// Whether checking every case costs little in time and memory.
bool cheap(const Gemm& p) {
  constexpr double kFlops = 2e9, kElements = 1 << 24;
  return p.flops() <= kFlops && double(p.batch) * (double(p.m) * double(p.n) + double(p.m) * double(p.k) +
                                                   double(p.k) * double(p.sum_columns())) <=
                                    kElements;
}

constexpr Case kDense = {"dense", false, Guard::behind, 1, 0, Case::separate, GridCut::whole};
constexpr Case kOthers[] = {
    {"no C", false, Guard::in_front, 1, 0, Case::absent, GridCut::rows},
    {"padded, alpha and beta", true, Guard::behind, 1.25, -0.75, Case::separate, GridCut::whole},
    // A call that strays into the tiles of another one shows in place, where adding C twice is not adding it
    // once.
    {"padded, in place", true, Guard::in_front, -0.5, 1, Case::in_place, GridCut::rows},
    {"padded, in place by columns", true, Guard::behind, 1, 0.5, Case::in_place, GridCut::columns},
    {"padded, beta 0", true, Guard::behind, 2, 0, Case::separate, GridCut::columns},
    {"padded, alpha 0", true, Guard::in_front, 0, 0.5, Case::in_place, GridCut::entries},
};
constexpr Case kResidual[] = {
    {"residual in place", true, Guard::in_front, 1.25, -0.75, Case::separate, GridCut::rows, Case::residual},
    {"residual in place by columns", true, Guard::behind, 1, 0, Case::absent, GridCut::columns,
     Case::residual},
};
constexpr Case kMultiplier[] = {
    {"multiplier in place", true, Guard::behind, 1, 0, Case::absent, GridCut::rows, Case::multiplier},
    {"multiplier in place by columns", true, Guard::in_front, -0.5, 1, Case::separate, GridCut::columns,
     Case::multiplier},
};
constexpr Case kBroadcast[] = {
    {"broadcast A and B",
     true,
     Guard::behind,
     1,
     0.5,
     Case::separate,
     GridCut::entries,
     Case::none,
     {true, false}},
    {"broadcast C and matrices",
     true,
     Guard::in_front,
     1,
     -0.5,
     Case::separate,
     GridCut::whole,
     Case::none,
     {false, true}},
};

EpilogueOp op_of(Case::Matrix matrix) {
  return matrix == Case::residual ? EpilogueOp::residual : EpilogueOp::multiply;
}

/// `more` makes leading dimensions and strides of operands with equal sizes differ. Of a matrix without
/// elements (K is 0) there is one, which nobody may read.
View view(int64_t rows, int64_t columns, int64_t batch, bool padded, int64_t more = 0) {
  rows = std::max<int64_t>(rows, 1), columns = std::max<int64_t>(columns, 1);
  View v = View::dense(rows, columns, batch);
  if (!padded) return v;
  v.ld = (columns + 3 + 2 * more) | 1;
  v.stride = rows * v.ld + 7;
  return v;
}

View first_entry(View v) {
  v.batch = 1, v.stride = 0;
  return v;
}

GuardedMatrix input(const char* name, Type type, const View& v, const Case& c, const char* values) {
  GuardedMatrix matrix(name, type, v, c.guard, c.padded);
  if (values)
    matrix.fill(values);
  else
    matrix.poison();
  matrix.make_read_only();
  return matrix;
}

/// Scalars of an i32 D.
double whole(double x) { return x == std::floor(x) ? x : std::round(2 * x); }

} // namespace

std::vector<Case> cases_for(const Gemm& p) {
  std::vector<Case> cases = {kDense};
  if (!cheap(p)) return cases;
  const auto append = [&](const auto& more) { cases.insert(cases.end(), std::begin(more), std::end(more)); };
  append(kOthers);
  const bool may_be_d = p.epilogue_type() == p.d;
  if (p.has(EpilogueOp::residual) && may_be_d) append(kResidual);
  if (p.has(EpilogueOp::multiply) && may_be_d) append(kMultiplier);
  if (p.batch > 1) append(kBroadcast);
  if (p.d == Type::i32)
    for (Case& c : cases) c.alpha = whole(c.alpha), c.beta = whole(c.beta);
  return cases;
}

double case_bytes(const Gemm& p) {
  constexpr double kValueAndTolerance = 16;
  const double elements =
      double(p.batch) * (double(p.m) * double(p.k) + double(p.k) * double(p.sum_columns()) +
                         double(p.m) * double(p.n) * double(3 + operands_of(p).size()));
  return double(cases_for(p).size()) * elements * (double(size_of(Type::f64)) + kValueAndTolerance);
}

GemmCases::GemmCases(const Gemm& p, uint64_t seed)
    : problem_(p), inputs_(p, seed, cheap(p)), reference_(problem_, inputs_, seed) {
  for (const Case& c : cases_for(p)) cases_.push_back(std::make_unique<Prepared>(prepare(c)));
}

GemmCases::Prepared GemmCases::prepare(const Case& c) const {
  const Gemm& p = problem_;
  View a = view(p.a_rows(), p.a_columns(), p.batch, c.padded),
       b = view(p.b_rows(), p.b_columns(), p.batch, c.padded);
  if (c.broadcast.inputs) a = first_entry(a), b = first_entry(b);
  const View d = view(p.m, p.n, p.batch, c.padded);
  // With beta 0, C must not be read: it holds NaN.
  const bool own_c = c.c == Case::separate;
  View c_view = own_c ? view(p.m, p.n, p.batch, c.padded, 1) : d;
  if (own_c && c.broadcast.matrices) c_view = first_entry(c_view);
  const double alpha = c.alpha * inputs_.unit_alpha;
  Prepared out{c,
               input("A", p.a, a, c, p.k ? inputs_.a.data() : nullptr),
               input("B", p.b, b, c, p.k ? inputs_.b.data() : nullptr),
               input("C", p.d, own_c ? c_view : View(), c, own_c && c.beta != 0 ? inputs_.c.data() : nullptr),
               GuardedMatrix("D", p.d, d, c.guard, c.padded),
               {},
               {},
               reference_.expected(alpha, c.beta, c.broadcast)};
  CallBuffers& x = out.buffers;
  x.a = out.a.data(), x.lda = a.ld, x.stride_a = a.stride;
  x.b = out.b.data(), x.ldb = b.ld, x.stride_b = b.stride;
  x.d = out.d.data(), x.ldd = d.ld, x.stride_d = d.stride;
  x.ldc = c_view.ld, x.stride_c = c_view.stride;
  x.c = c.c == Case::in_place ? out.d.data() : own_c ? out.c.data() : nullptr;
  x.alpha = alpha, x.beta = c.beta;
  prepare_epilogue(out);
  if (p.packed_b) prepare_packed(out);
  return out;
}

void GemmCases::prepare_packed(Prepared& out) const {
  const View bytes = View::dense(1, packed_bytes(problem_), 1); // lines of 64: the guard leaves them aligned
  GuardedMatrix& panels = out.packed_b.emplace("packed B", Type::i8, bytes, out.what.guard, false);
  pack_b(problem_, out.buffers, panels.data());
  panels.make_read_only();
  out.buffers.packed_b = panels.data();
}

void GemmCases::prepare_epilogue(Prepared& out) const {
  const Gemm& p = problem_;
  const Case& c = out.what;
  CallBuffers& x = out.buffers;
  x.clamp_low = inputs_.clamp_low, x.clamp_high = inputs_.clamp_high;
  for (const StepOperand& operand : operands_of(p)) {
    const bool matrix = operand.shape == Operand::Shape::matrix;
    if (c.in_d != Case::none && operand.op == op_of(c.in_d)) {
      x.step(operand.op) = {x.d, x.ldd, x.stride_d};
      continue;
    }
    View v = matrix ? view(p.m, p.n, p.batch, c.padded, 2 + int64_t(out.operands.size()))
                    : View::dense(1, operand.columns, 1);
    if (matrix && c.broadcast.matrices) v = first_entry(v);
    out.operands.push_back(input(operand.name, operand.type, v, c, inputs_.operand(operand.op).data()));
    x.step(operand.op) = {out.operands.back().data(), v.ld, v.stride};
  }
}

Verdict GemmCases::run(Prepared& x, const LoadedKernel& kernel, GuardedWorkspace& workspace) const {
  workspace.poison();
  CallBuffers buffers = x.buffers;
  buffers.workspace = workspace.data();
  if (x.what.c == Case::in_place && x.what.beta != 0)
    x.d.fill(inputs_.c.data());
  else if (x.what.in_d != Case::none)
    x.d.fill(inputs_.operand(op_of(x.what.in_d)).data());
  else
    x.d.poison();
  const SlotValues values = values_of(buffers, problem_);
  for (const TileRanges& range : cut_ranges(kernel.full_range(values), x.what.cut))
    kernel.call(values, range);
  if (std::string damage = x.d.damage(); !damage.empty()) return {"out_of_bounds", "D: " + damage, 0};
  if (std::string damage = workspace.damage(); !damage.empty())
    return {"out_of_bounds", "workspace: " + damage, 0};
  const Comparison result = compare(problem_, reference_.rows(), x.expected,
                                    [&](int64_t entry, int64_t row) { return x.d.row(entry, row); });
  if (!result.ok()) return {"wrong", result.detail, result.error};
  return {"ok", "", result.error};
}

Verdict GemmCases::verify(const LoadedKernel& kernel, int64_t workspace_bytes,
                          const std::function<void(const std::string&)>& before) {
  GuardedWorkspace workspace(workspace_bytes);
  const auto name_of = [](const auto& prepared) { return prepared->what.name; };
  return verify_in_turn(problem_, cases_, name_of, [&](const auto& prepared) {
    before(prepared->what.name);
    return run(*prepared, kernel, workspace);
  });
}

} // namespace deepgen
