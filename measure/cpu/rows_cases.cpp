#include "measure/cpu/rows_cases.h"

#include "base/text/error.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace deepgen {
namespace {

constexpr double kCheapElements = 1 << 20;
constexpr int64_t kComparedElements = int64_t(1) << 21, kNeighbours = 8;

bool cheap_rows(const Rows& p) { return double(p.m) * double(p.n) <= kCheapElements; }

constexpr RowsCase kDenseRows = {"dense", false, Guard::behind, GridCut::whole};
constexpr RowsCase kOtherRows[] = {
    {"dense, by rows", false, Guard::in_front, GridCut::rows},
    {"padded", true, Guard::behind, GridCut::whole},
    {"padded, by rows", true, Guard::in_front, GridCut::rows},
};
constexpr RowsCase kInPlace[] = {
    {"D in X", true, Guard::behind, GridCut::rows, RowsCase::d_in_x},
    {"D in the residual", true, Guard::in_front, GridCut::rows, RowsCase::d_in_residual},
    {"the sum in the residual", true, Guard::in_front, GridCut::rows, RowsCase::sum_in_residual},
    {"the sum in X", true, Guard::behind, GridCut::rows, RowsCase::sum_in_x},
};

bool possible(const Rows& p, RowsCase::Place place) {
  const bool d = place == RowsCase::d_in_x || place == RowsCase::d_in_residual;
  return (!d || p.d == p.x) && (place != RowsCase::d_in_residual || p.residual) && (d || p.output_residual);
}

/// `more` makes leading dimensions of operands with equal sizes differ.
View rows_view(int64_t rows, int64_t columns, bool padded, int64_t more) {
  View v = View::dense(rows, columns, 1);
  if (padded) v.ld = (columns + 3 + 2 * more) | 1;
  return v;
}

/// All rows, or the first, the last and seeded runs of neighbours.
std::vector<int64_t> compared_rows(const Rows& p, uint64_t seed) {
  std::vector<int64_t> rows;
  if (p.m <= kComparedElements / p.n) {
    for (int64_t i = 0; i < p.m; ++i) rows.push_back(i);
    return rows;
  }
  rows = {0, p.m - 1};
  for (int64_t run = 0; run < kComparedElements / p.n / kNeighbours; ++run) {
    const auto start = int64_t((uniform(seed, uint64_t(run)) + 1) / 2 * double(p.m));
    for (int64_t i = start; i < std::min(start + kNeighbours, p.m); ++i) rows.push_back(i);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

std::vector<double> numbers(Type type, const char* data, int64_t first, int64_t count) {
  std::vector<double> out;
  if (!data) return out;
  for (int64_t i = 0; i < count; ++i) out.push_back(decoded(type, data, first + i));
  return out;
}

ExpectedRow expected_row(const Rows& p, const RowsInputs& in, int64_t row) {
  const auto x = numbers(p.x, in.x.data(), row * p.n, p.n),
             residual = numbers(p.x, in.residual.data(), row * p.n, p.n),
             scale = numbers(p.x, in.scale.data(), 0, p.n), bias = numbers(p.x, in.bias.data(), 0, p.n);
  return ExpectedRow(p, {x.data(), residual.data(), scale.data(), bias.data(), in.epsilon});
}

GuardedMatrix operand(const char* name, Type type, const View& v, const RowsCase& c, bool used) {
  return GuardedMatrix(name, type, used ? v : View(), c.guard, c.padded);
}

std::string number_text(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

} // namespace

bool RowFinding::note(double e, const char* operand, int64_t row, int64_t column, double found) {
  if (e <= error) return false;
  error = e;
  if (e <= 1) return false;
  detail = std::string(operand) + ", row " + std::to_string(row) +
           (column < 0 ? "" : ", column " + std::to_string(column)) + ": " + number_text(found);
  return true;
}

std::vector<RowsCase> cases_for(const Rows& p) {
  std::vector<RowsCase> cases = {kDenseRows};
  if (!cheap_rows(p)) return cases;
  cases.insert(cases.end(), std::begin(kOtherRows), std::end(kOtherRows));
  for (const RowsCase& c : kInPlace)
    if (possible(p, c.place)) cases.push_back(c);
  // Each flavour somewhere, however few rows there are.
  constexpr int kFlavours = int(RowFlavour::count);
  for (int first = 0; first < kFlavours; first += int(std::min<int64_t>(p.m, kFlavours)))
    cases.push_back({"special values", true, first % 2 ? Guard::behind : Guard::in_front, GridCut::whole,
                     p.d == p.x && first % 3 == 1 ? RowsCase::d_in_x : RowsCase::apart, first});
  return cases;
}

double case_bytes(const Rows& p) {
  constexpr double kExpected = 4 * 8, kValues = 12; // bytes an element, of ExpectedRow and of inputs
  const double elements = double(p.m) * double(p.n), compared = std::min(elements, 2.0 * kComparedElements);
  const double cases = double(cases_for(p).size());
  return cases * elements * 16 + cases * (compared * kExpected + elements * kValues);
}

RowsCases::Values::Values(const Rows& p, uint64_t seed, int flavours)
    : inputs(p, seed, flavours), rows(compared_rows(p, seed)) {
  for (int64_t row : rows) expected.push_back(expected_row(p, inputs, row));
}

RowsCases::RowsCases(const Rows& p, uint64_t seed) : problem_(p) {
  std::map<int, const Values*> by_flavours;
  for (const RowsCase& c : cases_for(p)) {
    const Values*& values = by_flavours[c.flavours];
    if (!values) values = values_.emplace_back(std::make_unique<Values>(p, seed, c.flavours)).get();
    cases_.push_back(std::make_unique<Prepared>(prepare(c, *values)));
  }
}

RowsCases::Prepared RowsCases::prepare(const RowsCase& c, const Values& values) const {
  const Rows& p = problem_;
  const auto matrix = [&](int64_t more) { return rows_view(p.m, p.n, c.padded, more); };
  const View vector = View::dense(1, p.n, 1);
  Prepared out{c,
               &values,
               operand("X", p.x, matrix(1), c, true),
               operand("the residual", p.x, matrix(2), c, p.residual),
               operand("scale", p.x, vector, c, p.scale),
               operand("bias", p.x, vector, c, p.bias),
               operand("D", p.d, matrix(0), c, true),
               operand("the residual output", p.x, matrix(3), c, p.output_residual),
               operand("row_scales", Type::f32, View::dense(1, p.m, 1), c, p.quantised()),
               {}};
  out.scale.poison(), out.bias.poison();
  if (p.scale) out.scale.fill(values.inputs.scale.data());
  if (p.bias) out.bias.fill(values.inputs.bias.data());
  out.scale.make_read_only(), out.bias.make_read_only();
  fill(out);
  if (!out.writes_x()) out.x.make_read_only();
  if (!out.writes_residual()) out.residual.make_read_only();
  RowsCall& call = out.call;
  call.x = out.x.data(), call.ldx = out.x.view().ld;
  call.d = out.d().data(), call.ldd = out.d().view().ld;
  call.epsilon = values.inputs.epsilon;
  if (p.residual) call.residual = out.residual.data(), call.ld_residual = out.residual.view().ld;
  if (p.output_residual) call.residual_out = out.sum().data(), call.ld_residual_out = out.sum().view().ld;
  if (p.scale) call.scale = out.scale.data();
  if (p.bias) call.bias = out.bias.data();
  if (p.quantised()) call.row_scales = reinterpret_cast<float*>(out.row_scales.data());
  return out;
}

/// What calls overwrite, before each.
void RowsCases::fill(Prepared& x) const {
  const bool first = !x.call.x;
  if (first || x.writes_x()) x.x.fill(x.values->inputs.x.data());
  if (problem_.residual && (first || x.writes_residual())) x.residual.fill(x.values->inputs.residual.data());
  x.own_d.poison(), x.own_sum.poison(), x.row_scales.poison();
}

Verdict RowsCases::run(Prepared& x, const LoadedKernel& kernel, GuardedWorkspace& workspace) const {
  workspace.poison();
  RowsCall call = x.call;
  call.workspace = workspace.data();
  fill(x);
  const SlotValues values = values_of(call);
  for (const TileRanges& range : cut_ranges(kernel.full_range(), x.what.cut)) kernel.call(values, range);
  const std::pair<const char*, const GuardedMatrix*> written[] = {
      {"D", &x.d()}, {"the residual output", &x.sum()}, {"row_scales", &x.row_scales}};
  for (const auto& [name, matrix] : written)
    if (std::string damage = matrix->damage(); !damage.empty())
      return {"out_of_bounds", std::string(name) + ": " + damage, 0};
  if (std::string damage = workspace.damage(); !damage.empty())
    return {"out_of_bounds", "workspace: " + damage, 0};
  const RowFinding worst = compare(x);
  if (!worst.detail.empty()) return {"wrong", worst.detail, worst.error};
  return {"ok", "", worst.error};
}

RowFinding RowsCases::compare(const Prepared& x) const {
  const Rows& p = problem_;
  const GuardedMatrix &d = x.d(), &sum = x.sum();
  RowFinding worst;
  size_t next = 0;
  for (int64_t row = 0; row < p.m; ++row) {
    const bool checked = next < x.values->rows.size() && x.values->rows[next] == row;
    const ExpectedRow* expected = checked ? &x.values->expected[next++] : nullptr;
    for (int64_t n = 0; n < p.n; ++n) {
      const double found = decoded(p.d, d.row(0, row), n);
      if (!expected) { // such rows are plain
        if (!std::isfinite(found)) worst.note(INFINITY, "D", row, n, found);
        continue;
      }
      if (worst.note(expected->error_of_d(n, found), "D", row, n, found))
        worst.detail += ", expected " + expected->text_of_d(n);
      if (!p.output_residual) continue;
      const double total = decoded(p.x, sum.row(0, row), n);
      worst.note(expected->error_of_residual(n, total), "the residual output", row, n, total);
    }
    if (!expected || !p.quantised()) continue;
    const double scale = decoded(Type::f32, x.row_scales.data(), row);
    if (worst.note(expected->error_of_scale(scale), "row_scales", row, -1, scale))
      worst.detail += ", where column 0 is " + expected->text_of_d(0);
  }
  return worst;
}

Verdict RowsCases::verify(const LoadedKernel& kernel, int64_t workspace_bytes,
                          const std::function<void(const std::string&)>& before) {
  GuardedWorkspace workspace(workspace_bytes);
  const auto name_of = [](const auto& prepared) { return prepared->what.name; };
  return verify_in_turn(problem_, cases_, name_of, [&](const auto& prepared) {
    before(prepared->what.name);
    return run(*prepared, kernel, workspace);
  });
}

} // namespace deepgen
