#include "templates/cpu/rows/row_sweep.h"

#include <algorithm>

namespace deepgen {
namespace {

/// Sums of more steps are sums of groups. Where all terms are about 1, each addition to a sum of L rounds by
/// up to L u / 2, the same way: so that the error grows as the square root of the columns, and not with them.
constexpr int64_t kStepsOfGroup = 32;

} // namespace

Values RowSweep::over(Value from, int64_t columns, const Reduction* reduction, const Step& step) {
  const int64_t lanes = t.isa.lanes(), vectors = columns / lanes, ragged = columns % lanes;
  const int64_t steps = vectors / t.unroll;
  chains_ = std::clamp<int64_t>(vectors, 1, t.unroll);
  sums_ = reduction ? rows_ * reduction->width : 0;
  Values sums(size_t(chains_) * sums_, reduction ? reduction->neutral : Value());
  if (steps == 1)
    for (int64_t j = 0; j < t.unroll; ++j) vector(sums, from, j, lanes, t.paired, step);
  Value behind = ir.add(from, steps * t.unroll * lanes);
  if (steps > 1 && (steps <= kStepsOfGroup * each_ || !reduction || !reduction->rounds))
    sums = steps_between(from, behind, sums, step);
  else if (steps > 1)
    sums = groups_between(from, behind, sums, *reduction, step);
  if (each_ == 1) {
    for (int64_t j = 0; j < vectors % t.unroll; ++j) vector(sums, behind, j, lanes, false, step);
    if (ragged) vector(sums, behind, vectors % t.unroll, ragged, false, step);
  }
  Values out;
  for (size_t r = 0; r < sums_; ++r) out.push_back(combined(sums, r, *reduction));
  return out;
}

/// Vector j of the step at `start`.
void RowSweep::vector(Values& sums, Value start, int64_t j, int64_t count, bool paired, const Step& step) {
  const int64_t lanes = t.isa.lanes();
  auto own = llvm::MutableArrayRef<Value>(sums).slice(size_t(j % chains_) * sums_, sums_);
  Place at{ir.add(start, j * lanes), j * lanes, count, std::nullopt, nullptr};
  if (paired) at.half = Half(j % 2), at.pair = ir.add(start, j / 2 * 2 * lanes);
  step(at, own);
}

Values RowSweep::steps_between(Value begin, Value end, const Values& initial, const Step& step) {
  const int64_t stride = each_ * t.unroll * t.isa.lanes();
  return ir.loop(begin, end, stride, initial, [&](Value start, mlir::ValueRange carried) {
    Values all(carried.begin(), carried.end());
    for (int64_t j = 0; j < t.unroll; ++j) vector(all, start, j, t.isa.lanes(), t.paired, step);
    return all;
  });
}

Values RowSweep::groups_between(Value begin, Value end, const Values& initial, const Reduction& reduction,
                                const Step& step) {
  const int64_t group = kStepsOfGroup * each_ * t.unroll * t.isa.lanes();
  return ir.loop(begin, end, group, initial, [&](Value start, mlir::ValueRange before) {
    Value stop = ir.min(ir.add(start, group), end);
    Values sums = steps_between(start, stop, Values(before.size(), reduction.neutral), step);
    for (size_t k = 0; k < sums.size(); ++k) sums[k] = reduction.combine(before[k], sums[k]);
    return sums;
  });
}

/// The chains of sum r of each, in pairs.
Value RowSweep::combined(const Values& sums, size_t r, const Reduction& reduction) {
  Values left;
  for (size_t j = 0; j < size_t(chains_); ++j) left.push_back(sums[j * sums_ + r]);
  for (; left.size() > 1; left.resize((left.size() + 1) / 2))
    for (size_t j = 0, half = (left.size() + 1) / 2; j + half < left.size(); ++j)
      left[j] = reduction.combine(left[j], left[j + half]);
  return left[0];
}

} // namespace deepgen
