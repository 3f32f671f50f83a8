#include "cudnn_graph.h"

#include "host_values.h" // of the fake HIP
#include "internal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace fake_cudnn {
namespace {

using fake_hip::at, fake_hip::bf16, fake_hip::e4m3, fake_hip::put;

int64_t bytes_of(int type) {
  if (type == DATA_HALF || type == DATA_BFLOAT16) return 2;
  return type == DATA_BOOLEAN || type == DATA_FP8_E4M3 ? 1 : 4;
}

double of_bf16(uint16_t bits) {
  const uint32_t word = uint32_t(bits) << 16;
  return double(at<float>(&word, 0));
}

double of_e4m3(uint8_t bits) { return fake_hip::small_float(bits, 3, 7); }

double load(const void* data, int type, int64_t i) {
  switch (type) {
  case DATA_HALF:
    return double(at<_Float16>(data, i));
  case DATA_BFLOAT16:
    return of_bf16(at<uint16_t>(data, i));
  case DATA_FP8_E4M3:
    return of_e4m3(at<uint8_t>(data, i));
  case DATA_INT32:
    return at<int32_t>(data, i);
  default:
    return double(at<float>(data, i));
  }
}
void store(void* data, int type, int64_t i, double x) {
  if (type == DATA_HALF) return put(data, i, _Float16(float(x)));
  if (type == DATA_BFLOAT16) return put(data, i, bf16(x));
  if (type == DATA_FP8_E4M3) return put(data, i, e4m3(x));
  put(data, i, float(x));
}
double rounded(int type, double x) {
  switch (type) {
  case DATA_HALF:
    return double(_Float16(float(x)));
  case DATA_BFLOAT16:
    return of_bf16(bf16(x));
  case DATA_FP8_E4M3:
    return std::isnan(x) ? x : of_e4m3(e4m3(x));
  case DATA_INT32:
    return std::trunc(x);
  case DATA_BOOLEAN:
    return x != 0;
  default:
    return double(float(x));
  }
}

int64_t offset(const Four& strides, const Four& i) {
  return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2] + i[3] * strides[3];
}
template <typename Visit>
void for_each(const Four& sizes, Visit visit) {
  Four i;
  for (i[0] = 0; i[0] < sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < sizes[2]; ++i[2])
        for (i[3] = 0; i[3] < sizes[3]; ++i[3]) visit(i);
}

/// A tensor's elements, dense. One along an axis stands for all.
struct Values {
  Four sizes{};
  std::vector<double> x;
  double& at(const Four& i) {
    return x[size_t(((i[0] * sizes[1] + i[1]) * sizes[2] + i[2]) * sizes[3] + i[3])];
  }
  double get(Four i) {
    for (size_t k = 0; k < 4; ++k)
      if (sizes[k] == 1) i[k] = 0;
    return at(i);
  }
};
Values zeros(const Tensor& t) { return {t.sizes, std::vector<double>(size_t(t.count()))}; }

bool fits(const Tensor& small, const Tensor& large) {
  for (size_t k = 0; k < 4; ++k)
    if (small.sizes[k] != 1 && small.sizes[k] != large.sizes[k]) return false;
  return true;
}

bool compares(int mode) {
  return mode == POINTWISE_CMP_GT || mode == POINTWISE_CMP_GE || mode == POINTWISE_CMP_LT ||
         mode == POINTWISE_LOGICAL_AND;
}

size_t inputs_of(int mode) {
  if (mode == POINTWISE_EXP || mode == POINTWISE_LOG || mode == POINTWISE_TANH_FWD ||
      mode == POINTWISE_GEN_INDEX)
    return 1;
  return mode == POINTWISE_BINARY_SELECT ? 3 : 2;
}

std::string fault_of(const Operation& o) {
  if (o.kind == Operation::product) {
    const Four &a = o.in[0].sizes, &b = o.in[1].sizes, &c = o.out.sizes;
    if (a[0] != c[0] || b[0] != c[0] || a[1] != c[1] || a[2] != c[2] || a[3] != b[2] || b[3] != c[3] ||
        c[1] % b[1])
      return "a product of sizes that do not match";
    for (const std::optional<Tensor>& t : o.counts)
      if (t && (t->type != DATA_INT32 || t->sizes != Four{c[0], 1, 1, 1}))
        return "counts that are no i32 of each entry";
    return o.in[0].type == o.in[1].type ? "" : "a product of two types";
  }
  if (o.kind == Operation::pages) return fault_of_pages(o);
  for (const Tensor& t : o.in)
    if (o.kind == Operation::reduction ? !fits(o.out, t) : !fits(t, o.out)) return "sizes that do not match";
  if (o.kind == Operation::reduction)
    return o.mode == REDUCE_ADD || o.mode == REDUCE_MAX || o.mode == REDUCE_AMAX ? ""
                                                                                 : "an unknown reduction";
  if (o.in.size() != inputs_of(o.mode))
    return "mode " + std::to_string(o.mode) + " with " + std::to_string(o.in.size()) + " inputs";
  if ((o.mode == POINTWISE_GEN_INDEX) != (o.axis >= 0 && o.axis < 4)) return "an axis, or none";
  if (o.mode == POINTWISE_GEN_INDEX && o.out.type != DATA_INT32) return "indices that are no i32";
  if (compares(o.mode) && (o.out.type != DATA_BOOLEAN || o.math != DATA_BOOLEAN))
    return "a comparison that is no boolean";
  if (o.mode == POINTWISE_BINARY_SELECT && o.in[2].type != DATA_BOOLEAN) return "a choice by no boolean";
  for (const Tensor& t : o.in)
    if (o.math == DATA_INT32 && t.type != DATA_INT32) return "i32 math of other types";
  return "";
}

double computed(const Operation& o, double x, double b, double t, const Config& config) {
  if (o.mode == config.ignores) return x;
  switch (o.mode) {
  case POINTWISE_ADD:
    return x + b;
  case POINTWISE_MUL:
    return x * b;
  case POINTWISE_MAX:
    return std::max(x, b);
  case POINTWISE_DIV:
    return x / b;
  case POINTWISE_SUB:
    return x - b;
  case POINTWISE_EXP:
    return std::exp(x);
  case POINTWISE_LOG:
    return std::log(x);
  case POINTWISE_TANH_FWD:
    return std::tanh(x);
  case POINTWISE_CMP_GT:
    return x > b;
  case POINTWISE_CMP_GE:
    return x + double(config.keys_beyond) >= b;
  case POINTWISE_CMP_LT:
    return x < b + double(config.keys_more);
  case POINTWISE_LOGICAL_AND:
    return x != 0 && b != 0;
  case POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

Values reduced(const Operation& o, Values& x) {
  Values out = zeros(o.out);
  if (o.mode == REDUCE_MAX) std::fill(out.x.begin(), out.x.end(), -std::numeric_limits<double>::infinity());
  for_each(o.in[0].sizes, [&](Four i) {
    const double one = x.at(i);
    for (size_t k = 0; k < 4; ++k)
      if (o.out.sizes[k] == 1) i[k] = 0;
    double& y = out.at(i);
    y = o.mode == REDUCE_ADD ? y + one : std::max(y, o.mode == REDUCE_AMAX ? std::fabs(one) : one);
  });
  return out;
}

/// By entry, what counts of a product's rows, columns or depth.
int64_t counted(const std::optional<Tensor>& of, std::map<int64_t, Values>& known, int64_t entry,
                int64_t all) {
  return of ? int64_t(known.at(of->uid).at({entry, 0, 0, 0})) : all;
}

/// What does not count is in no sum. What would be of it is 0.
Values multiplied(const Operation& o, std::map<int64_t, Values>& known, const Config& config) {
  Values out = zeros(o.out), &a = known.at(o.in[0].uid), &b = known.at(o.in[1].uid);
  const int64_t group = o.out.sizes[1] / o.in[1].sizes[1];
  const auto keys = [&](size_t which, int64_t entry, int64_t all) {
    const int64_t n = counted(o.counts[which], known, entry, all);
    return std::min(all, o.counts[which] ? n + config.keys_more : n);
  };
  for_each(o.out.sizes, [&](const Four& i) {
    if (i[2] >= counted(o.counts[0], known, i[0], o.out.sizes[2]) || i[3] >= keys(1, i[0], o.out.sizes[3]))
      return;
    double sum = 0;
    for (int64_t k = 0; k < keys(2, i[0], o.in[0].sizes[3]); ++k)
      sum += a.at({i[0], i[1], i[2], k}) * b.at({i[0], i[1] / group, k, i[3]});
    out.at(i) = rounded(o.out.type, sum);
  });
  return out;
}

/// Behind an entry's last key is no number, as nothing says what a library loads there.
Values loaded(const Operation& o, std::map<int64_t, Values>& known, const void* cache, const Config& config) {
  Values out = zeros(o.out), &lengths = known.at(o.in[1].uid), &table = known.at(o.in[2].uid);
  Tensor container = o.in[0];
  container.strides[0] += config.page_shift;
  for_each(o.out.sizes, [&](const Four& i) {
    const int64_t key = key_of(o, i), length = int64_t(lengths.at({i[0], 0, 0, 0})) + config.keys_more;
    const int64_t last = o.in[2].sizes[2] - 1, page = key / container.sizes[2] + config.page_beyond;
    const auto id = int64_t(table.at({i[0], 0, std::clamp<int64_t>(page, 0, last), 0}));
    double& x = out.at(i) = std::numeric_limits<double>::quiet_NaN();
    if (key >= length) return;
    if (id < 0 || id >= container.sizes[0])
      return state().complaints.push_back("page " + std::to_string(id) + " of " +
                                          std::to_string(container.sizes[0]));
    x = load(cache, container.type, offset(container.strides, place_in_cache(o, i, id)));
  });
  return out;
}

Values run(const Operation& o, std::map<int64_t, Values>& known, const Config& config) {
  Values out = zeros(o.out);
  std::vector<Values*> in;
  for (const Tensor& t : o.in) in.push_back(&known.at(t.uid));
  if (o.kind == Operation::product) return multiplied(o, known, config);
  if (o.kind == Operation::reduction) return reduced(o, *in[0]);
  for_each(o.out.sizes, [&](const Four& i) {
    const auto get = [&](size_t n) { return n < in.size() ? in[n]->get(i) : 0; };
    out.at(i) =
        rounded(o.out.type, o.mode == POINTWISE_GEN_INDEX ? double(i[size_t(o.axis)])
                                                          : computed(o, get(0), get(1), get(2), config));
  });
  return out;
}

/// Of all tensors of a graph, in the order in which operations have them.
template <typename Visit>
void for_tensors(const std::vector<Operation>& graph, Visit visit) {
  for (const Operation& o : graph) {
    for (const Tensor& t : o.read()) visit(t);
    visit(o.out);
  }
}

bool is_device_memory(const void* p, int64_t bytes) {
  void* begin = nullptr;
  size_t size = 0;
  if (!fake_hip::allocation_of(p, &begin, &size)) return false;
  return static_cast<const char*>(p) + bytes <= static_cast<char*>(begin) + size;
}

} // namespace

std::string fault_of(const std::vector<Operation>& graph) {
  std::set<int64_t> made;
  size_t products = 0;
  for (const Operation& o : graph) {
    if (const std::string why = fault_of(o); !why.empty()) return why;
    for (const Tensor& t : o.read())
      if (t.is_virtual && !made.count(t.uid)) return "a virtual tensor that nothing has made yet";
    if (o.out.by_value || !made.insert(o.out.uid).second) return "an output that is one already";
    products += o.kind == Operation::product;
  }
  const std::vector<Operation> rest = without_pages(graph);
  if (products != 2 || rest.front().kind != Operation::product) return "no attention: two products";
  if (const std::string why = fault_of_pages(graph); !why.empty()) return why;
  if (is_narrow(graph)) return fault_of_narrow(rest);
  if (graph.back().kind != Operation::product) return "no attention: the second product is not its end";
  if (graph.back().in[0].type != graph.front().in[0].type) return "weights of another type than Q";
  return "";
}

std::string fault_of(const std::vector<Operation>& graph, const std::map<int64_t, void*>& pointers) {
  std::set<int64_t> wanted;
  std::string why;
  for_tensors(graph, [&](const Tensor& t) {
    if (t.is_virtual) return;
    wanted.insert(t.uid);
    const auto found = pointers.find(t.uid);
    if (found == pointers.end() || !found->second) return void(why = "a tensor without memory");
    Four last = t.sizes;
    for (int64_t& x : last) --x;
    const bool there = is_device_memory(found->second, (offset(t.strides, last) + 1) * bytes_of(t.type));
    if (there == t.by_value) why = t.by_value ? "a value in device memory" : "a tensor outside device memory";
  });
  return why.empty() && pointers.size() != wanted.size() ? "memory of no tensor" : why;
}

std::function<void()> prepared(const std::vector<Operation>& graph, const std::map<int64_t, void*>& pointers,
                               const Config& config) {
  std::map<int64_t, Values> known;
  for_tensors(graph, [&](const Tensor& t) {
    if (!t.by_value) return;
    state().values.push_back(load(pointers.at(t.uid), t.type, 0));
    known[t.uid] = {t.sizes, {state().values.back()}};
  });
  return [=]() mutable {
    std::map<int64_t, Values> values = known;
    for (const Operation& o : graph) {
      const bool loads = o.kind == Operation::pages;
      for (const Tensor& t : o.read())
        if (!values.count(t.uid) && !(loads && t.uid == o.in[0].uid)) { // of a cache only what is asked for
          Values& v = values[t.uid] = zeros(t);
          for_each(t.sizes,
                   [&](const Four& i) { v.at(i) = load(pointers.at(t.uid), t.type, offset(t.strides, i)); });
        }
      Values& out = values[o.out.uid] =
          loads ? loaded(o, values, pointers.at(o.in[0].uid), config) : run(o, values, config);
      const bool last = &o == &last_of(graph);
      if (o.kind == Operation::reduction && !o.out.is_virtual) state().maxima.push_back(out.x.front());
      if (!o.out.is_virtual)
        for_each(o.out.sizes, [&](const Four& i) {
          store(pointers.at(o.out.uid), o.out.type, offset(o.out.strides, i),
                out.at(i) * (last ? config.factor : 1));
        });
    }
  };
}

} // namespace fake_cudnn
