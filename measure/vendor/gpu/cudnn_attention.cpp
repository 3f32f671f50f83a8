#include "measure/vendor/gpu/cudnn_attention.h"

#include "measure/values/attention/attention_truth.h"
#include "measure/vendor/gpu/vendor_product.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

namespace deepgen::cuda {
namespace {

constexpr int64_t kAlignment = 16;  ///< bytes, of operands; cudnn-frontend has the same
constexpr int64_t kMostKnobs = 128; ///< of a config; 9.6 has 37 kinds

/// Behind a config's text: of e4m3 there are graphs with several types of out.
std::string out_text(const Attention& p, Type out) {
  return p.q == Type::e4m3 ? ", out of " + to_string(out) : "";
}

} // namespace

CudnnAttention::CudnnAttention(const Attention& p, const SlotValues& call, Type out)
    : library_(CudnnLibrary::of_process()), p_(p), out_(out) {
  static void* const one = [this] { // for all graphs of the process
    void* handle = nullptr;
    library_.check(library_.create(&handle), "cudnnCreate");
    return handle;
  }();
  handle_ = one;
  build(call);
  std::vector<void*> operations;
  for (const CudnnDescriptor& x : operations_) operations.push_back(x.get());
  CudnnDescriptor& graph = graph_.emplace_back(library_, CudnnKind::graph);
  graph.set(CudnnAttribute::graph_handle, CudnnElement::handle, handle_);
  graph.set(CudnnAttribute::graph_operations, CudnnElement::descriptor, int64_t(operations.size()),
            operations.data());
  graph.finalize();
  for (CudnnHeuristic mode : {CudnnHeuristic::a, CudnnHeuristic::fallback}) try {
      ask(mode);
    } catch (const DriverError& e) { // the other mode may have some
      note_none(e.what());
    }
}

void CudnnAttention::note_none(const std::string& why) {
  if (why_none_ != why) why_none_ += (why_none_.empty() || why.empty() ? "" : "; ") + why;
}

void CudnnAttention::ask(CudnnHeuristic mode) {
  CudnnDescriptor heuristic(library_, CudnnKind::heuristic);
  heuristic.set(CudnnAttribute::heuristic_graph, graph_.front());
  heuristic.set(CudnnAttribute::heuristic_mode, CudnnElement::heuristic_mode, int32_t(mode));
  heuristic.finalize();
  const auto results = CudnnAttribute::heuristic_results;
  const int64_t asked = heuristic.read(results, CudnnElement::descriptor, 0, nullptr);
  std::vector<CudnnDescriptor> found;
  std::vector<void*> raw;
  for (int64_t i = 0; i < asked; ++i)
    raw.push_back(found.emplace_back(library_, CudnnKind::engine_config).get());
  const int64_t got = asked ? heuristic.read(results, CudnnElement::descriptor, asked, raw.data()) : 0;
  if (!got) return note_none(library_.last_words()); // all that there are do not support the graph
  for (int64_t i = 0; i < std::min(got, asked); ++i) {
    std::string text = text_of(found[size_t(i)]);
    if (std::find(texts_.begin(), texts_.end(), text) != texts_.end()) continue; // of mode A, too
    texts_.push_back(std::move(text)), configs_.push_back(std::move(found[size_t(i)]));
  }
}

std::string CudnnAttention::text_of(const CudnnDescriptor& config) const {
  const CudnnDescriptor engine(library_, CudnnKind::engine);
  void* raw = engine.get();
  int64_t index = 0;
  config.read(CudnnAttribute::config_engine, CudnnElement::descriptor, 1, &raw);
  engine.read(CudnnAttribute::engine_index, CudnnElement::int64, 1, &index);
  std::string text = "engine " + std::to_string(index);
  std::vector<CudnnDescriptor> knobs;
  std::vector<void*> raw_knobs;
  for (int64_t i = 0; i < kMostKnobs; ++i)
    raw_knobs.push_back(knobs.emplace_back(library_, CudnnKind::knob_choice).get());
  const int64_t count =
      config.read(CudnnAttribute::config_knobs, CudnnElement::descriptor, kMostKnobs, raw_knobs.data());
  for (int64_t i = 0; i < std::min(count, kMostKnobs); ++i) {
    int32_t kind = 0;
    int64_t value = 0;
    knobs[size_t(i)].read(CudnnAttribute::knob_type, CudnnElement::knob_type, 1, &kind);
    knobs[size_t(i)].read(CudnnAttribute::knob_value, CudnnElement::int64, 1, &value);
    text += (i ? ", " : ", knobs ") + std::to_string(kind) + "=" + std::to_string(value);
  }
  return text + out_text(p_, out_);
}

CudnnAttention::Plan CudnnAttention::plan(size_t config) const {
  Plan plan{CudnnDescriptor(library_, CudnnKind::plan), 0};
  plan.descriptor.set(CudnnAttribute::plan_handle, CudnnElement::handle, handle_);
  plan.descriptor.set(CudnnAttribute::plan_config, configs_[config]);
  plan.descriptor.finalize();
  int64_t bytes = 0;
  plan.descriptor.read(CudnnAttribute::plan_workspace_size, CudnnElement::int64, 1, &bytes);
  plan.workspace = uint64_t(std::max<int64_t>(0, bytes));
  return plan;
}

void CudnnAttention::enqueue(const Plan& plan, const SlotValues& operands, Address workspace,
                             Stream stream) const {
  std::vector<int64_t> uids;
  std::vector<const void*> pointers;
  for (const Operand& x : operands_)
    uids.push_back(x.uid), pointers.push_back(reinterpret_cast<const void*>(operands[x.slot]));
  for (const Scalar& x : scalars_) uids.push_back(x.uid), pointers.push_back(&x.bits);
  for (const Number& x : numbers_)
    uids.push_back(x.uid), pointers.push_back(reinterpret_cast<const void*>(x.memory.address()));
  CudnnDescriptor pack(library_, CudnnKind::variant_pack);
  pack.set(CudnnAttribute::pack_uids, CudnnElement::int64, int64_t(uids.size()), uids.data());
  pack.set(CudnnAttribute::pack_pointers, CudnnElement::pointer, int64_t(pointers.size()), pointers.data());
  pack.set(CudnnAttribute::pack_workspace, CudnnElement::pointer, reinterpret_cast<void*>(workspace));
  pack.finalize();
  library_.check(library_.set_stream(handle_, stream), "cudnnSetStream");
  library_.check(library_.execute(handle_, plan.descriptor.get(), pack.get()), "cudnnBackendExecute");
}

CudnnAttention::Tensor CudnnAttention::tensor(CudnnType type, const Sizes4& sizes, const Sizes4& strides,
                                              bool is_virtual, bool by_value) {
  CudnnDescriptor& t = tensors_.emplace_back(library_, CudnnKind::tensor);
  const auto rank = int64_t(sizes.size());
  t.set(CudnnAttribute::tensor_type, CudnnElement::data_type, int32_t(type));
  t.set(CudnnAttribute::tensor_dimensions, CudnnElement::int64, rank, sizes.data());
  t.set(CudnnAttribute::tensor_strides, CudnnElement::int64, rank, strides.data());
  t.set(CudnnAttribute::tensor_uid, CudnnElement::int64, int64_t(tensors_.size()));
  t.set(CudnnAttribute::tensor_alignment, CudnnElement::int64, kAlignment);
  if (is_virtual) t.set(CudnnAttribute::tensor_virtual, CudnnElement::boolean, true);
  if (by_value) t.set(CudnnAttribute::tensor_by_value, CudnnElement::boolean, true);
  t.finalize();
  return {tensors_.size() - 1, sizes};
}

CudnnAttention::Tensor CudnnAttention::operand(deepgen_arg slot, CudnnType type, const Sizes4& sizes,
                                               const Sizes4& strides) {
  const Tensor t = tensor(type, sizes, strides, false, false);
  operands_.push_back({int64_t(t.index) + 1, slot});
  return t;
}

CudnnAttention::Tensor CudnnAttention::between(CudnnType type, const Sizes4& s) {
  return tensor(type, s, {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}, true, false);
}

CudnnAttention::Tensor CudnnAttention::scalar(CudnnType type, uint32_t bits) {
  const Tensor t = tensor(type, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
  scalars_.push_back({int64_t(t.index) + 1, bits});
  return t;
}

CudnnAttention::Tensor CudnnAttention::number(float x) {
  return scalar(CudnnType::f32, std::bit_cast<uint32_t>(x));
}

CudnnAttention::Tensor CudnnAttention::product(const Tensor& a, const Tensor& b, const Tensor& c,
                                               CudnnAttribute of_keys) {
  CudnnDescriptor& how = descriptors_.emplace_back(library_, CudnnKind::matmul);
  how.set(CudnnAttribute::matmul_compute, CudnnElement::data_type, int32_t(CudnnType::f32));
  how.finalize();
  CudnnDescriptor& operation = operations_.emplace_back(library_, CudnnKind::matmul_operation);
  operation.set(CudnnAttribute::matmul_a, descriptor(a));
  operation.set(CudnnAttribute::matmul_b, descriptor(b));
  operation.set(CudnnAttribute::matmul_c, descriptor(c));
  operation.set(CudnnAttribute::matmul_descriptor, how);
  if (lengths_) {
    operation.set(CudnnAttribute::matmul_rows, descriptor(lengths_->queries));
    operation.set(of_keys, descriptor(lengths_->keys));
  }
  operation.finalize();
  return c;
}

CudnnAttention::Tensor CudnnAttention::pointwise(CudnnPointwise mode, CudnnType math, const Tensor& x,
                                                 const std::vector<Tensor>& others, const Tensor& y,
                                                 int64_t axis) {
  CudnnDescriptor& how = descriptors_.emplace_back(library_, CudnnKind::pointwise);
  how.set(CudnnAttribute::pointwise_mode, CudnnElement::pointwise_mode, int32_t(mode));
  how.set(CudnnAttribute::pointwise_math_prec, CudnnElement::data_type, int32_t(math));
  if (axis >= 0) how.set(CudnnAttribute::pointwise_axis, CudnnElement::int64, axis);
  how.finalize();
  CudnnDescriptor& operation = operations_.emplace_back(library_, CudnnKind::pointwise_operation);
  operation.set(CudnnAttribute::pointwise_descriptor, how);
  operation.set(CudnnAttribute::pointwise_x, descriptor(x));
  operation.set(CudnnAttribute::pointwise_y, descriptor(y));
  if (!others.empty()) operation.set(CudnnAttribute::pointwise_b, descriptor(others[0]));
  if (others.size() > 1) operation.set(CudnnAttribute::pointwise_t, descriptor(others[1]));
  for (CudnnAttribute alpha : {CudnnAttribute::pointwise_alpha1, CudnnAttribute::pointwise_alpha2})
    operation.set(alpha, CudnnElement::f32, 1.0f);
  operation.finalize();
  return y;
}

CudnnAttention::Tensor CudnnAttention::reduce(CudnnReduction what, const Tensor& x, const Tensor& y) {
  CudnnDescriptor& how = descriptors_.emplace_back(library_, CudnnKind::reduction);
  how.set(CudnnAttribute::reduction_compute, CudnnElement::data_type, int32_t(CudnnType::f32));
  how.set(CudnnAttribute::reduction_operator, CudnnElement::reduction_operator, int32_t(what));
  how.finalize();
  CudnnDescriptor& operation = operations_.emplace_back(library_, CudnnKind::reduction_operation);
  operation.set(CudnnAttribute::reduction_x, descriptor(x));
  operation.set(CudnnAttribute::reduction_y, descriptor(y));
  operation.set(CudnnAttribute::reduction_descriptor, how);
  operation.finalize();
  return y;
}

CudnnAttention::Tensor CudnnAttention::reduce_rows(CudnnReduction what, const Tensor& x) {
  return reduce(what, x, between(CudnnType::f32, {x.sizes[0], x.sizes[1], x.sizes[2], 1}));
}

/// With the logarithm of each row's sum, which is an output or virtual.
CudnnAttention::Tensor CudnnAttention::softmax(const Tensor& scores, const SlotValues& call) {
  const CudnnType f32 = CudnnType::f32;
  const auto like = [&](const Tensor& t) { return between(f32, t.sizes); };
  std::optional<Tensor> sink;
  if (p_.sink) sink = operand(DEEPGEN_ARG_SINK, f32, {1, p_.heads, 1, 1}, {p_.heads, 1, 1, 1});
  Tensor most = reduce_rows(CudnnReduction::max, scores);
  if (sink) most = pointwise(CudnnPointwise::max, f32, most, {*sink}, like(most));
  const Tensor less = pointwise(CudnnPointwise::sub, f32, scores, {most}, like(scores));
  const Tensor powers = pointwise(CudnnPointwise::exp, f32, less, {}, like(scores));
  Tensor sum;
  if (sink) {
    const Tensor its = pointwise(CudnnPointwise::sub, f32, *sink, {most}, like(most));
    const Tensor power = pointwise(CudnnPointwise::exp, f32, its, {}, like(most));
    const Tensor keys = reduce_rows(CudnnReduction::add, powers);
    sum = pointwise(CudnnPointwise::add, f32, keys, {power}, like(most));
  } else
    sum = reduce_rows(CudnnReduction::add, powers);
  const Tensor log = pointwise(CudnnPointwise::log, f32, sum, {}, like(sum));
  const auto stride = [&](deepgen_arg slot) { return int64_t(call[slot]); };
  const Tensor lse = p_.lse ? operand(DEEPGEN_ARG_LSE, f32, sum.sizes,
                                      {stride(DEEPGEN_ARG_LSE_BATCH), stride(DEEPGEN_ARG_LSE_HEAD),
                                       stride(DEEPGEN_ARG_LSE_TOKEN), 1})
                            : like(sum);
  pointwise(CudnnPointwise::add, f32, most, {log}, lse);
  return pointwise(CudnnPointwise::div, f32, powers, {sum},
                   between(is_narrow() ? f32 : type_of(p_.q), scores.sizes));
}

void CudnnAttention::build(const SlotValues& call) {
  const int64_t batch = p_.at_batch, queries = p_.at_queries, keys = p_.at_keys;
  const auto rows = [&](deepgen_arg slot, deepgen_arg token, CudnnType type, int64_t columns) {
    return operand(slot, type, {batch, p_.heads, queries, columns}, strides_of(call, token));
  };
  const Tensor q = rows(DEEPGEN_ARG_Q, DEEPGEN_ARG_Q_TOKEN, type_of(p_.q), p_.head_dim);
  const Tensor out = rows(DEEPGEN_ARG_OUT, DEEPGEN_ARG_OUT_TOKEN, type_of(out_), p_.value_dim);
  if (p_.paged()) lengths_ = {lengths(queries), lengths(keys)};
  Tensor scores = product(q, key_operand(call), between(CudnnType::f32, {batch, p_.heads, queries, keys}),
                          CudnnAttribute::matmul_columns);
  scores = pointwise(CudnnPointwise::mul, CudnnType::f32, scores,
                     {scalar(CudnnType::f32, uint32_t(call[DEEPGEN_ARG_SCORE_SCALE]))},
                     between(CudnnType::f32, scores.sizes));
  if (is_narrow()) scores = descaled(scores, 1, 1);
  scores = padded(biased(capped(scores, call), call));
  const Tensor weights = softmax(masked(scores, call), call), v = value_operand(call);
  if (is_narrow())
    narrow_product(weights, v, out);
  else
    product(weights, v, out, CudnnAttribute::matmul_depth);
}

namespace {

const AttentionSets& sets_of(const Bench::Ring& ring) {
  return dynamic_cast<const AttentionSets&>(ring.ring());
}

void upload(Address to, const PageBuffer& from, int64_t bytes) {
  check(driver()->cuMemcpyHtoD(to, from.data(), size_t(bytes)), "copying to the device");
}
std::vector<char> download(Address from, int64_t bytes) {
  std::vector<char> out(static_cast<size_t>(bytes));
  check(driver()->cuMemcpyDtoH(out.data(), from, out.size()), "reading an output");
  return out;
}

/// What a config makes of the call that is timed, held against the reference.
class CudnnCheck {
public:
  CudnnCheck(const Bench::Ring& ring, const Attention& p, const std::string& arch, uint64_t seed)
      : ring_(ring), p_(p), call_(sets_of(ring).all().front()),
        truth_(attention_truth(p, every_row_sees_keys(timed(p)), cudnn_arithmetic(p, arch),
                               most_attention_products, seed)) {
    const AttentionInputs& in = truth_->inputs;
    upload(call_[DEEPGEN_ARG_Q], in.q, bytes(in.q_layout, p.q));
    upload(call_[DEEPGEN_ARG_KEY], in.key, bytes(in.key_layout, p.kv));
    upload(call_[DEEPGEN_ARG_VALUE], in.value, bytes(in.value_layout, p.kv));
    if (p.paged()) // of all sets
      check(driver()->cuMemcpyHtoD(call_[DEEPGEN_ARG_PAGE_TABLE], in.pages.table.data(),
                                   in.pages.table.size() * sizeof(int32_t)),
            "copying to the device");
    const BiasLayout& bias = in.bias_layout;
    if (p.bias) upload(call_[DEEPGEN_ARG_BIAS], in.bias, bias.rows() * bias.columns() * size_of(*p.bias));
    if (p.sink)
      check(driver()->cuMemcpyHtoD(call_[DEEPGEN_ARG_SINK], in.sink.data(), in.sink.size() * sizeof(float)),
            "copying to the device");
  }

  /// Empty, or why its output, of `type`, is wrong.
  std::string operator()(Type type, const std::function<void(const SlotValues&, Stream)>& enqueue) const {
    const TokenLayout& layout = truth_->inputs.out_layout;
    const int64_t out_bytes = bytes(layout, type),
                  lse_bytes = truth_->inputs.lse_count(p_) * size_of(Type::f32);
    poison(call_[DEEPGEN_ARG_OUT], out_bytes);
    if (p_.lse) poison(call_[DEEPGEN_ARG_LSE], lse_bytes);
    enqueue(call_, ring_.context().stream());
    ring_.context().synchronize();
    const std::vector<char> out = download(call_[DEEPGEN_ARG_OUT], out_bytes),
                            lse = p_.lse ? download(call_[DEEPGEN_ARG_LSE], lse_bytes) : std::vector<char>();
    const auto row = [&](int64_t r) { return out.data() + r * layout.ld() * size_of(type); };
    Verdict verdict = truth_->check.check_finite(row, type);
    if (verdict.status == "ok") verdict = truth_->check.compare(row, lse.data(), type);
    return verdict.status == "ok" ? "" : verdict.status + ": " + verdict.detail;
  }

  /// Throws where the context was lost: cuDNN's own status does not tell.
  void settle() const { ring_.context().synchronize(); }

private:
  static AttentionShape timed(const Attention& p) {
    return tuned_shape(p); // as the call that verification makes of it: a reference for both
  }
  /// A row that sees no key is NaN there.
  static AttentionShape every_row_sees_keys(AttentionShape shape) {
    shape.bias_hides = false;
    return shape;
  }
  static int64_t bytes(const TokenLayout& layout, Type type) {
    return layout.rows() * layout.columns() * size_of(type);
  }
  void poison(Address at, int64_t bytes) const { // rings place operands in units of more than a word
    ring_.tools().set_words(at, 0xffffffff, size_t((bytes + 3) / 4 * 4));
  }

  const Bench::Ring& ring_;
  const Attention& p_;
  const SlotValues& call_;
  const std::shared_ptr<const AttentionTruth> truth_;
};

/// Of one worker: its arms run one after the other. The process ends without freeing it.
Address workspace_of(uint64_t bytes) {
  if (!bytes) return 0;
  static const Memory& memory = *new Memory(vendor_workspace);
  return memory.address();
}

/// Why a config does not take part; empty when it does.
std::string fault_of(const CudnnAttention& attention, size_t config, const CudnnCheck& right,
                     uint64_t& workspace) {
  try {
    const CudnnAttention::Plan plan = attention.plan(config);
    workspace = plan.workspace;
    if (workspace > vendor_workspace)
      return "needs a workspace of " + std::to_string(workspace >> 20) + " MiB";
    return right(attention.out(), [&](const SlotValues& operands, Stream stream) {
      attention.enqueue(plan, operands, workspace_of(plan.workspace), stream);
    });
  } catch (const DriverError& e) {
    if (e.sticky()) throw;
    right.settle();
    return e.what();
  }
}

/// In one line: the first reason stands for others.
std::string why_no_engine(const Vendor& v) {
  std::string text = v.name + " has no engine for this problem" + (v.why_not.empty() ? "" : ": " + v.why_not);
  if (v.left_out.empty()) return text;
  text += (v.why_not.empty() ? ": " : "; ") + v.left_out.front();
  return text +
         (v.left_out.size() > 1 ? ", and " + std::to_string(v.left_out.size() - 1) + " more left out" : "");
}

void try_configs(const CudnnAttention& attention, const CudnnCheck& right,
                 const std::function<bool()>& may_try, Vendor& v) {
  for (size_t i = 0; i < attention.configs(); ++i) {
    Vendor::Algorithm a;
    a.text = attention.text(i), a.library = VendorPlan::cudnn;
    const std::string fault = may_try() ? fault_of(attention, i, right, a.workspace) : "crashes or hangs";
    if (fault.empty())
      v.algorithms.push_back(a);
    else
      v.left_out.push_back(a.text + ": " + fault);
  }
}

} // namespace

Vendor ask_cudnn(Bench::Ring& ring, const std::string& arch, uint64_t seed,
                 const std::function<bool(int)>& may_try) {
  const Attention& p = sets_of(ring).problem();
  const CudnnLibrary& library = CudnnLibrary::of_process();
  Vendor v;
  v.name = library.version, v.plan.library = VendorPlan::cudnn;
  v.why_not = why_no_cudnn(p);
  if (v.why_not.empty()) v.why_not = library.why_not;
  if (!v.why_not.empty()) return v;
  std::optional<CudnnCheck> right;
  int number = 0;
  const auto refused = [&](Type out, const std::string& why) {
    const bool told = p.q == Type::e4m3;
    const std::string text =
        told ? "out of " + to_string(out) + ": " + (why.empty() ? "it has no engine" : why) : why;
    v.why_not += (v.why_not.empty() ? "" : "; ") + text;
  };
  for (Type out : cudnn_outs(p)) {
    try {
      const CudnnAttention attention(p, sets_of(ring).all().front(), out);
      if (!attention.configs()) {
        refused(out, attention.why_none());
        continue;
      }
      if (!right) right.emplace(ring, p, arch, seed);
      try_configs(attention, *right, [&] { return may_try(number++); }, v);
    } catch (const DriverError& e) {
      if (e.sticky()) throw;
      refused(out, e.what());
    }
    if (v.algorithms.empty()) continue;
    // Whoever reads its times is to know: fewer bytes are written.
    if (out != p.out) v.name += " with out of " + to_string(out);
    break;
  }
  if (v.algorithms.empty())
    v.why_not = why_no_engine(v);
  else if (!v.why_not.empty())
    v.left_out.insert(v.left_out.begin(), std::exchange(v.why_not, ""));
  return v;
}

Bench::EnqueueSet cudnn_call(const Vendor::Algorithm& algorithm, Bench::Ring& ring) {
  const AttentionSets& sets = sets_of(ring);
  const Attention& p = sets.problem();
  Type out = p.out;
  for (Type x : cudnn_outs(p))
    if (algorithm.text.ends_with(out_text(p, x))) out = x;
  const auto attention = std::make_shared<CudnnAttention>(p, sets.all().front(), out);
  size_t config = 0;
  while (config < attention->configs() && attention->text(config) != algorithm.text) ++config;
  if (config == attention->configs())
    throw DriverError(1, algorithm.text + " is not among what it returns now", "asking cuDNN's heuristics");
  const auto plan = std::make_shared<CudnnAttention::Plan>(attention->plan(config));
  const Address workspace = workspace_of(plan->workspace);
  return [=, &sets](int64_t set, Stream stream) {
    attention->enqueue(*plan, sets.all()[size_t(set)], workspace, stream);
  };
}

} // namespace deepgen::cuda
