#include "measure/gpu/cuda_verify.h"

#include "measure/gpu/cuda_groups.h"
#include "measure/gpu/cuda_tolerance.h"
#include "measure/gpu/toolbox/cuda_values.h"
#include "measure/values/inputs.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace deepgen::cuda {
namespace {

constexpr int64_t kFullElements = int64_t(1) << 26;
constexpr size_t kMostProducts = 8, kMostEqualRows = 2;

int64_t blocks_per_entry(const Gemm& p) { return (p.m + block_rows - 1) / block_rows; }

/// Elements that `align` bytes are, of an operand whose rows must start at multiples of that.
int64_t unit_of(int64_t align, Type type) { return std::max<int64_t>(1, align / size_of(type)); }

/// The smallest leading dimension that is larger than the columns and meets the alignment, but no stricter
/// one.
Array padded_shape(int64_t rows, int64_t columns, int64_t batch, int64_t unit) {
  int64_t ld = (columns / unit + 1) * unit;
  if (ld / unit % 2 == 0) ld += unit;
  return shape_of(rows, columns, ld, batch, unit);
}

template <typename T>
Memory upload(const std::vector<T>& data) {
  Memory memory(data.size() * sizeof(T));
  check(driver()->cuMemcpyHtoD(memory.address(), data.data(), data.size() * sizeof(T)),
        "copying to the device");
  return memory;
}

struct Guard {
  int64_t zone;
  bool padded;
  GuardedArray matrix(Type type, int64_t rows, int64_t columns, int64_t batch, int64_t align) const {
    if (!padded) return GuardedArray(type, shape_of(rows, columns, columns, batch, 0), 0, zone);
    const int64_t unit = unit_of(align, type);
    return GuardedArray(type, padded_shape(rows, columns, batch, unit), unit * size_of(type), zone);
  }
  GuardedArray vector(Type type, int64_t size) const {
    return GuardedArray(type, shape_of(1, size, size, 1, 0), padded ? size_of(type) : 0, zone);
  }
};

/// Whether the epilogue reads one, which may be D.
bool has_matrix(const Gemm& p) {
  return std::any_of(p.epilogue.begin(), p.epilogue.end(), [&](EpilogueOp op) {
    const auto operands = operands_of(op, p);
    return !operands.empty() && operands[0].is_matrix();
  });
}

/// Whether calls of it may disturb each other.
bool meets_others(const Kernel& k) {
  return k.workspace > 0 ||
         std::any_of(k.launches.begin(), k.launches.end(), [](const Launch& l) { return l.dependent; });
}

} // namespace

std::vector<CallCase> call_cases(const Gemm& p, const CheckBudget& budget) {
  const bool integer = p.scale_type() == Type::i32;
  const double alpha = integer ? 3 : 1.5, beta = integer ? -2 : -0.5;
  std::vector<CallCase> cases = {{"dense", false, 1, 0, CallCase::absent}};
  if (p.flops() <= budget.all_cases) {
    cases.push_back({"in a row", false, 1, 0, CallCase::absent, false, CallCase::none, true});
    cases.push_back({"strided", true, alpha, 0, CallCase::separate});
    cases.push_back({"alpha and beta in place", true, alpha, beta, CallCase::in_place});
    if (has_matrix(p)) cases.push_back({"operands in place", true, 1, 0, CallCase::absent, true});
    if (p.batch > 1 && p.flops() <= budget.broadcast) {
      cases.push_back({"A broadcast", true, 1, 0, CallCase::absent, false, CallCase::a});
      cases.push_back({"B broadcast", true, 1, 0, CallCase::absent, false, CallCase::b});
    }
  }
  cases.push_back({"alpha and beta", true, alpha, beta, CallCase::separate});
  if (!p.groups) return cases;
  for (CallCase& c : cases)
    if (c.padded) c.sharing = c.c == CallCase::separate && c.beta == 0 ? Sharing::one : Sharing::skewed;
  cases.push_back({"sparse groups", true, alpha, beta, CallCase::separate});
  cases.back().sharing = Sharing::sparse;
  return cases;
}

std::vector<int64_t> checked_blocks(const Gemm& p, uint64_t seed, const CheckBudget& budget) {
  const int64_t all = blocks_per_entry(p) * p.batch;
  std::vector<int64_t> blocks;
  if (p.flops() <= budget.full && double(p.m * p.batch) * double(p.n) <= double(kFullElements)) {
    for (int64_t i = 0; i < all; ++i) blocks.push_back(i);
    return blocks;
  }
  const double block_elements = double(block_rows) * double(p.n);
  const double most =
      std::min(budget.sample / (2 * block_elements * double(p.k)), double(kFullElements) / block_elements);
  blocks = {0, all - 1};
  for (int64_t i = 0; i < int64_t(most) - 2; ++i)
    blocks.push_back(std::min(all - 1, int64_t((uniform(seed, uint64_t(i)) + 1) / 2 * double(all))));
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

/// Every buffer of one call, and what it must hold afterwards.
struct Verifier::Operands {
  struct Input {
    const char* name;
    GuardedArray array;
    Values values;
    bool poisoned = false; ///< holds canaries only
  };
  std::vector<Input> inputs;
  std::vector<std::unique_ptr<GuardedArray>> outputs; ///< D, then the workspace if there is one
  Memory reference_c; ///< the values of C, which D replaces when it is in place
  CallOperands call;
  EpilogueParameters epilogue;

  Operands(const Kernel&, const CallCase&, const Toolbox&, uint64_t seed, int64_t zone);
  const GuardedArray& d() const { return *outputs.front(); }
  int checks() const { return 2 * int(inputs.size()) + int(outputs.size()); }

private:
  const Guard guard;
  Array add(const char* name, GuardedArray array, const Values& v, const Toolbox& tools) {
    array.poison(tools);
    tools.fill(array.array(), v);
    inputs.push_back({name, std::move(array), v});
    return inputs.back().array.array();
  }
  void add_offsets(const Gemm&, Sharing, const Toolbox&, uint64_t seed);
  void add_step(EpilogueOp, const Kernel&, const CallCase&, const Toolbox&, uint64_t seed);
  void add_c(const Kernel&, const CallCase&, const Toolbox&, uint64_t seed);
};

Verifier::Operands::Operands(const Kernel& k, const CallCase& c, const Toolbox& tools, uint64_t seed,
                             int64_t zone)
    : guard{zone, c.padded} {
  const Gemm& p = k.problem.gemm();
  const Scalars s = scalars_of(p);
  inputs.reserve(4 + epilogue_op_count);
  outputs.push_back(std::make_unique<GuardedArray>(guard.matrix(p.d, p.m, p.n, p.batch, k.align_d)));
  d().poison(tools);
  call.d = d().array();
  if (k.workspace > 0) {
    outputs.push_back(
        std::make_unique<GuardedArray>(Type::i8, shape_of(1, k.workspace, k.workspace, 1, 0), 0, zone));
    outputs.back()->poison(tools);
    call.workspace = outputs.back()->data();
  }
  const int64_t a_batch = c.broadcast == CallCase::a ? 1 : p.batch,
                b_batch = c.broadcast == CallCase::b ? 1 : p.b_matrices();
  call.a = add("A", guard.matrix(p.a, p.a_rows(), p.a_columns(), a_batch, k.align_a),
               values_of(p, Operand::a, seed), tools);
  call.b = add("B", guard.matrix(p.b, p.b_rows(), p.b_columns(), b_batch, k.align_b),
               values_of(p, Operand::b, seed), tools);
  call.alpha = epilogue.alpha = c.alpha * s.unit_alpha;
  call.beta = epilogue.beta = c.beta;
  call.clamp_low = epilogue.clamp_low = s.clamp_low;
  call.clamp_high = epilogue.clamp_high = s.clamp_high;
  if (p.gate) epilogue.gate = int32_t(*p.gate);
  for (EpilogueOp op : p.epilogue) add_step(op, k, c, tools, seed);
  if (p.groups) add_offsets(p, c.sharing, tools, seed);
  add_c(k, c, tools, seed);
}

void Verifier::Operands::add_offsets(const Gemm& p, Sharing sharing, const Toolbox& tools, uint64_t seed) {
  call.in_groups = group_offsets(p, sharing, seed);
  const size_t bytes = call.in_groups.size() * sizeof(int32_t);
  inputs.push_back({"offsets", guard.vector(Type::i32, p.groups + 1), {}, true});
  inputs.back().array.poison(tools);
  call.offsets = inputs.back().array.data();
  tools.context().synchronize(); // the copy does not wait for the stream
  check(driver()->cuMemcpyHtoD(call.offsets, call.in_groups.data(), bytes), "copying to the device");
}

void Verifier::Operands::add_step(EpilogueOp op, const Kernel& k, const CallCase& c, const Toolbox& tools,
                                  uint64_t seed) {
  const Gemm& p = k.problem.gemm();
  Array reference;
  for (const deepgen::Operand& x : operands_of(op, p)) {
    if (!x.in_memory()) continue;
    // Where several are D, they have the same values.
    const bool in_d = x.is_matrix() && c.reuse;
    const Values v = values_of(p, in_d ? EpilogueOp::multiply : op, seed);
    reference = spread(add(x.name,
                           x.is_matrix() ? guard.matrix(x.type, x.rows, x.columns, x.entries, k.align_d)
                                         : guard.vector(x.type, x.count()),
                           v, tools),
                       x);
    call.step(op) = reference;
    if (!in_d || x.type != p.d) continue;
    tools.fill(call.d, v);
    call.step(op) = call.d;
  }
  cuda::add_step(epilogue, op, reference);
}

void Verifier::Operands::add_c(const Kernel& k, const CallCase& c, const Toolbox& tools, uint64_t seed) {
  const Gemm& p = k.problem.gemm();
  if (c.c == CallCase::absent) {
    call.c.ld = call.d.ld, call.c.stride = call.d.stride;
    return;
  }
  const Values v = values_of(p, Operand::c, seed);
  call.c = epilogue.c = add("C", guard.matrix(p.d, p.m, p.n, p.batch, k.align_d), v, tools);
  if (c.beta == 0) inputs.back().array.poison(tools), inputs.back().poisoned = true;
  if (c.c == CallCase::in_place) {
    tools.fill(call.d, v);
    call.c = call.d;
  }
}

Verifier::Verifier(const Context& context, const Toolbox& tools, uint64_t seed, int64_t zone)
    : context_(context), tools_(tools), seed_(seed), zone_(zone) {}

std::vector<Verifier::Part> Verifier::parts_of(const Gemm& p, const CallCase& c, uint64_t seed) {
  if (!p.groups) return {{0, 0, p.m}};
  const std::vector<int32_t> offsets = group_offsets(p, c.sharing, seed);
  std::vector<Part> parts;
  for (size_t g = 0; g + 1 < offsets.size(); ++g)
    if (offsets[g] < offsets[g + 1]) parts.push_back({int64_t(g), offsets[g], offsets[g + 1] - offsets[g]});
  return parts;
}

const std::vector<Verifier::Product>& Verifier::products_of(const Gemm& problem, const CallCase& c) {
  const Gemm p = problem.ungated();
  std::string key = problem.key() + (c.broadcast == CallCase::a   ? " a"
                                     : c.broadcast == CallCase::b ? " b"
                                                                  : "");
  if (p.groups) key += " " + std::to_string(int(c.sharing));
  if (auto found = products_.find(key); found != products_.end()) return found->second;
  if (products_.size() >= kMostProducts) products_.clear();
  const bool a_one = c.broadcast == CallCase::a, b_one = c.broadcast == CallCase::b;
  const Guard dense{zone_, false};
  const GuardedArray a = dense.matrix(p.a, p.a_rows(), p.a_columns(), a_one ? 1 : p.batch, 0),
                     b = dense.matrix(p.b, p.b_rows(), p.b_columns(), b_one ? 1 : p.b_matrices(), 0);
  tools_.fill(a.array(), values_of(p, Operand::a, seed_));
  tools_.fill(b.array(), values_of(p, Operand::b, seed_));
  std::vector<Product> products;
  const std::vector<Part> parts = parts_of(p, c, seed_);
  for (const Part& part : parts)
    products.push_back(multiply(problem, part, int64_t(parts.size()), a.array(), b.array()));
  context_.synchronize();
  return products_.emplace(key, std::move(products)).first->second;
}

/// Of `parts` that share the budget.
Verifier::Product Verifier::multiply(const Gemm& problem, const Part& part, int64_t parts, const Array& a,
                                     const Array& b) const {
  Gemm p = group_problem(problem, part.rows);
  CheckBudget budget = tools_.budget();
  budget.full /= double(parts), budget.sample /= double(parts);
  Product x;
  x.part = part;
  x.blocks = checked_blocks(p, seed_, budget);
  p = p.ungated();
  const size_t elements = x.blocks.size() * size_t(block_rows * p.n);
  x.block_list = upload(x.blocks);
  x.value = Memory(elements * sizeof(double)), x.magnitude = Memory(elements * sizeof(float));
  ProductParameters q;
  q.a_type = int32_t(p.a), q.b_type = int32_t(p.b), q.m = p.m, q.n = p.n, q.k = p.k;
  q.a_row = p.a_transposed() ? 1 : p.k, q.a_k = p.a_transposed() ? p.m : 1, q.a_entry = a.stride;
  q.b_column = p.b_transposed() ? p.k : 1, q.b_k = p.b_transposed() ? 1 : p.n, q.b_entry = b.stride;
  q.a = a.data + uint64_t(part.row * q.a_row * size_of(p.a));
  q.b = b.data + uint64_t(part.group * b.stride * size_of(p.b));
  q.blocks = x.block_list.address(), q.product = x.value.address(), q.magnitude = x.magnitude.address();
  tools_.product(q, int64_t(x.blocks.size()));
  return x;
}

Verdict Verifier::verify(const Kernel& kernel, const std::function<void(const std::string&)>& before) {
  before(loading);
  const LoadedKernel loaded(kernel, context_);
  const Gemm& p = kernel.problem.gemm();
  std::vector<CallCase> cases = call_cases(p, tools_.budget());
  std::erase_if(cases, [&](const CallCase& c) { return c.in_a_row && !meets_others(kernel); });
  return verify_in_turn(kernel.problem, cases, &CallCase::name, [&](const CallCase& c) {
    before(reference);
    products_of(p, c);
    before(c.name);
    return verify_case(loaded, kernel, c);
  });
}

Verdict Verifier::verify_equal_rows(const Kernel& kernel,
                                    const std::function<void(const std::string&)>& before) {
  const std::string key = kernel.problem.key();
  if (!equal_rows_.count(key) && equal_rows_.size() >= kMostEqualRows) equal_rows_.clear();
  std::unique_ptr<EqualRowCalls>& calls = equal_rows_[key];
  if (!calls) {
    before(reference);
    calls = std::make_unique<EqualRowCalls>(kernel.problem.gemm(), tools_, seed_);
  }
  return calls->verify(kernel, before);
}

Verdict Verifier::verify_case(const LoadedKernel& loaded, const Kernel& kernel, const CallCase& c) {
  if (!c.in_a_row)
    return verify_call(kernel, [&](const CallOperands& x, Stream stream) { loaded.enqueue(x, stream); }, c);
  const Gemm& p = kernel.problem.gemm();
  const Guard dense{zone_, false};
  const GuardedArray a = dense.matrix(p.a, p.a_rows(), p.a_columns(), p.batch, 0),
                     d = dense.matrix(p.d, p.m, p.n, p.batch, 0);
  tools_.fill(a.array(), values_of(p, Operand::a, seed_ + 1));
  return verify_call(
      kernel,
      [&](const CallOperands& x, Stream stream) {
        CallOperands other = x;
        other.a = a.array(), other.d = d.array();
        loaded.enqueue(other, stream), loaded.enqueue(x, stream), loaded.enqueue(other, stream);
      },
      c);
}

/// What holds the part's rows against the reference.
CompareParameters Verifier::comparison(const Kernel& kernel, const Operands& x, const Product& product) {
  const Gemm& p = kernel.problem.gemm();
  CompareParameters q;
  q.d = x.d().array(), q.block_count = int64_t(product.blocks.size());
  q.blocks = product.block_list.address(), q.product = product.value.address(),
  q.magnitude = product.magnitude.address();
  q.epilogue = x.epilogue, q.tolerance = tolerance_of(p, kernel.target);
  if (!p.groups) return q;
  const auto& [group, row, rows] = product.part;
  EpilogueParameters& e = q.epilogue;
  for (Array* matrix : {&q.d, &e.c}) take_rows(*matrix, row, rows);
  for (int32_t i = 0; i < e.step_count; ++i)
    take_group(e.operands[i], EpilogueOp(e.steps[i]), p, group, row, rows);
  return q;
}

Verdict Verifier::verify_call(const Kernel& kernel, const Enqueue& enqueue, const CallCase& c,
                              double rounding) {
  const Gemm& p = kernel.problem.gemm();
  const std::vector<Product>& products = products_of(p, c);
  const Operands x(kernel, c, tools_, seed_, zone_);
  std::vector<Finding> findings(size_t(x.checks()) + 2 * products.size());
  const Memory results = upload(findings);
  const auto at = [&](size_t i) { return results.address() + i * sizeof(Finding); };

  enqueue(x.call, context_.stream());
  context_.synchronize(); // what the kernel did wrong shows here, before anything else is enqueued

  std::vector<CompareParameters> compared;
  size_t next = 0;
  for (const Product& product : products) {
    CompareParameters& q = compared.emplace_back(comparison(kernel, x, product));
    q.result = at(next),
    q.tolerance.sum += rounding; // no sum is larger than the product of its factors' norms
    tools_.compare(q);
    const int64_t all = (q.d.rows + block_rows - 1) / block_rows * p.batch;
    if (q.block_count < all) tools_.check_written(q.d, at(next + 1));
    next += 2;
  }
  const size_t first_check = next;
  for (const auto& output : x.outputs) {
    const bool is_d = output == x.outputs.front();
    // Rows of no group are nobody's: there is nothing to write.
    if (is_d && p.groups)
      output->check_gaps(tools_, at(next++), x.call.in_groups.front(), x.call.in_groups.back());
    else
      output->check_gaps(tools_, at(next++));
  }
  for (const Operands::Input& input : x.inputs) {
    input.array.check_gaps(tools_, at(next++));
    if (!input.poisoned) tools_.check_values(input.array.array(), input.values, at(next));
    ++next;
  }
  context_.synchronize();
  check(driver()->cuMemcpyDtoH(findings.data(), results.address(), findings.size() * sizeof(Finding)),
        "reading the findings");

  next = first_check;
  for (size_t i = 0; i < x.outputs.size(); ++i, ++next)
    if (findings[next].count)
      return {"out_of_bounds",
              std::string(i == 0 ? "D" : "the workspace") + " written " +
                  x.outputs[i]->place_of_damage(findings[next].place),
              0};
  for (const Operands::Input& input : x.inputs) {
    if (findings[next].count)
      return {"out_of_bounds",
              std::string(input.name) + " written " + input.array.place_of_damage(findings[next].place), 0};
    if (findings[next + 1].count)
      return {"out_of_bounds",
              std::string(input.name) + " was changed, first at element " +
                  std::to_string(findings[next + 1].place),
              0};
    next += 2;
  }
  Verdict verdict{"ok", "", 0};
  for (size_t i = 0; i < products.size(); ++i) {
    const Finding *values = &findings[2 * i], *unwritten = values + 1;
    verdict.error = std::max(verdict.error, double(std::bit_cast<float>(values->worst)));
    if (verdict.status != "ok" || (!values->count && !unwritten->count)) continue;
    verdict.status = "wrong";
    verdict.detail =
        describe(kernel, compared[i], products[i].part, values->count ? *values : *unwritten, !values->count);
  }
  return verdict;
}

std::string Verifier::describe(const Kernel& kernel, const CompareParameters& compared, const Part& part,
                               const Finding& f, bool unwritten) {
  const Gemm& p = kernel.problem.gemm();
  const auto place = int64_t(f.place);
  const Array& d = compared.d;
  const std::string where = "row " + std::to_string(part.row + place / p.n % d.rows) + ", column " +
                            std::to_string(place % p.n) +
                            (p.groups ? ", of group " + std::to_string(part.group) : "") +
                            (p.batch > 1 ? ", batch entry " + std::to_string(place / p.n / d.rows) : "") +
                            " (" + std::to_string(f.count) + " elements)";
  unsigned char bits[8];
  const int64_t bytes = size_of(p.d), entry = place / p.n / d.rows, row = place / p.n % d.rows,
                column = place % p.n;
  const Address at = d.data + uint64_t((entry * d.stride + row * d.ld + column) * bytes);
  check(driver()->cuMemcpyDtoH(bits, at, size_t(bytes)), "reading an element");
  const bool untouched = std::all_of(bits, bits + bytes, [](unsigned char b) { return b == canary_byte; });
  if (unwritten || (untouched && p.d != Type::i8 && p.d != Type::i32)) return "not written: " + where;
  Finding one;
  const Memory result = upload(std::vector<Finding>{one});
  CompareParameters q = compared;
  q.place = place, q.result = result.address();
  tools_.compare(q);
  context_.synchronize();
  check(driver()->cuMemcpyDtoH(&one, result.address(), sizeof one), "reading a finding");
  char text[160];
  std::snprintf(text, sizeof text, " is %.9g, expected %.9g +- %.3g", one.found, one.expected, one.tolerance);
  return where + text;
}

} // namespace deepgen::cuda
