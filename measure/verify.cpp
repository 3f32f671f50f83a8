#include "measure/verify.h"

#include <algorithm>

namespace deepgen {
namespace {

/// Whether checking every case costs little in time and memory.
bool cheap(const Problem& p) {
  constexpr double kFlops = 2e9, kElements = 1 << 24;
  return p.flops() <= kFlops && double(p.batch) * (double(p.m) * double(p.n) + double(p.m) * double(p.k) +
                                                   double(p.k) * double(p.n)) <=
                                    kElements;
}

constexpr Case kDense = {"dense", false, Guard::behind, 1, 0, Case::separate, Case::whole};
constexpr Case kOthers[] = {
    {"no C", false, Guard::in_front, 1, 0, Case::absent, Case::rows},
    {"padded, alpha and beta", true, Guard::behind, 1.25, -0.75, Case::separate, Case::whole},
    // A call that strays into the tiles of another one shows in place, where adding C twice is not adding it
    // once.
    {"padded, in place", true, Guard::in_front, -0.5, 1, Case::in_place, Case::rows},
    {"padded, in place by columns", true, Guard::behind, 1, 0.5, Case::in_place, Case::columns},
    {"padded, beta 0", true, Guard::behind, 2, 0, Case::separate, Case::columns},
    {"padded, alpha 0", true, Guard::in_front, 0, 0.5, Case::in_place, Case::entries},
};

View view(int64_t rows, int64_t columns, int64_t batch, bool padded) {
  View v = View::dense(rows, columns, batch);
  if (!padded)
    return v;
  v.ld = (columns + 3) | 1;
  v.stride = rows * v.ld + 7;
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

/// [first, last) in up to three uneven parts: one alone, and the rest in two.
std::vector<std::pair<int64_t, int64_t>> parts(int64_t first, int64_t last) {
  if (last - first < 2)
    return {{first, last}};
  const int64_t middle = (first + 1 + last + 1) / 2;
  std::vector<std::pair<int64_t, int64_t>> out = {{first, first + 1}, {first + 1, middle}, {middle, last}};
  std::erase_if(out, [](auto& r) { return r.first >= r.second; });
  return out;
}

} // namespace

std::vector<Case> cases_for(const Problem& p) {
  std::vector<Case> cases = {kDense};
  if (cheap(p))
    cases.insert(cases.end(), std::begin(kOthers), std::end(kOthers));
  return cases;
}

std::vector<TileRanges> cut_ranges(const TileRanges& full, Case::Cut cut) {
  std::vector<TileRanges> ranges;
  switch (cut) {
  case Case::whole:
    ranges = {full};
    break;
  case Case::rows:
    for (auto [from, to] : parts(full.m0, full.m1))
      ranges.push_back({from, to, full.n0, full.n1, full.b0, full.b1});
    break;
  case Case::columns:
    for (auto [from, to] : parts(full.n0, full.n1))
      ranges.push_back({full.m0, full.m1, from, to, full.b0, full.b1});
    break;
  case Case::entries:
    for (auto [from, to] : parts(full.b0, full.b1))
      ranges.push_back({full.m0, full.m1, full.n0, full.n1, from, to});
    break;
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

double call_limit(const Problem& p, double base) {
  constexpr double kSlowFlopsPerSecond = 10e9, kSlack = 20;
  return std::max(base, kSlack * p.flops() / kSlowFlopsPerSecond);
}

CaseSet::CaseSet(const Problem& p, uint64_t seed)
    : problem_(p), inputs_(p, seed, cheap(p)), reference_(problem_, inputs_, seed) {
  for (const Case& c : cases_for(p))
    cases_.push_back(std::make_unique<Prepared>(prepare(c)));
}

CaseSet::Prepared CaseSet::prepare(const Case& c) const {
  const Problem& p = problem_;
  const View a = view(p.a_rows(), p.a_columns(), p.batch, c.padded),
             b = view(p.b_rows(), p.b_columns(), p.batch, c.padded);
  const View d = view(p.m, p.n, p.batch, c.padded);
  // With beta 0, C must not be read: it holds NaN.
  const bool own_c = c.c == Case::separate;
  Prepared out{c,
               input("A", p.a, a, c, inputs_.a.data()),
               input("B", p.b, b, c, inputs_.b.data()),
               input("C", p.d, own_c ? d : View(), c, own_c && c.beta != 0 ? inputs_.c.data() : nullptr),
               GuardedMatrix("D", p.d, d, c.guard, c.padded),
               input("bias", p.d, View::dense(1, p.n, 1), c, inputs_.bias.data()),
               {},
               reference_.expected(c.alpha, c.beta)};
  CallBuffers& x = out.buffers;
  x.a = out.a.data(), x.lda = a.ld, x.stride_a = a.stride;
  x.b = out.b.data(), x.ldb = b.ld, x.stride_b = b.stride;
  x.d = out.d.data(), x.ldd = d.ld, x.stride_d = d.stride;
  x.ldc = d.ld, x.stride_c = d.stride;
  x.c = c.c == Case::in_place ? out.d.data() : own_c ? out.c.data() : nullptr;
  x.bias = p.has(EpilogueOp::bias) ? out.bias.data() : nullptr;
  x.alpha = c.alpha, x.beta = c.beta;
  return out;
}

Verdict CaseSet::run(Prepared& x, const LoadedKernel& kernel, int64_t workspace_bytes) const {
  GuardedWorkspace workspace(workspace_bytes);
  CallBuffers buffers = x.buffers;
  buffers.workspace = workspace.data();
  if (x.what.c == Case::in_place && x.what.beta != 0)
    x.d.fill(inputs_.c.data());
  else
    x.d.poison();
  for (const TileRanges& range : cut_ranges(kernel.full_range(), x.what.cut))
    kernel.call(buffers, range);
  const std::string in_case = " (case '" + std::string(x.what.name) + "' of " + problem_.key() + ")";
  if (std::string damage = x.d.damage(); !damage.empty())
    return {"out_of_bounds", "D: " + damage + in_case, 0};
  if (std::string damage = workspace.damage(); !damage.empty())
    return {"out_of_bounds", "workspace: " + damage + in_case, 0};
  const Comparison result = compare(problem_, reference_.rows(), x.expected,
                                    [&](int64_t entry, int64_t row) { return x.d.row(entry, row); });
  if (!result.ok())
    return {"wrong", result.detail + in_case, result.error};
  return {"ok", "", result.error};
}

Verdict CaseSet::verify(const LoadedKernel& kernel, int64_t workspace,
                        const std::function<void(const std::string&)>& before) {
  Verdict worst;
  for (auto& prepared : cases_) {
    before(prepared->what.name);
    const Verdict one = run(*prepared, kernel, workspace);
    if (one.status != "ok")
      return one;
    worst.error = std::max(worst.error, one.error);
  }
  return worst;
}

} // namespace deepgen
