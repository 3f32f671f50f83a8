#include "measure/gpu/cuda_attention_verify.h"

#include "base/problem/signature.h"

#include <algorithm>
#include <cstring>

namespace deepgen::cuda {
namespace {

/// Of the reference of an awkward kernel's one call: there are as many of these as configs.
constexpr double kMostAwkwardProducts = 3e7;
constexpr size_t kMostKept = 4;                    ///< problems and alignments whose calls are kept
constexpr size_t kComparedBytes = size_t(1) << 24; ///< of an input that is read back

void upload(Address to, const void* from, size_t bytes) {
  if (bytes) check(driver()->cuMemcpyHtoD(to, from, bytes), "copying to the device");
}

std::vector<char> download(const Array& x) {
  const int64_t elements = x.rows ? (x.rows - 1) * x.ld + x.columns : 0;
  std::vector<char> out(size_t(elements * size_of(Type(x.type))));
  if (!out.empty()) check(driver()->cuMemcpyDtoH(out.data(), x.data, out.size()), "reading an operand");
  return out;
}

void* pointer(Address address) { return reinterpret_cast<void*>(uintptr_t(address)); }

Memory table(const std::vector<int32_t>& numbers) {
  if (numbers.empty()) return Memory();
  Memory out(numbers.size() * sizeof(int32_t));
  upload(out.address(), numbers.data(), out.bytes());
  return out;
}

} // namespace

AttentionCase taken_by(const Kernel& kernel, AttentionCase c) {
  const int64_t unit = std::max<int64_t>(1, kernel.align_a / size_of(kernel.problem.attention().q));
  c.shape.gap = (c.shape.gap + unit - 1) / unit * unit;
  return c;
}

std::vector<std::shared_ptr<const AttentionTruth>> attention_truths(const KernelFile& file, uint64_t seed) {
  std::vector<std::shared_ptr<const AttentionTruth>> held;
  for (const Kernel& kernel : file.kernels) {
    const Attention& p = kernel.problem.attention();
    for (const AttentionCase& c : cases_for(p))
      if (kernel.role != "awkward")
        held.push_back(attention_truth(p, taken_by(kernel, c).shape,
                                       AttentionArithmetic::of(p, kernel.target), most_attention_products,
                                       seed));
  }
  return held;
}

/// The operands of one call, on the device.
struct AttentionVerifier::Call {
  Call(const Kernel&, const AttentionCase&, const Toolbox&, uint64_t seed, int64_t zone);

  struct Input {
    const char* name;
    std::unique_ptr<GuardedArray> array;
    std::vector<char> image; ///< what is in memory; empty: not compared
  };
  Attention problem;
  AttentionCase what;
  std::shared_ptr<const AttentionTruth> truth;
  const AttentionInputs& inputs;
  std::vector<Input> in; ///< Q, K, V, and the bias
  std::unique_ptr<GuardedArray> out, lse;
  Memory sink, query_offsets, key_offsets, keys_used, page_table;
  SlotValues values;

private:
  GuardedArray array(Type, const TokenLayout&, int64_t align, int64_t zone) const;
  void upload_image(const Toolbox&, Input);
  void upload_bias(const Toolbox&, int64_t zone);
  void upload_input(const Toolbox&, const char* name, Type, const TokenLayout&, const PageBuffer&,
                    int64_t heads, int64_t dimension, int64_t align, int64_t zone);
};

GuardedArray AttentionVerifier::Call::array(Type type, const TokenLayout& layout, int64_t align,
                                            int64_t zone) const {
  return GuardedArray(type, shape_of(layout.rows(), layout.columns(), layout.ld(), 1, 0),
                      what.misaligned ? std::max(align, size_of(type)) : 0, zone);
}

void AttentionVerifier::Call::upload_input(const Toolbox& tools, const char* name, Type type,
                                           const TokenLayout& layout, const PageBuffer& dense, int64_t heads,
                                           int64_t dimension, int64_t align, int64_t zone) {
  Input x{name, std::make_unique<GuardedArray>(array(type, layout, align, zone)),
          stored(type, layout, dense)};
  if (&layout != &inputs.q_layout && !x.image.empty())
    poison_unused(type, layout, what.shape, heads, dimension, x.image.data());
  upload_image(tools, std::move(x));
}

void AttentionVerifier::Call::upload_bias(const Toolbox& tools, int64_t zone) {
  const BiasLayout& layout = inputs.bias_layout;
  const Type type = *problem.bias;
  upload_image(tools, {"bias",
                       std::make_unique<GuardedArray>(
                           type, shape_of(layout.rows(), layout.columns(), layout.ld(), 1, 0),
                           what.misaligned ? size_of(type) : 0, zone),
                       stored_bias(problem, layout, what.shape, inputs.bias)});
}

void AttentionVerifier::Call::upload_image(const Toolbox& tools, Input x) {
  x.array->poison(tools);
  tools.context().synchronize();
  upload(x.array->data(), x.image.data(), x.image.size());
  if (x.image.size() > kComparedBytes) x.image.clear(), x.image.shrink_to_fit();
  in.push_back(std::move(x));
}

AttentionVerifier::Call::Call(const Kernel& kernel, const AttentionCase& c, const Toolbox& tools,
                              uint64_t seed, int64_t zone)
    : problem(kernel.problem.attention()), what(taken_by(kernel, c)),
      truth(attention_truth(problem, what.shape, AttentionArithmetic::of(problem, kernel.target),
                            kernel.role == "awkward" ? kMostAwkwardProducts : most_attention_products, seed)),
      inputs(truth->inputs) {
  const Attention& p = problem;
  upload_input(tools, "Q", p.q, inputs.q_layout, inputs.q, p.heads, p.head_dim, kernel.align_a, zone);
  upload_input(tools, "K", p.kv, inputs.key_layout, inputs.key, p.kv_heads, p.head_dim, kernel.align_a, zone);
  upload_input(tools, "V", p.kv, inputs.value_layout, inputs.value, p.kv_heads, p.value_dim, kernel.align_a,
               zone);
  if (p.bias) upload_bias(tools, zone);
  out = std::make_unique<GuardedArray>(array(p.out, inputs.out_layout, kernel.align_d, zone));
  if (p.lse) {
    const int64_t count = inputs.lse_count(p);
    lse = std::make_unique<GuardedArray>(Type::f32, shape_of(1, count, count, 1, 0), 0, zone);
  }
  AttentionCall call;
  call.q = pointer(in[0].array->data()), call.key = pointer(in[1].array->data());
  call.value = pointer(in[2].array->data()), call.out = pointer(out->data());
  if (p.bias) call.bias = pointer(in[3].array->data());
  if (p.lse) call.lse = static_cast<float*>(pointer(lse->data()));
  if (p.sink) {
    sink = Memory(inputs.sink.size() * sizeof(float));
    upload(sink.address(), inputs.sink.data(), sink.bytes());
    call.sink = static_cast<const float*>(pointer(sink.address()));
  }
  query_offsets = table(inputs.query_offsets), key_offsets = table(inputs.key_offsets);
  keys_used = table(what.shape.keys_used), page_table = table(inputs.pages.table);
  const auto numbers = [](const Memory& x) { return static_cast<const int32_t*>(pointer(x.address())); };
  call.query_offsets = numbers(query_offsets), call.key_offsets = numbers(key_offsets);
  call.keys_used = numbers(keys_used), call.page_table = numbers(page_table);
  call.q_layout = &inputs.q_layout, call.key_layout = &inputs.key_layout;
  call.value_layout = &inputs.value_layout, call.out_layout = &inputs.out_layout;
  call.bias_layout = &inputs.bias_layout, call.shape = &what.shape;
  values = values_of(p, call);
}

AttentionVerifier::AttentionVerifier(const Context& context, const Toolbox& tools, uint64_t seed,
                                     int64_t zone)
    : context_(context), tools_(tools), seed_(seed), zone_(zone) {}
AttentionVerifier::~AttentionVerifier() = default;

/// The code of an awkward kernel is that of the main one, which went through all cases: of its own there is
/// one call.
const AttentionVerifier::Calls& AttentionVerifier::calls_of(const Kernel& kernel) {
  const bool awkward = kernel.role == "awkward";
  const std::string key = kernel.problem.key() + " " + std::to_string(kernel.align_a) + " " +
                          std::to_string(kernel.align_d) + (awkward ? " awkward" : "");
  std::map<std::string, Calls>& kept = awkward ? awkward_ : calls_;
  if (auto found = kept.find(key); found != kept.end()) return found->second;
  if (kept.size() >= kMostKept) kept.clear();
  std::vector<AttentionCase> cases = cases_for(kernel.problem.attention());
  if (awkward) cases.resize(1);
  Calls calls;
  for (const AttentionCase& c : cases)
    calls.push_back(std::make_unique<Call>(kernel, c, tools_, seed_, zone_));
  return kept.emplace(key, std::move(calls)).first->second;
}

Verdict AttentionVerifier::verify(const Kernel& kernel,
                                  const std::function<void(const std::string&)>& before) {
  before(reference);
  const Calls& calls = calls_of(kernel);
  before(loading);
  const deepgen::cuda::LoadedKernel loaded(kernel, context_);
  std::unique_ptr<GuardedArray> workspace;
  if (kernel.workspace)
    workspace = std::make_unique<GuardedArray>(
        Type::i8, shape_of(1, kernel.workspace, kernel.workspace, 1, 0), 0, zone_);
  const auto name_of = [](const std::unique_ptr<Call>& call) { return call->what.name; };
  return verify_in_turn(kernel.problem, calls, name_of, [&](const std::unique_ptr<Call>& call) {
    before(call->what.name);
    return verify_call(loaded, *call, workspace.get());
  });
}

Verdict AttentionVerifier::verify_call(const LoadedKernel& loaded, const Call& call,
                                       const GuardedArray* workspace) const {
  SlotValues values = call.values;
  if (workspace) workspace->poison(tools_), values[DEEPGEN_ARG_WORKSPACE] = workspace->data();
  call.out->poison(tools_);
  if (call.lse) call.lse->poison(tools_);
  loaded.enqueue(values, context_.stream());
  context_.synchronize();
  if (Verdict verdict = damage(call, workspace); verdict.status != "ok") return verdict;
  const Array& x = call.out->array();
  const std::vector<char> out = download(x);
  const std::vector<char> lse = call.lse ? download(call.lse->array()) : std::vector<char>();
  const auto row = [&](int64_t r) { return out.data() + r * x.ld * size_of(Type(x.type)); };
  if (Verdict verdict = call.truth->check.check_finite(row); verdict.status != "ok") return verdict;
  return call.truth->check.compare(row, lse.data());
}

/// Whether it wrote where it should not have, or left out what it should have written.
Verdict AttentionVerifier::damage(const Call& call, const GuardedArray* workspace) const {
  struct Found {
    Finding gaps, written;
  };
  std::vector<const GuardedArray*> arrays;
  std::vector<std::string> names;
  for (const Call::Input& x : call.in) arrays.push_back(x.array.get()), names.push_back(x.name);
  if (workspace) arrays.push_back(workspace), names.push_back("the workspace");
  const size_t inputs = arrays.size(); // and what need not be written all over
  arrays.push_back(call.out.get()), names.push_back("out");
  if (call.lse) arrays.push_back(call.lse.get()), names.push_back("lse");
  std::vector<Found> found(arrays.size());
  const Memory results(found.size() * sizeof(Found));
  upload(results.address(), found.data(), results.bytes());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Address at = results.address() + i * sizeof(Found);
    arrays[i]->check_gaps(tools_, at);
    if (i >= inputs) tools_.check_written(arrays[i]->array(), at + sizeof(Finding));
  }
  context_.synchronize();
  check(driver()->cuMemcpyDtoH(found.data(), results.address(), results.bytes()), "reading the findings");
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (found[i].gaps.count)
      return {"out_of_bounds", names[i] + " written " + arrays[i]->place_of_damage(found[i].gaps.place), 0};
    if (found[i].written.count)
      return {"wrong", "not written: " + names[i] + ", element " + std::to_string(found[i].written.place), 0};
  }
  for (const Call::Input& x : call.in)
    if (!x.image.empty() && download(x.array->array()) != x.image)
      return {"out_of_bounds", std::string(x.name) + " was changed", 0};
  return {};
}

} // namespace deepgen::cuda
