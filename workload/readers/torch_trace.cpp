// The trace of torch.profiler with record_shapes=True: JSON of events.
#include "workload/log/documents.h"
#include "workload/log/fields.h"
#include "workload/log/json_events.h"
#include "workload/readers/blas.h"
#include "workload/readers/torch_event.h"

#include <algorithm>
#include <unordered_map>

namespace deepgen {
namespace {

constexpr size_t kMostEvents = 20'000'000;
constexpr std::string_view kAten = "aten::";

/// A call of an operator, whose time may come later: kernels stand behind it in the file.
struct Pending {
  Count* count;
  double flops, seconds;
  int64_t id, line; ///< an id of 0: none
};

class Trace {
public:
  explicit Trace(Tally& tally, int64_t log) : tally_(tally), log_(log) {}

  /// False when it is one too many.
  bool take(const TorchEvent& event, std::string_view text, int64_t line);
  int64_t count_all();

private:
  Tally& tally_;
  int64_t log_;
  std::vector<Pending> pending_;
  std::unordered_map<int64_t, double> kernels_; ///< seconds by the id of the operator that launched them
};

/// The arguments of an operator.
class Arguments {
public:
  explicit Arguments(const TorchEvent& event) : event_(event) {}

  std::span<const int64_t> dims(size_t i) const { return sizes(event_.dims, "Input Dims", i); }
  std::string_view type(size_t i) const {
    if (i >= event_.types.size() || event_.types[i].empty())
      throw Untranslatable{"the trace has no \"Input type\" of its arguments"};
    return event_.types[i];
  }
  /// Empty where the trace does not have it.
  std::string_view concrete(size_t i) const {
    return i < event_.concrete.size() ? std::string_view(event_.concrete[i]) : std::string_view();
  }
  /// Whether the last two dimensions are stored the other way round. Throws Untranslatable for other strides.
  bool transposed(size_t i) const {
    const auto d = dims(i), s = sizes(event_.strides, "Input Strides", i);
    const size_t n = d.size();
    if (n < 2 || s.size() != n) throw Untranslatable{"its strides are not understood"};
    if (s[n - 1] == 1 || d[n - 1] == 1) return false;
    if (s[n - 2] == 1 || d[n - 2] == 1) return true;
    throw Untranslatable{"its matrices have strides in both dimensions"};
  }

private:
  static std::span<const int64_t> sizes(const SizeLists& lists, const char* what, size_t i) {
    if (!lists.there)
      throw Untranslatable{std::string("the trace has no \"") + what + "\": record_shapes=True writes it"};
    if (i >= lists.items.size() || !lists.items[i].good)
      throw Untranslatable{std::string("its ") + what + " are not understood"};
    return lists.of(lists.items[i]);
  }

  const TorchEvent& event_;
};

/// [..., M, K] by [..., K, N], the arguments `a` and the one behind it.
Gemm product(const Arguments& args, size_t a, size_t dimensions, Call& call) {
  const auto da = args.dims(a), db = args.dims(a + 1);
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
void read_addend(const Arguments& args, size_t i, std::string_view beta, Gemm& gemm) {
  const auto d = args.dims(i);
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
  const std::string_view out = args.concrete(6);
  if (out == "15")
    gemm.d = Type::bf16;
  else if (out == "5")
    gemm.d = Type::f16;
  else if (out == "6")
    gemm.d = Type::f32;
  else
    throw Untranslatable{"its out_dtype is " +
                         (out.empty() ? "not in the trace" : "not served: " + shown(out))};
  const auto count = [](std::span<const int64_t> d) {
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

Gemm translated(std::string_view op, const Arguments& args, Call& call) {
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
  throw Untranslatable{"its operator aten::" + std::string(op) + " is not served"};
}

/// Those that call no other: linear and matmul do, and would count twice.
bool is_product(std::string_view op) {
  for (const char* known :
       {"mm", "bmm", "addmm", "baddbmm", "_scaled_mm", "_int_mm", "_addmm_activation", "_grouped_mm",
        "_scaled_grouped_mm", "addbmm", "_weight_int8pack_mm", "_weight_int4pack_mm"})
    if (op == known) return true;
  return false;
}

double seconds_of(const TorchEvent& event) { return std::clamp(event.duration * 1e-6, 0.0, kMostSeconds); }

/// The beginning, as an example; blanks for the line breaks of a trace that is written for people.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 400));
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return line;
}

bool Trace::take(const TorchEvent& event, std::string_view text, int64_t line) {
  if (event.category == "kernel" || event.category == "Kernel") {
    if (kernels_.size() < kMostEvents) kernels_[event.id] += seconds_of(event);
    return true;
  }
  std::string_view op = event.name;
  if (!op.starts_with(kAten) || !is_product(op.substr(kAten.size()))) return true;
  if (pending_.size() >= kMostEvents) return false;
  op.remove_prefix(kAten.size());
  Call call;
  Count* count = nullptr;
  try {
    if (!event.has_args) throw Untranslatable{"the trace has no \"args\": record_shapes=True writes them"};
    finish(translated(op, Arguments(event), call), call);
    count = &tally_.count(call.problem.key());
  } catch (const Untranslatable& reason) {
    count = &tally_.lost_count(reason.why, one_line(text));
  }
  pending_.push_back({count, call.flops, seconds_of(event), event.id, line});
  return true;
}

/// On a GPU an operator's own time is that of its launch.
int64_t Trace::count_all() {
  for (const Pending& each : pending_) {
    double seconds = each.seconds;
    if (!kernels_.empty()) {
      const auto kernel = each.id ? kernels_.find(each.id) : kernels_.end();
      seconds = kernel == kernels_.end() ? 0 : kernel->second;
    }
    each.count->add(1, seconds, each.flops, {log_, each.line});
  }
  return int64_t(pending_.size());
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
  Trace trace(tally, log);
  JsonEvents events(lines, {"traceEvents", name, "it begins as a trace of PyTorch", "get the trace again"});
  TorchEvent event;
  events.read([&](std::string_view text, int64_t line) {
    std::string why = event.read(text);
    if (why.empty() && !trace.take(event, text, line))
      events.refuse("it has more than 20 million products: trace fewer steps");
    return why;
  });
  return trace.count_all();
}

} // namespace deepgen
