#include "measure/gpu/cuda_equal_rows.h"

#include "base/kernel/kernel_call.h"
#include "base/problem/signature.h"
#include "measure/gpu/toolbox/cuda_values.h"

#include <algorithm>

namespace deepgen::cuda {
namespace {

size_t extent_bytes(const Array& x) {
  return size_t(((x.batch - 1) * x.stride + (x.rows - 1) * x.ld + x.columns) * size_of(Type(x.type)));
}

/// Row 0 of an operand to the other places; `along`: its rows lie along columns, as those of a transposed A.
void repeat_row(const Array& x, const std::vector<int64_t>& places, bool along) {
  const int64_t bytes = size_of(Type(x.type)), pitch = x.ld * bytes;
  std::vector<char> host(extent_bytes(x));
  check(driver()->cuMemcpyDtoH(host.data(), x.data, host.size()), "reading an operand");
  deepgen::repeat_row(host.data(), places, along ? x.rows : x.columns, bytes, along ? bytes : pitch,
                      along ? pitch : bytes);
  check(driver()->cuMemcpyHtoD(x.data, host.data(), host.size()), "copying to the device");
}

} // namespace

EqualRowCalls::EqualRowCalls(const Gemm& p, const Toolbox& tools, uint64_t seed)
    : problem_(p), tools_(tools) {
  for (const InvariantCalls& calls : invariant_calls(p, tools.budget().all_cases))
    operands_.push_back(operands_of(calls, seed));
}

Array EqualRowCalls::add(Operands& x, Type type, int64_t rows, int64_t columns, int64_t batch,
                         const Values& values) const {
  Array array = shape_of(rows, columns, columns, batch, 0);
  array.type = int32_t(type);
  x.memory.emplace_back(extent_bytes(array));
  array.data = x.memory.back().address();
  tools_.fill(array, values);
  tools_.context().synchronize(); // what copies from it does not wait for the stream
  return array;
}

EqualRowCalls::Operands EqualRowCalls::operands_of(const InvariantCalls& what, uint64_t seed) const {
  Operands x{what, problem_at(problem_, what.calls.back()), {}, {}};
  const Gemm& p = x.largest;
  const Scalars s = scalars_of(p);
  x.call.a = add(x, p.a, p.a_rows(), p.a_columns(), p.batch, values_of(p, Operand::a, seed));
  x.call.b = add(x, p.b, p.b_rows(), p.b_columns(), p.b_matrices(), values_of(p, Operand::b, seed));
  x.call.c = add(x, p.d, p.m, p.n, p.batch, values_of(p, Operand::c, seed));
  x.call.d = add(x, p.d, p.m, p.n, p.batch, Values());
  repeat_row(x.call.a, what.places, p.a_transposed());
  repeat_row(x.call.c, what.places, false);
  x.call.alpha = s.unit_alpha;
  x.call.clamp_low = s.clamp_low, x.call.clamp_high = s.clamp_high;
  add_steps(x, seed);
  if (!p.groups) return x;
  // The first group has all rows.
  x.memory.emplace_back(size_t(p.groups + 1) * sizeof(int32_t));
  x.call.offsets = x.memory.back().address();
  return x;
}

void EqualRowCalls::add_steps(Operands& x, uint64_t seed) const {
  const Gemm& p = x.largest;
  for (EpilogueOp op : p.epilogue)
    for (const deepgen::Operand& operand : deepgen::operands_of(op, p)) {
      if (!operand.in_memory()) continue;
      const bool matrix = operand.is_matrix();
      const Array array =
          add(x, operand.type, matrix ? operand.rows : 1, matrix ? operand.columns : operand.count(),
              matrix ? operand.entries : 1, values_of(p, op, seed));
      if (matrix) repeat_row(array, x.what.places, false);
      if (operand.shape == deepgen::Operand::Shape::per_row) repeat_row(array, x.what.places, true);
      x.call.step(op) = spread(array, operand);
    }
}

CallOperands EqualRowCalls::in_call(const Operands& x, const Gemm& at, bool scaled) const {
  CallOperands call = x.call;
  (at.a_transposed() ? call.a.columns : call.a.rows) = at.m;
  for (Array* matrix : {&call.c, &call.d}) matrix->rows = at.m;
  for (EpilogueOp op : at.epilogue)
    for (const deepgen::Operand& operand : deepgen::operands_of(op, at))
      if (operand.is_matrix() || operand.shape == deepgen::Operand::Shape::per_row) call.step(op).rows = at.m;
  if (scaled) {
    const bool integer = at.scale_type() == Type::i32;
    call.alpha *= integer ? 3 : 1.5, call.beta = integer ? -2 : -0.5;
  } else {
    call.beta = 0, call.c.data = 0;
  }
  if (!at.groups) return call;
  call.in_groups.assign(size_t(at.groups + 1), int32_t(at.m));
  call.in_groups.front() = 0;
  check(driver()->cuMemcpyHtoD(call.offsets, call.in_groups.data(), call.in_groups.size() * sizeof(int32_t)),
        "copying to the device");
  return call;
}

/// Words for a row with other bits.
std::string EqualRowCalls::run(const Kernel& kernel, const Operands& x, const Sizes& sizes, bool scaled,
                               EqualRows& rows) const {
  const Gemm at = problem_at(problem_, sizes);
  const Kernel here = kernel_in_call(kernel, sizes);
  const LoadedKernel loaded(here, tools_.context());
  CallOperands call = in_call(x, at, scaled);
  const Memory workspace(size_t(std::max<int64_t>(here.workspace, 1)));
  if (here.workspace) call.workspace = workspace.address();
  tools_.fill(call.d, Values());
  loaded.enqueue(call, tools_.context().stream());
  tools_.context().synchronize();
  const int64_t bytes = size_of(at.d);
  std::vector<char> row(size_t(at.n * bytes));
  for (int64_t place : x.what.places) {
    if (place >= at.m) break;
    check(driver()->cuMemcpyDtoH(row.data(), call.d.data + uint64_t(place * call.d.ld * bytes), row.size()),
          "reading D");
    std::string difference =
        rows.add(scaled ? "alpha and beta" : "dense", sizes, place, row.data(), int64_t(row.size()), bytes);
    if (!difference.empty()) return difference;
  }
  return "";
}

Verdict EqualRowCalls::verify(const Kernel& kernel,
                              const std::function<void(const std::string&)>& before) const {
  EqualRows rows;
  for (const Operands& x : operands_)
    for (bool scaled : {false, true}) {
      for (const Sizes& sizes : x.what.calls) {
        before("equal rows at m=" + std::to_string(sizes.m));
        const std::string difference = run(kernel, x, sizes, scaled, rows);
        if (!difference.empty()) return {"varies", difference, 0};
      }
      rows.next();
    }
  return {"ok", "", 0, operands_.empty() ? "" : rows.hash()};
}

} // namespace deepgen::cuda
