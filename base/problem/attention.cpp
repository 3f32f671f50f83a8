#include "base/problem/attention.h"

#include "base/problem/key_fields.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace deepgen {
namespace {

constexpr std::array<const char*, 4> kMasks = {"none", "causal", "causal_top_left", "window"};

/// An option of the key, in its order.
struct AttentionOption {
  const char* name;
  bool Attention::* set;
};
constexpr AttentionOption kAttentionOptions[] = {{"varlen", &Attention::varlen},
                                                 {"lse", &Attention::lse},
                                                 {"softcap", &Attention::softcap},
                                                 {"sink", &Attention::sink}};
enum class AttentionOptionName { varlen, lse, softcap, sink };

/// A size of the key, in its order.
struct AttentionSize {
  const char* name;
  int64_t Attention::* value;
  int64_t most;
};
constexpr AttentionSize kHeadSizes[] = {{"heads", &Attention::heads, most_attention_heads},
                                        {"kv_heads", &Attention::kv_heads, most_attention_heads},
                                        {"head_dim", &Attention::head_dim, most_head_dim},
                                        {"value_dim", &Attention::value_dim, most_head_dim}};
constexpr AttentionSize kTokenSizes[] = {{"queries", &Attention::queries, most_tokens},
                                         {"keys", &Attention::keys, most_tokens}};
constexpr AttentionSize kTunedSizes[] = {{"at_batch", &Attention::at_batch, most_attention_batch},
                                         {"at_queries", &Attention::at_queries, most_tokens},
                                         {"at_keys", &Attention::at_keys, most_tokens}};

std::string attention_options(const Attention& p) {
  std::string text;
  for (const AttentionOption& option : kAttentionOptions)
    if (p.*option.set) text += (text.empty() ? "" : "+") + std::string(option.name);
  return text.empty() ? "none" : text;
}

void check_attention_sizes(const Attention& p) {
  const auto check = [&](const auto& sizes) {
    for (const AttentionSize& size : sizes)
      if (p.*size.value < 1 || p.*size.value > size.most)
        throw Error("size out of range", std::string(size.name) + " = " + std::to_string(p.*size.value), "",
                    std::string(size.name) + " is an integer from 1 to " + std::to_string(size.most));
  };
  check(kHeadSizes), check(kTokenSizes), check(kTunedSizes);
}

std::string call_text(const Sizes& call) {
  return std::to_string(call.batch) + "x" + std::to_string(call.m) + "x" + std::to_string(call.n);
}

/// In keys: by their numbers, from the left.
std::string calls_text(std::vector<Sizes> calls) {
  std::sort(calls.begin(), calls.end(), [](const Sizes& x, const Sizes& y) {
    return std::tie(x.batch, x.m, x.n) < std::tie(y.batch, y.m, y.n);
  });
  std::string text;
  for (const Sizes& call : calls) text += (text.empty() ? "" : "+") + call_text(call);
  return text;
}

/// As points are (base/problem/points.h).
bool is_smaller(const Sizes& x, const Sizes& y) {
  const auto rank = [](const Sizes& s) {
    return std::tuple(double(s.m) * double(s.n) * double(s.batch), s.m, s.n);
  };
  return rank(x) < rank(y);
}

void tune_for(Attention& p, const Sizes& call) {
  p.at_batch = call.batch, p.at_queries = call.m, p.at_keys = call.n;
}

Sizes call_of(std::string_view text) {
  Sizes call;
  std::string_view rest = text;
  for (int64_t* size : {&call.batch, &call.m, &call.n}) {
    const size_t end = size == &call.n ? rest.size() : rest.find('x');
    if (end == std::string_view::npos)
      throw Error("'" + std::string(text) + "' is no call", "at", "",
                  "<batch>x<queries>x<keys>, such as 1x1024x1024");
    *size = KeyFields::number(rest.substr(0, end), "at");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return call;
}

/// "1x1x4096+8x1x4096"
void read_calls(std::string_view text, Attention& p) {
  while (true) {
    const size_t plus = text.find('+');
    p.calls.push_back(call_of(text.substr(0, plus)));
    if (plus == std::string_view::npos || p.calls.size() > most_attention_calls) break;
    text.remove_prefix(plus + 1);
  }
  std::sort(p.calls.begin(), p.calls.end(), is_smaller);
  tune_for(p, p.calls.back());
}

void check_calls(const Attention& p) {
  if (p.calls.empty()) return;
  const std::string text = calls_text(p.calls);
  if (p.calls.size() < 2 || p.calls.size() > most_attention_calls)
    throw Error(std::to_string(p.calls.size()) + " calls that it is tuned for", "at=" + text, "",
                "2 to " + std::to_string(most_attention_calls) +
                    "; for one, the fields at_batch, at_queries and at_keys");
  for (size_t i = 1; i < p.calls.size(); ++i)
    if (!is_smaller(p.calls[i - 1], p.calls[i]))
      throw Error("a call that it is tuned for is there twice, or in no order", "at=" + text,
                  call_text(p.calls[i]), "each call once (TUNE_AT)");
  for (const Sizes& call : p.calls) {
    Attention one = p;
    one.calls.clear(), one.one_call = false;
    tune_for(one, call);
    validate(one);
  }
}

void check_page(int64_t size) {
  if (size < 1 || size > most_page_size || (size & (size - 1)))
    throw Error("no size of a page", "page=" + std::to_string(size), "",
                "a power of two from 1 to " + std::to_string(most_page_size) +
                    "; without pages, leave out the field (PAGED)");
}

void check_splits(int64_t splits) {
  if (splits < 1 || splits > most_splits || (splits & (splits - 1)))
    throw Error("no number of splits", "splits=" + std::to_string(splits), "",
                "a power of two from 1 to " + std::to_string(most_splits) +
                    "; for one that the search finds, leave out the field (SPLIT_KEYS)");
}

/// "127,0"
std::string window_text(const Attention& p) {
  return std::to_string(p.at_left) + "," + std::to_string(p.at_right);
}

void check_window(const Attention& p) {
  const auto wrong = [&](const std::string& what, const std::string& where, const std::string& remedy) {
    throw Error(what, "window=" + window_text(p), where, remedy);
  };
  if (p.mask != AttentionMask::window)
    wrong("a window of a mask that has none", "mask=" + to_string(p.mask),
          "mask=window, or leave out the field (TUNE_WINDOW)");
  for (int64_t side : {p.at_left, p.at_right})
    if (side < -1 || side > most_tokens)
      wrong("an end of the window is out of range", std::to_string(side),
            "each an integer from 0 to " + std::to_string(most_tokens) + ", or -1 for no end (TUNE_WINDOW)");
  if (!p.windowed())
    wrong("a window without an end", "", "leave out the field, which is the same (TUNE_WINDOW)");
}

void read_window(std::string_view text, Attention& p) {
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos)
    throw Error("'" + std::string(text) + "' is no window", "window", "", "<left>,<right>, such as 127,0");
  p.at_left = KeyFields::number(text.substr(0, comma), "window");
  p.at_right = KeyFields::number(text.substr(comma + 1), "window");
  check_window(p);
}

/// How far from a query's number the keys are that it sees, in the call that it is tuned for: from `from` to
/// before `to`, where there is such an end.
struct SeenFrom {
  std::optional<int64_t> from, to;
  explicit SeenFrom(const Attention& p) {
    const int64_t shift = p.mask == AttentionMask::causal_top_left ? 0 : p.at_keys - p.at_queries;
    const bool window = p.mask == AttentionMask::window;
    if (window && p.at_left >= 0) from = shift - p.at_left;
    if (window && p.at_right >= 0) to = shift + p.at_right + 1;
    if (!window && p.mask != AttentionMask::none) to = shift + 1;
  }
};

/// Pairs of a query and a key that the call that it is tuned for looks at, of one head and entry.
double seen_pairs(const Attention& p) {
  const int64_t q = p.at_queries, k = p.at_keys;
  // The sum of i up to before x, each no less than 0 and no more than k.
  const auto ramp = [&](int64_t x) -> int64_t {
    if (x <= 0) return 0;
    return x <= k ? x * (x - 1) / 2 : k * (k - 1) / 2 + (x - k) * k;
  };
  const SeenFrom seen(p);
  const int64_t ends = seen.to ? ramp(q + *seen.to) - ramp(*seen.to) : q * k;
  const int64_t begins = seen.from ? ramp(q + *seen.from) - ramp(*seen.from) : 0;
  return double(ends - begins);
}

} // namespace

std::string to_string(AttentionMask mask) { return kMasks[size_t(mask)]; }

Sizes Attention::sizes() const { return {queries, keys, 1, most_attention_batch}; }

bool Attention::takes(const Sizes& call) const {
  const Sizes most = sizes();
  for (size_t i = 0; i < size_count; ++i)
    if (call[Size(i)] < 0 || call[Size(i)] > most[Size(i)]) return false;
  return call.k == 1;
}

Attention Attention::at(const Sizes& call) const {
  if (!takes(call) || std::min({call.m, call.n, call.batch}) < 1)
    throw Error("no call of this function", call_text(call), key(),
                "sizes from 1 on, up to its queries and keys, and a batch of at most " +
                    std::to_string(most_attention_batch));
  Attention one = *this;
  tune_for(one, call);
  one.one_call = !calls.empty();
  return one;
}

Attention Attention::alone(int64_t batch, int64_t most_queries, int64_t most_keys) const {
  Attention one = *this;
  one.calls.clear(), one.one_call = false;
  one.at_left = one.at_right = -1;
  tune_for(one, {most_queries, most_keys, 1, batch});
  return one;
}

std::pair<int64_t, int64_t> Attention::seen_keys(int64_t query) const {
  const SeenFrom seen(*this);
  const auto clamped = [&](int64_t x) { return std::clamp<int64_t>(x, 0, at_keys); };
  return {seen.from ? clamped(query + *seen.from) : 0, seen.to ? clamped(query + *seen.to) : at_keys};
}

double Attention::flops() const {
  return 2 * double(head_dim + value_dim) * double(heads) * double(at_batch) * seen_pairs(*this);
}

double Attention::most_work() const {
  return 2 * double(head_dim + value_dim) * double(heads) * double(most_attention_batch) * double(queries) *
         double(keys);
}

double Attention::bytes() const {
  // Windows of neighbouring queries meet: those of all hold the keys from the first to the last.
  const int64_t read = windowed() ? seen_keys(at_queries - 1).second - seen_keys(0).first : at_keys;
  const double rows_q = double(at_batch) * double(at_queries) * double(heads),
               rows_k = double(at_batch) * double(read) * double(kv_heads);
  return rows_q * double(head_dim * size_of(q) + value_dim * size_of(out) + (lse ? 4 : 0)) +
         rows_k * double((head_dim + value_dim) * size_of(kv)) + (sink ? 4 * double(heads) : 0) +
         (bias ? double(heads) * seen_pairs(*this) * double(size_of(*bias)) : 0);
}

std::string Attention::key() const {
  std::string text = "attention";
  const auto add = [&](const AttentionSize& size) {
    text += " " + std::string(size.name) + "=" + std::to_string(this->*size.value);
  };
  for (const AttentionSize& size : kHeadSizes) add(size);
  text +=
      " q=" + to_string(q) + " kv=" + to_string(kv) + " out=" + to_string(out) + " mask=" + to_string(mask);
  for (const AttentionSize& size : kTokenSizes) add(size);
  text += " options=" + attention_options(*this);
  if (bias) text += " bias=" + to_string(*bias);
  if (paged()) text += " page=" + std::to_string(page_size);
  if (splits) text += " splits=" + std::to_string(splits);
  if (windowed()) text += " window=" + window_text(*this);
  if (ranged()) return text + " at=" + calls_text(calls);
  for (const AttentionSize& size : kTunedSizes) add(size);
  return text;
}

Attention Attention::parse(std::string_view text) {
  constexpr std::array<const char*, 4> names = {kAttentionOptions[0].name, kAttentionOptions[1].name,
                                                kAttentionOptions[2].name, kAttentionOptions[3].name};
  Attention p;
  KeyFields fields(text, "heads kv_heads head_dim value_dim q kv out mask queries keys options [bias] "
                         "[page] [splits] [window] at_batch at_queries at_keys, or at");
  for (const AttentionSize& size : kHeadSizes) p.*size.value = fields.integer(size.name);
  p.q = fields.type("q");
  p.kv = fields.type("kv");
  p.out = fields.type("out");
  p.mask = fields.one_of<AttentionMask>("mask", kMasks);
  for (const AttentionSize& size : kTokenSizes) p.*size.value = fields.integer(size.name);
  for (AttentionOptionName option :
       fields.list_of<AttentionOptionName, std::vector<AttentionOptionName>>("options", names))
    p.*kAttentionOptions[size_t(option)].set = true;
  if (fields.next_is("bias")) p.bias = fields.type("bias");
  if (fields.next_is("page")) check_page(p.page_size = fields.integer("page"));
  if (fields.next_is("splits")) check_splits(p.splits = fields.integer("splits"));
  if (fields.next_is("window")) read_window(fields.text("window"), p);
  if (fields.next_is("at"))
    read_calls(fields.text("at"), p);
  else
    for (const AttentionSize& size : kTunedSizes) p.*size.value = fields.integer(size.name);
  fields.end();
  validate(p);
  return p;
}

void validate(const Attention& p) {
  check_attention_sizes(p);
  if (p.paged()) check_page(p.page_size);
  if (p.splits) check_splits(p.splits);
  if (p.at_left != -1 || p.at_right != -1) check_window(p);
  if (p.heads % p.kv_heads)
    throw Error("heads are no multiple of kv_heads",
                "heads=" + std::to_string(p.heads) + " kv_heads=" + std::to_string(p.kv_heads), "",
                "as many heads of Q share each head of K and V");
  const auto is_served = [](Type type) {
    return type == Type::f32 || type == Type::f16 || type == Type::bf16;
  };
  const bool narrow = p.q == Type::e4m3 && p.kv == Type::e4m3;
  if ((!narrow && (!is_served(p.q) || !is_served(p.kv))) || !is_served(p.out))
    throw Error("this combination of types is not served",
                "q=" + to_string(p.q) + " kv=" + to_string(p.kv) + " out=" + to_string(p.out), "",
                "each is f32, f16 or bf16; Q, K and V may all be e4m3");
  if (p.bias && !is_served(*p.bias))
    throw Error("this type of a bias is not served", "bias=" + to_string(*p.bias), "",
                "f32, f16 or bf16 (BIAS)");
  if (p.at_queries > p.queries || p.at_keys > p.keys)
    throw Error("the call that it is tuned for is beyond its sizes",
                "at_queries=" + std::to_string(p.at_queries) + " at_keys=" + std::to_string(p.at_keys),
                "queries=" + std::to_string(p.queries) + " keys=" + std::to_string(p.keys),
                "raise these, or lower those");
  check_calls(p);
}

} // namespace deepgen
