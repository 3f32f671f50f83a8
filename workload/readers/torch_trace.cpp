// The trace of torch.profiler with record_shapes=True: JSON of events, one at a time in memory.
#include "base/json/json.h"
#include "base/text/error.h"
#include "workload/log/documents.h"
#include "workload/log/fields.h"
#include "workload/readers/blas.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace deepgen {
namespace {

constexpr int64_t kLongestEvent = int64_t(4) << 20;
constexpr size_t kMostEvents = 20'000'000;
constexpr int kDeepest = 100;

using Sizes = std::vector<int64_t>;

/// A call of an operator, whose time may come later: kernels stand behind it in the file.
struct Pending {
  Count* count;
  double flops, seconds;
  int64_t id, line; ///< an id of 0: none
};

class Trace {
public:
  Trace(LogLines& lines, std::string name, int64_t log, Tally& tally)
      : lines_(lines), name_(std::move(name)), log_(log), tally_(tally) {}

  int64_t read();
  int byte() {
    if (lines_.taken() - mark_ > kLongestEvent) refuse("an event has more than 4 MiB");
    return lines_.byte();
  }

private:
  bool seen(int depth, Json::parse_event_t event, Json& value);
  void take(const Json& event);
  void take_operator(const std::string& op, const Json& event);
  void count_all();
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error("cannot read log", name_, "it begins as a trace of PyTorch, and " + why,
                "get the trace again");
  }

  LogLines& lines_;
  std::string name_;
  int64_t log_, mark_ = 0;
  Tally& tally_;
  int events_depth_ = 1;
  bool in_events_ = true; ///< a list alone is one of events
  std::vector<Pending> pending_;
  std::unordered_map<int64_t, double> kernels_; ///< seconds by the id of the operator that launched them
};

/// What the JSON library reads from.
class Bytes {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit Bytes(Trace* trace = nullptr) : trace_(trace) { ++*this; }
  char operator*() const { return char(current_); }
  Bytes& operator++() {
    current_ = trace_ ? trace_->byte() : -1;
    return *this;
  }
  Bytes operator++(int) {
    Bytes before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Bytes& other) const { return (current_ < 0) == (other.current_ < 0); }
  bool operator!=(const Bytes& other) const { return !(*this == other); }

private:
  Trace* trace_;
  int current_ = -1;
};

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// The arguments of an operator.
class Arguments {
public:
  explicit Arguments(const Json& args) : args_(args) {}

  Sizes sizes(const char* what, size_t i) const {
    const Json* list = member(args_, what);
    if (!list)
      throw Untranslatable{std::string("the trace has no \"") + what + "\": record_shapes=True writes it"};
    if (!list->is_array() || i >= list->size() || !(*list)[i].is_array() || (*list)[i].size() > 8)
      throw Untranslatable{std::string("its ") + what + " are not understood"};
    Sizes sizes;
    for (const Json& each : (*list)[i]) {
      if (!is_a<int64_t>(each) || each.get<int64_t>() < 0 || each.get<int64_t>() > int64_t(1) << 50)
        throw Untranslatable{std::string("its ") + what + " are not understood"};
      sizes.push_back(each.get<int64_t>());
    }
    return sizes;
  }
  Sizes dims(size_t i) const { return sizes("Input Dims", i); }
  std::string type(size_t i) const {
    const Json* list = member(args_, "Input type");
    if (!list || !list->is_array() || i >= list->size() || !(*list)[i].is_string())
      throw Untranslatable{"the trace has no \"Input type\" of its arguments"};
    return (*list)[i].get<std::string>();
  }
  /// Empty where the trace does not have it.
  std::string concrete(size_t i) const {
    const Json* list = member(args_, "Concrete Inputs");
    if (!list || !list->is_array() || i >= list->size() || !(*list)[i].is_string()) return "";
    return (*list)[i].get<std::string>();
  }
  /// Whether the last two dimensions are stored the other way round. Throws Untranslatable for other strides.
  bool transposed(size_t i) const {
    const Sizes d = dims(i);
    const Sizes s = sizes("Input Strides", i);
    const size_t n = d.size();
    if (n < 2 || s.size() != n) throw Untranslatable{"its strides are not understood"};
    if (s[n - 1] == 1 || d[n - 1] == 1) return false;
    if (s[n - 2] == 1 || d[n - 2] == 1) return true;
    throw Untranslatable{"its matrices have strides in both dimensions"};
  }

private:
  const Json& args_;
};

/// [..., M, K] by [..., K, N], the arguments `a` and the one behind it.
Gemm product(const Arguments& args, size_t a, size_t dimensions, Call& call) {
  const Sizes da = args.dims(a), db = args.dims(a + 1);
  if (da.size() != dimensions || db.size() != dimensions || da[dimensions - 1] != db[dimensions - 2] ||
      (dimensions == 3 && da[0] != db[0]))
    throw Untranslatable{"the sizes of its matrices do not go together"};
  Gemm gemm;
  gemm.batch = dimensions == 3 ? da[0] : 1;
  gemm.m = da[dimensions - 2], gemm.k = da[dimensions - 1], gemm.n = db[dimensions - 1];
  call.flops = gemm.flops();
  gemm.a = type_of_log(args.type(a)), gemm.b = type_of_log(args.type(a + 1)), gemm.d = gemm.a;
  const bool ta = args.transposed(a), tb = args.transposed(a + 1);
  gemm.layout = ta ? (tb ? Layout::tt : Layout::tn) : (tb ? Layout::nt : Layout::nn);
  return gemm;
}

/// What is added: a vector for all rows is a bias, a matrix is C.
void read_addend(const Arguments& args, size_t i, const std::string& beta, Gemm& gemm) {
  const Sizes d = args.dims(i);
  const bool matrix = d.size() >= 2 && d[d.size() - 2] == gemm.m && d.back() == gemm.n && gemm.m > 1;
  if (matrix) return;
  const bool row = !d.empty() && d.back() == gemm.n && (d.size() == 1 || d[d.size() - 2] == 1);
  if (!row) throw Untranslatable{"the form of what it adds is not served"};
  if (!beta.empty() && number(beta) != 1.0) throw Untranslatable{"it scales its bias by " + shown(beta)};
  if (type_of_log(args.type(i)) != gemm.epilogue_type())
    throw Untranslatable{"its bias is " + shown(args.type(i)) + ", and DeepGen's would be " +
                         to_string(gemm.epilogue_type())};
  gemm.epilogue.push_back(EpilogueOp::bias);
}

/// self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum
Gemm scaled_product(const Arguments& args, Call& call) {
  Gemm gemm = product(args, 0, 2, call);
  const std::string out = args.concrete(6);
  if (out == "15")
    gemm.d = Type::bf16;
  else if (out == "5")
    gemm.d = Type::f16;
  else if (out == "6")
    gemm.d = Type::f32;
  else
    throw Untranslatable{"its out_dtype is " +
                         (out.empty() ? "not in the trace" : "not served: " + shown(out))};
  const auto count = [](const Sizes& d) {
    double n = 1;
    for (int64_t each : d) n *= double(each);
    return n;
  };
  const double a = count(args.dims(2)), b = count(args.dims(3));
  if (a == 1 && b == 1)
    gemm.epilogue = {EpilogueOp::scale_a, EpilogueOp::scale_b};
  else if (a == double(gemm.m) && b == double(gemm.n))
    gemm.epilogue = {EpilogueOp::scale_row, EpilogueOp::scale_col};
  else
    throw Untranslatable{"scales of blocks are not served"};
  if (!args.dims(4).empty()) read_addend(args, 4, "", gemm);
  return gemm;
}

Gemm translated(const std::string& op, const Arguments& args, Call& call) {
  if (op == "mm") return product(args, 0, 2, call);
  if (op == "bmm") return product(args, 0, 3, call);
  if (op == "_scaled_mm") return scaled_product(args, call);
  if (op == "_int_mm") {
    Gemm gemm = product(args, 0, 2, call);
    gemm.d = Type::i32;
    return gemm;
  }
  if (op == "addmm" || op == "baddbmm") {
    Gemm gemm = product(args, 1, op == "addmm" ? 2 : 3, call);
    read_addend(args, 0, args.concrete(3), gemm);
    return gemm;
  }
  throw Untranslatable{"its operator aten::" + op + " is not served"};
}

/// Those that call no other: linear and matmul do, and would count twice.
bool is_product(const std::string& op) {
  for (const char* known :
       {"mm", "bmm", "addmm", "baddbmm", "_scaled_mm", "_int_mm", "_addmm_activation", "_grouped_mm",
        "_scaled_grouped_mm", "addbmm", "_weight_int8pack_mm", "_weight_int4pack_mm"})
    if (op == known) return true;
  return false;
}

double seconds_of(const Json& event) {
  const Json* duration = member(event, "dur");
  if (!duration || !duration->is_number()) return 0;
  return std::clamp(duration->get<double>() * 1e-6, 0.0, kMostSeconds);
}

int64_t id_of(const Json& event) {
  const Json* args = member(event, "args");
  if (!args || !args->is_object()) return 0;
  const Json* id = member(*args, "External id");
  if (!id) id = member(*args, "external id");
  return id && is_a<int64_t>(*id) ? id->get<int64_t>() : 0;
}

std::string text_of(const Json& event, const char* key) {
  const Json* text = member(event, key);
  return text && text->is_string() ? text->get<std::string>() : "";
}

int64_t Trace::read() {
  const auto callback = [this](int depth, Json::parse_event_t event, Json& value) {
    return seen(depth, event, value);
  };
  try {
    const Json nothing = Json::parse(Bytes(this), Bytes(), callback); // each event is taken as it comes
  } catch (const Json::exception& e) {
    refuse(std::string("is no valid JSON, or is cut off: ") + e.what());
  }
  count_all();
  return int64_t(pending_.size());
}

/// Nothing but the event that is being read is kept.
bool Trace::seen(int depth, Json::parse_event_t event, Json& value) {
  using Event = Json::parse_event_t;
  if (depth > kDeepest) refuse("values are nested more than 100 deep");
  if (depth == 0 && event == Event::object_start) events_depth_ = 2, in_events_ = false;
  if (depth <= events_depth_) mark_ = lines_.taken();
  if (events_depth_ == 2 && depth == 1 && event == Event::key) {
    in_events_ = value == "traceEvents";
    return in_events_;
  }
  if (depth < events_depth_) return true;
  if (!in_events_) return false;
  if (depth > events_depth_) return true;
  if (event == Event::object_end) take(value);
  return event == Event::object_start;
}

void Trace::take(const Json& event) {
  const std::string category = text_of(event, "cat");
  if (category == "kernel" || category == "Kernel") {
    if (kernels_.size() < kMostEvents) kernels_[id_of(event)] += seconds_of(event);
    return;
  }
  const std::string name = text_of(event, "name");
  if (!name.starts_with("aten::") || !is_product(name.substr(6))) return;
  if (pending_.size() >= kMostEvents) refuse("it has more than 20 million products: trace fewer steps");
  take_operator(name.substr(6), event);
}

void Trace::take_operator(const std::string& op, const Json& event) {
  Call call;
  Count* count = nullptr;
  try {
    const Json* args = member(event, "args");
    if (!args || !args->is_object())
      throw Untranslatable{"the trace has no \"args\": record_shapes=True writes them"};
    finish(translated(op, Arguments(*args), call), call);
    count = &tally_.count(call.problem.key());
  } catch (const Untranslatable& reason) {
    count = &tally_.lost_count(reason.why, dump_json(event));
  }
  pending_.push_back({count, call.flops, seconds_of(event), id_of(event), lines_.number() + 1});
}

/// On a GPU an operator's own time is that of its launch.
void Trace::count_all() {
  for (const Pending& each : pending_) {
    double seconds = each.seconds;
    if (!kernels_.empty()) {
      const auto kernel = each.id ? kernels_.find(each.id) : kernels_.end();
      seconds = kernel == kernels_.end() ? 0 : kernel->second;
    }
    each.count->add(1, seconds, each.flops, {log_, each.line});
  }
}

} // namespace

bool is_torch_trace(std::string_view beginning) {
  if (beginning.starts_with('{')) { // unless a program logs its own lines as objects
    const size_t line = beginning.find('\n');
    return line == beginning.npos || line + 1 == beginning.size() ||
           !trimmed(beginning.substr(0, line)).ends_with('}');
  }
  if (!beginning.starts_with('[')) return false; // a log of cuBLASLt's begins so, too
  const size_t next = beginning.find_first_not_of(" \t\r\n", 1);
  return next != beginning.npos && beginning[next] == '{';
}

int64_t read_torch_trace(LogLines& lines, const std::string& name, int64_t log, Tally& tally) {
  return Trace(lines, name, log, tally).read();
}

} // namespace deepgen
