#include "measure/gpu/cuda_ring.h"

#include "base/problem/signature.h"
#include "base/text/error.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/toolbox/cuda_values.h"

#include <algorithm>
#include <functional>

namespace deepgen::cuda {
namespace {

constexpr int64_t kRingAlign = 1024;
constexpr int64_t kSharings = 8; ///< of rows among groups, that differ

int64_t aligned(int64_t bytes) { return (bytes + kRingAlign - 1) / kRingAlign * kRingAlign; }

Array matrix(Type type, int64_t rows, int64_t columns, int64_t batch) {
  Array x = shape_of(rows, columns, columns, batch, 0);
  x.type = int32_t(type);
  return x;
}

int64_t bytes_of(const Array& x) { return x.rows * x.columns * x.batch * size_of(Type(x.type)); }

/// Of the sets that take turns, what is not the same in all.
int64_t rotating_bytes(const Gemm& p, Caches caches) {
  return caches == Caches::weights_cold ? bytes_of(matrix(p.b, p.b_rows(), p.b_columns(), p.b_matrices()))
                                        : set_bytes(p);
}

} // namespace

int64_t set_bytes(const Gemm& p) {
  int64_t element = size_of(p.d);
  for (EpilogueOp op : p.epilogue)
    for (const deepgen::Operand& x : operands_of(op, p)) element += x.is_matrix() ? size_of(x.type) : 0;
  return p.batch * (p.m * p.k * size_of(p.a) + p.m * p.n * element) +
         p.b_matrices() * p.k * p.sum_columns() * size_of(p.b);
}

namespace {

int64_t bytes_to_read(const Gemm& p) {
  return p.k * std::max(p.batch * p.m * size_of(p.a), p.b_matrices() * p.sum_columns() * size_of(p.b));
}
int64_t bytes_to_read(const Rows& p) { return int64_t(p.bytes()); }
int64_t bytes_to_read(const Attention& p) { return int64_t(p.bytes()); }

std::unique_ptr<const RingSets> sets_of(const Gemm& p, const RingSpace& space) {
  return std::make_unique<const GemmSets>(p, space);
}
std::unique_ptr<const RingSets> sets_of(const Rows& p, const RingSpace& space) {
  return std::make_unique<const RowsSets>(p, space);
}
std::unique_ptr<const RingSets> sets_of(const Attention& p, const RingSpace& space) {
  return std::make_unique<const AttentionSets>(p, space);
}

} // namespace

int64_t read_bytes(const Problem& problem) {
  const int64_t bytes = std::visit([](const auto& p) { return bytes_to_read(p); }, problem.which());
  return (bytes + 15) / 16 * 16; // words in which it is read
}

std::unique_ptr<const RingSets> make_sets(const Problem& problem, const RingSpace& space) {
  return std::visit([&](const auto& p) { return sets_of(p, space); }, problem.which());
}

int64_t GemmSets::kinds() const { return problem_.groups ? timed_sharings : 1; }

GemmSets::GemmSets(const Gemm& p, const RingSpace& space) : problem_(p) {
  const int64_t bytes = rotating_bytes(p, space.caches);
  const int64_t each = space.caches == Caches::cold ? space.workspace : 0;
  sets_.resize(size_t(space.caches == Caches::warm ? kinds()
                                                   : ring_sets(bytes, each, space.cache, space.memory,
                                                               kinds(), ring_places(bytes, p.flops()))));
  fill(space);
}

void GemmSets::fill(const RingSpace& space) {
  const Gemm& p = problem_;
  const Toolbox& tools = space.tools;
  const uint64_t seed = space.seed;
  const int64_t workspace = space.workspace;
  const Scalars s = scalars_of(p);
  const auto sets = int64_t(sets_.size());
  const bool cold = space.caches == Caches::cold;
  const auto ring = [&](Array shape, const auto& place, auto what) {
    const bool is_b = &place(sets_[0]) == &sets_[0].b;
    const bool rotates = cold || (space.caches == Caches::weights_cold && is_b);
    const int64_t pitch = rotates ? aligned(bytes_of(shape)) : 0;
    memory_.emplace_back(size_t(rotates ? pitch * sets : bytes_of(shape)));
    for (int64_t i = 0; i < sets; ++i) {
      shape.data = memory_.back().address() + uint64_t(i * pitch);
      place(sets_[size_t(i)]) = shape;
      if (i == 0 || rotates) tools.fill(shape, values_of(p, what, seed + uint64_t(i)));
    }
  };
  ring(matrix(p.a, p.a_rows(), p.a_columns(), p.batch), std::mem_fn(&CallOperands::a), Operand::a);
  ring(matrix(p.b, p.b_rows(), p.b_columns(), p.b_matrices()), std::mem_fn(&CallOperands::b), Operand::b);
  ring(matrix(p.d, p.m, p.n, p.batch), std::mem_fn(&CallOperands::d), Operand::c);
  CallOperands shared;
  for (EpilogueOp op : p.epilogue)
    for (const deepgen::Operand& x : operands_of(op, p)) {
      const auto place = [op](CallOperands& call) -> Array& { return call.step(op); };
      if (x.is_matrix())
        ring(matrix(x.type, x.rows, x.columns, x.entries), place, op);
      else if (x.in_memory())
        place(shared) = spread(vector(tools, x, values_of(p, op, seed)), x);
    }
  const int64_t pitch = cold ? aligned(workspace) : 0;
  memory_.emplace_back(size_t(cold ? pitch * sets : workspace));
  for (int64_t i = 0; i < sets; ++i) {
    CallOperands& x = sets_[size_t(i)];
    for (EpilogueOp op : p.epilogue)
      if (shared.step(op).data) x.step(op) = shared.step(op);
    x.c.ld = x.d.ld, x.c.stride = x.d.stride;
    x.workspace = workspace ? memory_[memory_.size() - 1].address() + uint64_t(i * pitch) : 0;
    x.alpha = s.unit_alpha, x.clamp_low = s.clamp_low, x.clamp_high = s.clamp_high;
    if (p.groups) share_rows(x, timed_sharing(size_t(i)), seed + uint64_t(i % kSharings));
  }
}

void GemmSets::share_rows(CallOperands& x, Sharing sharing, uint64_t seed) {
  x.in_groups = group_offsets(problem_, sharing, seed);
  const size_t bytes = x.in_groups.size() * sizeof(int32_t);
  memory_.emplace(memory_.begin(), bytes); // in front, as below
  x.offsets = memory_.front().address();
  check(driver()->cuMemcpyHtoD(x.offsets, x.in_groups.data(), bytes), "copying the groups' offsets");
}

Array GemmSets::vector(const Toolbox& tools, const deepgen::Operand& operand, const Values& v) {
  Array x = matrix(operand.type, 1, operand.count(), 1);
  // In front: fill() takes the workspace from the end.
  memory_.emplace(memory_.begin(), size_t(bytes_of(x)));
  x.data = memory_.front().address();
  tools.fill(x, v);
  return x;
}

RowsSets::RowsSets(const Rows& p, const RingSpace& space) {
  const auto bytes = int64_t(p.bytes());
  sets_.resize(size_t(space.caches == Caches::warm ? 1
                                                   : ring_sets(bytes, 0, space.cache, space.memory, 1,
                                                               ring_places(bytes, p.flops()))));
  const auto place = [&](const deepgen::Operand& x,
                         const std::function<void(RowsOperands&, const Array&)>& set) {
    Array shape = matrix(x.type, x.rows, x.columns, 1);
    const int64_t pitch = x.shape == deepgen::Operand::Shape::per_column ? 0 : aligned(bytes_of(shape));
    memory_.emplace_back(size_t(std::max(bytes_of(shape), pitch * count())));
    for (int64_t i = 0; i < count(); ++i) {
      shape.data = memory_.back().address() + uint64_t(i * pitch);
      if (x.role == deepgen::Operand::Role::in && (i == 0 || pitch))
        space.tools.fill(shape, rows_values(x.name, space.seed + uint64_t(i)));
      set(sets_[size_t(i)], shape);
    }
  };
  for (const deepgen::Operand& x : signature(p))
    if (x.in_memory())
      place(x, [&](RowsOperands& call, const Array& array) { set_operand(call, x.name, array); });
  for (RowsOperands& call : sets_) call.epsilon = rows_epsilon;
}

std::vector<Address> AttentionSets::place(const RingSpace& space, const deepgen::Operand& x,
                                          int64_t elements) {
  Array shape = matrix(x.type, 1, elements, 1);
  const int64_t pitch = x.rows_by ? aligned(bytes_of(shape)) : 0; // a sink is the same for all
  memory_.emplace_back(size_t(std::max(bytes_of(shape), pitch * count())));
  std::vector<Address> out;
  for (int64_t i = 0; i < count(); ++i) {
    shape.data = memory_.back().address() + uint64_t(i * pitch);
    if (x.role == deepgen::Operand::Role::in && (i == 0 || pitch))
      space.tools.fill(shape, attention_values(x.name, space.seed + uint64_t(i)));
    out.push_back(shape.data);
  }
  return out;
}

AttentionSets::AttentionSets(const Attention& p, const RingSpace& space) : problem_(p) {
  Attention whole = p; // keys that no query sees have their place
  whole.at_left = whole.at_right = -1;
  const auto bytes = int64_t(p.bytes()), unseen = int64_t(whole.bytes()) - bytes;
  sets_.resize(size_t(space.caches == Caches::warm ? 1
                                                   : ring_sets(bytes, unseen, space.cache, space.memory, 1,
                                                               ring_places(bytes, p.flops()))));
  const AttentionShape shape = tuned_shape(p);
  const AttentionPages pages(p, shape, space.seed);
  const TokenLayout q(shape, {}, p.at_queries, p.heads, p.head_dim),
      key(shape, pages, p.kv_heads, p.head_dim), value(shape, pages, p.kv_heads, p.value_dim),
      out(shape, {}, p.at_queries, p.heads, p.value_dim);
  AttentionCall call;
  call.q_layout = &q, call.key_layout = &key, call.value_layout = &value, call.out_layout = &out;
  const BiasLayout bias(p, shape);
  call.bias_layout = &bias, call.shape = &shape;
  if (p.paged()) { // in any order, as in a server that has run for long
    const size_t bytes = pages.table.size() * sizeof(int32_t);
    memory_.emplace_back(bytes);
    check(driver()->cuMemcpyHtoD(memory_.back().address(), pages.table.data(), bytes), "copying the pages");
    call.page_table = reinterpret_cast<const int32_t*>(uintptr_t(memory_.back().address()));
  }
  if (space.workspace) { // in turn, on one stream
    memory_.emplace_back(size_t(space.workspace));
    call.workspace = reinterpret_cast<void*>(uintptr_t(memory_.back().address()));
  }
  for (SlotValues& set : sets_) set = values_of(p, call);
  const std::pair<deepgen_arg, const TokenLayout*> layouts[] = {
      {DEEPGEN_ARG_Q, &q}, {DEEPGEN_ARG_KEY, &key}, {DEEPGEN_ARG_VALUE, &value}, {DEEPGEN_ARG_OUT, &out}};
  size_t next = 0;
  for (const deepgen::Operand& x : signature(p)) { // the first four are those
    const bool tokens = next < std::size(layouts);
    const std::string name = x.name;
    if (!tokens && name != "lse" && name != "sink" && name != "bias") continue;
    const deepgen_arg slot = tokens           ? layouts[next].first
                             : name == "lse"  ? DEEPGEN_ARG_LSE
                             : name == "bias" ? DEEPGEN_ARG_BIAS
                                              : DEEPGEN_ARG_SINK;
    const int64_t elements = tokens           ? layouts[next].second->rows() * layouts[next].second->columns()
                             : name == "lse"  ? p.at_batch * p.heads * p.at_queries
                             : name == "bias" ? bias.rows() * bias.columns()
                                              : p.heads;
    const std::vector<Address> all = place(space, x, elements);
    for (size_t i = 0; i < all.size(); ++i) sets_[i][slot] = all[i];
    next += tokens;
  }
}

} // namespace deepgen::cuda
