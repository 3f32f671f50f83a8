#include "cudnn_graph.h"

#include "internal.h" // of the fake HIP

#include <algorithm>
#include <cstring>
#include <set>

namespace {

using namespace fake_cudnn;

enum Status : int { success = 0, bad = 2000, not_final = 2004, unsupported = 3000, pattern = 3001 };
constexpr double kSeconds = 10e-6; ///< of a call

/// cudnnBackendDescriptorType_t
enum Kind : int {
  POINTWISE = 0,
  ENGINE = 2,
  ENGINECFG = 3,
  ENGINEHEUR = 4,
  EXECUTION_PLAN = 5,
  KNOB_CHOICE = 7,
  OPERATION_POINTWISE = 13,
  OPERATIONGRAPH = 15,
  VARIANT_PACK = 16,
  TENSOR = 17,
  MATMUL = 18,
  OPERATION_MATMUL = 19,
  REDUCTION = 21,
  OPERATION_REDUCTION = 22,
  OPERATION_PAGED_CACHE_LOAD = 35
};
/// cudnnBackendAttributeType_t, and the bytes of an element.
enum Element : int {
  HANDLE = 0,
  DATA_TYPE = 1,
  BOOLEAN = 2,
  INT64 = 3,
  FLOAT = 4,
  VOID_PTR = 6,
  HEUR_MODE = 8,
  KNOB_TYPE = 9,
  POINTWISE_MODE = 14,
  BACKEND_DESCRIPTOR = 15,
  REDUCTION_OPERATOR_TYPE = 18
};
size_t bytes_of(int element) {
  switch (element) {
  case BOOLEAN:
    return 1;
  case HANDLE:
  case INT64:
  case VOID_PTR:
  case BACKEND_DESCRIPTOR:
    return 8;
  default:
    return 4;
  }
}

/// An attribute that a descriptor takes.
struct Rule {
  int kind, attribute, element;
  int64_t most = 1;
  bool required = true;
  std::vector<int> of = {}; ///< kinds of the descriptors that it has
};
const Rule kRules[] = {
    {POINTWISE, 0, POINTWISE_MODE},
    {POINTWISE, 1, DATA_TYPE},
    {POINTWISE, 9, INT64, 1, false},
    {ENGINEHEUR, 200, HEUR_MODE},
    {ENGINEHEUR, 201, BACKEND_DESCRIPTOR, 1, true, {OPERATIONGRAPH}},
    {EXECUTION_PLAN, 400, HANDLE},
    {EXECUTION_PLAN, 401, BACKEND_DESCRIPTOR, 1, true, {ENGINECFG}},
    {OPERATION_POINTWISE, 750, BACKEND_DESCRIPTOR, 1, true, {POINTWISE}},
    {OPERATION_POINTWISE, 751, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_POINTWISE, 752, BACKEND_DESCRIPTOR, 1, false, {TENSOR}},
    {OPERATION_POINTWISE, 753, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_POINTWISE, 754, FLOAT, 1, false},
    {OPERATION_POINTWISE, 755, FLOAT, 1, false},
    {OPERATION_POINTWISE, 758, BACKEND_DESCRIPTOR, 1, false, {TENSOR}},
    {OPERATIONGRAPH, 800, HANDLE},
    {OPERATIONGRAPH,
     801,
     BACKEND_DESCRIPTOR,
     100,
     true,
     {OPERATION_POINTWISE, OPERATION_MATMUL, OPERATION_REDUCTION, OPERATION_PAGED_CACHE_LOAD}},
    {TENSOR, 900, INT64},
    {TENSOR, 901, DATA_TYPE},
    {TENSOR, 902, INT64, 8},
    {TENSOR, 903, INT64, 8},
    {TENSOR, 906, INT64},
    {TENSOR, 907, BOOLEAN, 1, false},
    {TENSOR, 908, BOOLEAN, 1, false},
    {VARIANT_PACK, 1000, INT64, 100},
    {VARIANT_PACK, 1001, VOID_PTR, 100},
    {VARIANT_PACK, 1003, VOID_PTR, 1, false},
    {MATMUL, 1500, DATA_TYPE},
    {OPERATION_MATMUL, 1520, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_MATMUL, 1521, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_MATMUL, 1522, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_MATMUL, 1523, BACKEND_DESCRIPTOR, 1, true, {MATMUL}},
    {OPERATION_MATMUL, 1525, BACKEND_DESCRIPTOR, 1, false, {TENSOR}},
    {OPERATION_MATMUL, 1526, BACKEND_DESCRIPTOR, 1, false, {TENSOR}},
    {OPERATION_MATMUL, 1527, BACKEND_DESCRIPTOR, 1, false, {TENSOR}},
    {REDUCTION, 1600, REDUCTION_OPERATOR_TYPE},
    {REDUCTION, 1601, DATA_TYPE},
    {OPERATION_REDUCTION, 1610, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_REDUCTION, 1611, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_REDUCTION, 1612, BACKEND_DESCRIPTOR, 1, true, {REDUCTION}},
    {OPERATION_PAGED_CACHE_LOAD, 1950, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_PAGED_CACHE_LOAD, 1951, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_PAGED_CACHE_LOAD, 1952, BACKEND_DESCRIPTOR, 1, true, {TENSOR}},
    {OPERATION_PAGED_CACHE_LOAD, 1953, BACKEND_DESCRIPTOR, 1, true, {TENSOR}}};

struct Desc;
using Shared = std::shared_ptr<Desc>;
struct Desc {
  int kind = 0;
  bool is_final = false;
  std::map<int, std::string> values;         ///< bytes, by attribute
  std::map<int, std::vector<Shared>> others; ///< descriptors, by attribute
  Config config;                             ///< of a config, an engine and a plan
  std::pair<int, int64_t> knob;              ///< of a knob
  std::vector<Operation> graph;              ///< of a graph, and of what is made for it

  bool has(int attribute) const { return values.count(attribute) || others.count(attribute); }
  template <typename T>
  std::vector<T> all(int attribute) const {
    const std::string& bytes = values.at(attribute);
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  template <typename T>
  T one(int attribute, T otherwise = T()) const {
    return values.count(attribute) ? all<T>(attribute).front() : otherwise;
  }
  const Desc& other(int attribute) const { return *others.at(attribute).front(); }
};

std::map<void*, Shared>& registry() {
  static auto& all = *new std::map<void*, Shared>;
  return all;
}
std::string& last_error() {
  static std::string text;
  return text;
}
void* current_stream = nullptr;
int handle_object = 0;

int refuse(int status, const std::string& why) {
  last_error() = why;
  state().complaints.push_back(why);
  return status;
}
/// What a strict library refuses as well, and is no fault of who asks.
int decline(int status, const std::string& why) {
  last_error() = why;
  return status;
}

Shared find(void* descriptor) {
  const auto found = registry().find(descriptor);
  return found == registry().end() ? nullptr : found->second;
}

Tensor tensor_of(const Desc& d) {
  Tensor t;
  const auto four = [&](int attribute) {
    Four out{};
    const std::vector<int64_t> all = d.all<int64_t>(attribute);
    std::copy_n(all.begin(), std::min<size_t>(all.size(), 4), out.begin());
    return out;
  };
  t.uid = d.one<int64_t>(906), t.type = d.one<int32_t>(901);
  t.sizes = four(902), t.strides = four(903);
  t.is_virtual = d.one<uint8_t>(907), t.by_value = d.one<uint8_t>(908);
  return t;
}

Operation operation_of(const Desc& d) {
  const auto tensor = [&](int attribute) { return tensor_of(d.other(attribute)); };
  if (d.kind == OPERATION_MATMUL) {
    Operation o{Operation::product, {tensor(1520), tensor(1521)}, tensor(1522)};
    for (size_t i = 0; i < 3; ++i)
      if (const int attribute = 1525 + int(i); d.has(attribute)) o.counts[i] = tensor(attribute);
    return o;
  }
  if (d.kind == OPERATION_PAGED_CACHE_LOAD)
    return {Operation::pages, {tensor(1950), tensor(1952), tensor(1953)}, tensor(1951)};
  if (d.kind == OPERATION_REDUCTION)
    return {Operation::reduction, {tensor(1610)}, tensor(1611), d.other(1612).one<int32_t>(1600)};
  Operation o{Operation::pointwise, {tensor(751)}, tensor(753)};
  for (int attribute : {752, 758})
    if (d.has(attribute)) o.in.push_back(tensor(attribute));
  const Desc& how = d.other(750);
  o.mode = how.one<int32_t>(0), o.math = how.one<int32_t>(1), o.axis = how.one<int64_t>(9, -1);
  return o;
}

std::string fault_of_tensor(const Desc& d) {
  if (d.all<int64_t>(902).size() != 4 || d.all<int64_t>(903).size() != 4) return "a tensor of no four sizes";
  const Tensor t = tensor_of(d);
  if (std::any_of(t.sizes.begin(), t.sizes.end(), [](int64_t x) { return x < 1; }))
    return "a tensor of nothing";
  if (t.is_virtual && t.by_value) return "a virtual value";
  if (t.by_value && t.count() != 1) return "a value of several elements";
  const int64_t alignment = d.one<int64_t>(900);
  return alignment < 1 || (alignment & (alignment - 1)) ? "an alignment that is no power of two" : "";
}

int finalize_graph(Desc& d) {
  state().modes.clear();
  std::map<int64_t, const Desc*> known;
  for (const Shared& x : d.others.at(801)) {
    d.graph.push_back(operation_of(*x));
    if (d.graph.back().kind == Operation::pointwise) state().modes.push_back(d.graph.back().mode);
    for (const auto& [attribute, list] : x->others)
      for (const Shared& t : list)
        if (t->kind == TENSOR && !known.emplace(t->one<int64_t>(906), t.get()).second &&
            known.at(t->one<int64_t>(906)) != t.get())
          return refuse(bad, "two tensors of one id");
  }
  last_graph() = d.graph;
  const std::string why = fault_of(d.graph);
  return why.empty() ? success : refuse(pattern, why);
}

int finalize(Desc& d) {
  for (const Rule& r : kRules)
    if (r.kind == d.kind && r.required && !d.has(r.attribute))
      return refuse(bad, "attribute " + std::to_string(r.attribute) + " is not set");
  if (d.kind == TENSOR) {
    const std::string why = fault_of_tensor(d);
    return why.empty() ? success : refuse(bad, why);
  }
  if (d.kind == OPERATIONGRAPH) return finalize_graph(d);
  if (d.kind == ENGINEHEUR) {
    d.graph = d.other(201).graph;
    const auto found = state().heuristic_results.find(d.one<int32_t>(200));
    return found == state().heuristic_results.end() ? success
                                                    : decline(found->second, "no engine for this pattern");
  }
  if (d.kind == EXECUTION_PLAN) {
    d.config = d.other(401).config, d.graph = d.other(401).graph;
    if (d.config.plan_status) return decline(d.config.plan_status, "not on this device");
  }
  if (d.kind == VARIANT_PACK && d.all<int64_t>(1000).size() != d.all<void*>(1001).size())
    return refuse(bad, "ids and pointers of another number");
  return success;
}

const Rule* rule_of(int kind, int attribute) {
  for (const Rule& r : kRules)
    if (r.kind == kind && r.attribute == attribute) return &r;
  return nullptr;
}

/// The descriptors that a call fills, of a kind, not more than there are.
int fill(void* elements, int64_t asked, int64_t there, int kind,
         const std::function<void(Desc&, size_t)>& with) {
  for (int64_t i = 0; i < std::min(asked, there); ++i) {
    const Shared d = find(static_cast<void**>(elements)[i]);
    if (!d || d->kind != kind) return refuse(bad, "results for no descriptors of their kind");
    with(*d, size_t(i));
    d->is_final = true;
  }
  return success;
}

bool is_served(const std::vector<Operation>& graph) {
  const std::vector<int>& outs = state().narrow_outs;
  return !is_narrow(graph) || std::find(outs.begin(), outs.end(), last_of(graph).out.type) != outs.end();
}

/// What is read, with its element.
struct Answer {
  int element;
  int64_t there;
  std::function<int()> give;
};
Answer answer_of(const Desc& d, int attribute, int64_t asked, void* elements) {
  const auto number = [&](auto x) {
    return Answer{sizeof x == 8 ? int(INT64) : int(KNOB_TYPE), 1, [=] {
                    if (asked) std::memcpy(elements, &x, sizeof x);
                    return int(success);
                  }};
  };
  if (d.kind == ENGINEHEUR && attribute == 202) {
    const std::vector<Config>& all = state().configs[d.one<int32_t>(200)];
    if (asked && !is_served(d.graph)) // as of 9.19: all are counted, and none is returned
      return {BACKEND_DESCRIPTOR, 0, [] { return decline(success, "no engine writes such an output"); }};
    return {BACKEND_DESCRIPTOR, int64_t(all.size()), [&all, &d, asked, elements] {
              return fill(elements, asked, int64_t(all.size()), ENGINECFG,
                          [&](Desc& to, size_t i) { to.config = all[i], to.graph = d.graph; });
            }};
  }
  if (d.kind == ENGINECFG && attribute == 300)
    return {BACKEND_DESCRIPTOR, 1, [&d, asked, elements] {
              return fill(elements, asked, 1, ENGINE, [&](Desc& to, size_t) { to.config = d.config; });
            }};
  if (d.kind == ENGINECFG && attribute == 302)
    return {BACKEND_DESCRIPTOR, int64_t(d.config.knobs.size()), [&d, asked, elements] {
              return fill(elements, asked, int64_t(d.config.knobs.size()), KNOB_CHOICE,
                          [&](Desc& to, size_t i) { to.knob = d.config.knobs[i]; });
            }};
  if (d.kind == ENGINE && attribute == 1301) return number(d.config.engine);
  if (d.kind == KNOB_CHOICE && attribute == 600) return number(d.knob.first);
  if (d.kind == KNOB_CHOICE && attribute == 601) return number(d.knob.second);
  if (d.kind == EXECUTION_PLAN && attribute == 402) return number(d.config.workspace);
  return {-1, 0, {}};
}

bool is_workspace(void* p, int64_t bytes) {
  void* begin = nullptr;
  size_t size = 0;
  return fake_hip::allocation_of(p, &begin, &size) &&
         static_cast<char*>(p) + bytes <= static_cast<char*>(begin) + size;
}

} // namespace

State& fake_cudnn::state() {
  static State state;
  return state;
}

std::vector<Operation>& fake_cudnn::last_graph() {
  static std::vector<Operation> graph;
  return graph;
}

void fake_cudnn::reset() {
  const int alive = state().alive;
  state() = {};
  state().alive = alive;
  state().configs[3] = {{.engine = 5, .knobs = {{24, 3}, {14, 2}}}, {.engine = 8, .workspace = 4096}};
}

extern "C" {

size_t cudnnGetVersion() { return state().version; }
const char* cudnnGetErrorString(int status) {
  return status == pattern       ? "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN"
         : status >= unsupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                 : "CUDNN_STATUS_BAD_PARAM";
}
void cudnnGetLastErrorString(char* text, size_t size) {
  std::strncpy(text, last_error().c_str(), size);
  last_error().clear();
}
int cudnnCreate(void** handle) { return *handle = &handle_object, success; }
int cudnnSetStream(void* handle, void* stream) {
  if (handle != &handle_object) return refuse(bad, "no handle");
  return current_stream = stream, success;
}
int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  static const std::set<int> known = {POINTWISE,
                                      ENGINE,
                                      ENGINECFG,
                                      ENGINEHEUR,
                                      EXECUTION_PLAN,
                                      KNOB_CHOICE,
                                      OPERATION_POINTWISE,
                                      OPERATIONGRAPH,
                                      VARIANT_PACK,
                                      TENSOR,
                                      MATMUL,
                                      OPERATION_MATMUL,
                                      REDUCTION,
                                      OPERATION_REDUCTION,
                                      OPERATION_PAGED_CACHE_LOAD};
  if (!known.count(kind) || (kind == OPERATION_PAGED_CACHE_LOAD && state().version < 90500))
    return refuse(unsupported, "descriptor of kind " + std::to_string(kind));
  auto made = std::make_shared<Desc>();
  made->kind = kind;
  registry()[made.get()] = made;
  ++state().alive;
  return *descriptor = made.get(), success;
}
int cudnnBackendDestroyDescriptor(void* descriptor) {
  if (!registry().erase(descriptor)) return refuse(bad, "destroying no descriptor");
  return --state().alive, success;
}
int cudnnBackendFinalize(void* descriptor) {
  const Shared d = find(descriptor);
  if (!d || d->is_final) return refuse(bad, "finalizing no descriptor, or one that is final");
  const int status = finalize(*d);
  d->is_final = status == success;
  return status;
}
int cudnnBackendSetAttribute(void* descriptor, int attribute, int element, int64_t count,
                             const void* elements) {
  const Shared d = find(descriptor);
  if (!d || d->is_final) return refuse(bad, "setting an attribute of no descriptor, or of a final one");
  const Rule* rule = rule_of(d->kind, attribute);
  const std::string name = "attribute " + std::to_string(attribute);
  if (!rule) return refuse(unsupported, name + " is none of kind " + std::to_string(d->kind));
  if (rule->element != element) return refuse(bad, name + " of another type");
  if (count < 1 || count > rule->most || !elements) return refuse(bad, name + " of another count");
  if (element != BACKEND_DESCRIPTOR) {
    d->values[attribute] = std::string(static_cast<const char*>(elements), size_t(count) * bytes_of(element));
    return success;
  }
  std::vector<Shared> list;
  for (int64_t i = 0; i < count; ++i) {
    list.push_back(find(static_cast<void* const*>(elements)[i]));
    if (!list.back() || !list.back()->is_final) return refuse(not_final, name + " of what is not final");
    if (std::find(rule->of.begin(), rule->of.end(), list.back()->kind) == rule->of.end())
      return refuse(bad, name + " of another kind");
  }
  return d->others[attribute] = list, success;
}
int cudnnBackendGetAttribute(void* descriptor, int attribute, int element, int64_t asked, int64_t* count,
                             void* elements) {
  const Shared d = find(descriptor);
  if (!d || !d->is_final) return refuse(not_final, "reading what is not final");
  if (asked < 0 || (asked && !elements)) return refuse(bad, "reading to nowhere");
  const Answer answer = answer_of(*d, attribute, asked, elements);
  if (answer.element != element) return refuse(bad, "reading attribute " + std::to_string(attribute));
  if (count) *count = answer.there;
  return answer.give();
}
int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  const std::lock_guard lock(fake_hip::state().mutex); // of whose streams and memory this is
  const Shared p = find(plan), operands = find(pack);
  if (handle != &handle_object || !p || !operands || p->kind != EXECUTION_PLAN ||
      operands->kind != VARIANT_PACK || !p->is_final || !operands->is_final)
    return refuse(bad, "executing no plan, or with no operands");
  if (p->config.executed) p->config.executed();
  if (p->config.execute_status) return decline(p->config.execute_status, "it failed");
  std::map<int64_t, void*> pointers;
  const std::vector<int64_t> ids = operands->all<int64_t>(1000);
  const std::vector<void*> data = operands->all<void*>(1001);
  for (size_t i = 0; i < ids.size(); ++i) pointers[ids[i]] = data[i];
  if (const std::string why = fault_of(p->graph, pointers); !why.empty()) return refuse(bad, why);
  if (p->config.workspace && !is_workspace(operands->one<void*>(1003), p->config.workspace))
    return refuse(bad, "no workspace for a plan that needs one");
  return fake_hip::enqueue(
      current_stream, kSeconds,
      [run = prepared(p->graph, pointers, p->config)]() mutable { return run(), int(success); });
}

} // extern "C"
