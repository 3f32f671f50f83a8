#include "runtime/cpu/verify.h"
#include "runtime/cpu/verify_values.h"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr double unit = 0x1p-24;

/// The pages of all entries, last first.
struct PageTable {
  int32_t* ids = nullptr;
  int64_t size = 0, of_entry = 0, count = 0; ///< tokens of a page; pages
  ~PageTable() { std::free(ids); }

  bool make(const deepgen_function& f, const int64_t* sizes) {
    size = page_size_of(f.problem);
    if (!size) return true;
    of_entry = (sizes[1] + size - 1) / size, count = of_entry * sizes[3];
    ids = static_cast<int32_t*>(std::malloc(size_t(count ? 4 * count : 4)));
    for (int64_t i = 0; ids && i < count; ++i) ids[i] = int32_t(count - 1 - i);
    return ids;
  }
};

/// Memory of an operand, [entry, token, head, dimension] with gaps behind tokens where it is padded, or of
/// pages instead of entries. Inputs are multiples of 1/64 in [-2, 2), outputs bytes of 0xff.
struct TokenBuffer {
  void* data = nullptr;
  const deepgen_operand* operand = nullptr;
  int64_t tokens = 0, entries = 0, stride = 0; ///< from one token to the next
  const PageTable* pages = nullptr;
  ~TokenBuffer() { std::free(data); }

  bool make(const deepgen_function& f, uint8_t slot, bool padded, const int64_t* sizes,
            const PageTable* table = nullptr) {
    operand = find_operand(f, slot);
    if (!operand) return true;
    tokens = scaled(operand->rows, operand->rows_by, sizes), entries = operand->entries_by ? sizes[3] : 1;
    if (table && table->size) pages = table, tokens = table->size, entries = table->count;
    stride = operand->entries * operand->columns + (padded ? 3 : 0);
    const int64_t count = entries * tokens * stride, bytes = count * int64_t(size_of(operand->type));
    data = std::malloc(size_t(bytes ? bytes : 1));
    if (!data) return false;
    std::memset(data, 0xff, size_t(bytes));
    uint64_t seed = slot;
    for (int64_t i = 0; !(operand->flags & DEEPGEN_OPERAND_OUT) && i < count; ++i)
      encode(data, operand->type, i, float(int64_t(next_random(seed)) >> 56) / 64);
    return true;
  }
  double at(int64_t entry, int64_t token, int64_t head, int64_t column) const {
    if (pages) entry = pages->ids[entry * pages->of_entry + token / tokens], token %= tokens;
    return decode(data, operand->type, (entry * tokens + token) * stride + head * operand->columns + column);
  }
  int64_t heads() const { return operand->entries; }
  int64_t columns() const { return operand->columns; }
};

/// A bias, [entry, head, query, key] with gaps behind rows where it is padded, which are NaN. Multiples of
/// 1/64 in [-2, 2), but of each row the second key is hidden.
struct BiasBuffer {
  void* data = nullptr;
  const deepgen_operand* operand = nullptr;
  int64_t queries = 0, heads = 0, stride = 0; ///< from one query to the next
  ~BiasBuffer() { std::free(data); }

  bool make(const deepgen_function& f, bool padded, const int64_t* sizes) {
    operand = find_operand(f, DEEPGEN_ARG_BIAS);
    if (!operand) return true;
    queries = sizes[0], heads = operand->entries, stride = sizes[1] + (padded ? 3 : 0);
    const int64_t rows = sizes[3] * heads * queries, bytes = rows * stride * int64_t(size_of(operand->type));
    data = std::malloc(size_t(bytes ? bytes : 1));
    if (!data) return false;
    std::memset(data, 0xff, size_t(bytes));
    uint64_t seed = DEEPGEN_ARG_BIAS;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < sizes[1]; ++j)
        if (j == 1)
          hide(r * stride + j);
        else
          encode(data, operand->type, r * stride + j, float(int64_t(next_random(seed)) >> 56) / 64);
    return true;
  }
  double at(int64_t b, int64_t h, int64_t t, int64_t j) const {
    return decode(data, operand->type, ((b * heads + h) * queries + t) * stride + j);
  }

private:
  void hide(int64_t i) {
    const uint32_t bits = operand->type == DEEPGEN_F16 ? 0xfc00 : 0xff800000;
    const uint32_t stored = operand->type == DEEPGEN_BF16 ? bits >> 16 : bits;
    std::memcpy(static_cast<char*>(data) + i * int64_t(size_of(operand->type)), &stored,
                size_of(operand->type));
  }
};

/// Elements as numbers. Each of K and V is read by many queries: decoded where they are read, that takes most
/// of the time.
struct Numbers {
  double* data = nullptr;
  ~Numbers() { std::free(data); }

  bool make(int64_t count) {
    return (data = static_cast<double*>(std::malloc(size_t(count ? count : 1) * sizeof(double))));
  }
  void fill(const TokenBuffer& from, int64_t entry, int64_t token, int64_t count, int64_t head) {
    for (int64_t j = 0; j < count; ++j)
      for (int64_t d = 0; d < from.columns(); ++d)
        data[j * from.columns() + d] = from.at(entry, token + j, head, d);
  }
};

class AttentionCheck {
public:
  AttentionCheck(const deepgen_function& f, bool padded, const int64_t* sizes)
      : f_(f), sizes_(sizes), padded_(padded), causal_(is("causal")), top_left_(is("causal_top_left")),
        window_(is("window")) {}

  bool make() {
    return pages_.make(f_, sizes_) && q_.make(f_, DEEPGEN_ARG_Q, padded_, sizes_) &&
           k_.make(f_, DEEPGEN_ARG_KEY, padded_, sizes_, &pages_) &&
           v_.make(f_, DEEPGEN_ARG_VALUE, padded_, sizes_, &pages_) &&
           o_.make(f_, DEEPGEN_ARG_OUT, padded_, sizes_) && lse_.make(f_, DEEPGEN_ARG_LSE, false, sizes_) &&
           sink_.make(f_, DEEPGEN_ARG_SINK, false, sizes_) && bias_.make(f_, padded_, sizes_);
  }
  bool has_operands() const { return q_.operand && k_.operand && v_.operand && o_.operand; }
  bool make_numbers() {
    return q_row_.make(q_.columns()) && k_head_.make(sizes_[1] * k_.columns()) &&
           v_head_.make(sizes_[1] * v_.columns()) && values_.make(o_.columns()) &&
           magnitudes_.make(o_.columns());
  }

  deepgen_status call() {
    deepgen_attention_args args;
    args.q = q_.data, args.key = k_.data, args.value = v_.data, args.out = o_.data, args.lse = lse_.data;
    args.bias = bias_.data, args.bias_query = bias_.stride; // what follows from it: 0
    args.sink = sink_.data, args.page_table = pages_.ids;
    args.max_queries = sizes_[0], args.max_keys = sizes_[1], args.batch = sizes_[3];
    args.q_token = q_.stride, args.key_token = k_.stride, args.value_token = v_.stride;
    args.out_token = o_.stride;
    if (lse_.operand) { // heads within tokens, as all others here
      args.lse_token = lse_.stride, args.lse_head = 1;
      args.lse_batch = lse_.tokens * lse_.stride;
    }
    if (padded_ && find_operand(f_, DEEPGEN_ARG_SOFTCAP)) args.softcap = softcap_ = 3;
    if (window_) args.window_left = left_, args.window_right = right_;
    return deepgen_run_attention(&f_, &args);
  }

  bool is_right(Finding& finding) {
    for (int64_t b = 0; b < sizes_[3]; ++b)
      for (int64_t h = 0; h < o_.heads(); ++h) {
        k_head_.fill(k_, b, 0, sizes_[1], h / (q_.heads() / k_.heads()));
        v_head_.fill(v_, b, 0, sizes_[1], h / (q_.heads() / v_.heads()));
        for (int64_t t = 0; t < sizes_[0]; ++t, finding.checked += o_.columns())
          if (!row_is_right(b, h, t, finding)) return false;
      }
    return true;
  }

private:
  bool is(const char* mask) const {
    const char* text = std::strstr(f_.problem, " mask=");
    const size_t length = std::strlen(mask);
    return text && std::strncmp(text + 6, mask, length) == 0 && text[6 + length] == ' ';
  }
  bool sees(int64_t t, int64_t j) const {
    const int64_t shift = sizes_[1] - sizes_[0];
    if (causal_) return j <= t + shift;
    if (top_left_) return j <= t;
    return !window_ || (j >= t + shift - left_ && j <= t + shift + right_);
  }
  double score(int64_t b, int64_t h, int64_t t, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < q_.columns(); ++d) sum += q_row_.data[d] * k_head_.data[j * k_.columns() + d];
    sum /= std::sqrt(double(q_.columns()));
    if (softcap_ != 0) sum = softcap_ * std::tanh(sum / softcap_);
    return bias_.operand ? sum + bias_.at(b, h, t, j) : sum;
  }

  /// Of a row of D, and of their absolute values: sums of V by the weights `p`.
  void sum_values(const double* p) {
    double *values = values_.data, *magnitudes = magnitudes_.data;
    for (int64_t d = 0; d < o_.columns(); ++d) values[d] = magnitudes[d] = 0;
    for (int64_t j = 0; j < sizes_[1]; ++j) {
      if (!(p[j] > 0)) continue;
      const double* v = v_head_.data + j * v_.columns();
      for (int64_t d = 0; d < o_.columns(); ++d) {
        const double x = p[j] * v[d];
        values[d] += x, magnitudes[d] += std::fabs(x);
      }
    }
  }

  /// Scores are below 4 * sqrt(D) and are sums of exact products: their error is that of the sum.
  bool row_is_right(int64_t b, int64_t h, int64_t t, Finding& finding) {
    constexpr int64_t most_keys = 512;
    q_row_.fill(q_, b, t, 1, h);
    double p[most_keys], most = sink_.operand ? sink_.at(0, 0, 0, h) : -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < sizes_[1]; ++j) {
      p[j] = sees(t, j) ? score(b, h, t, j) : -HUGE_VAL;
      most = std::fmax(most, p[j]);
    }
    if (sink_.operand) sum = std::exp(sink_.at(0, 0, 0, h) - most);
    for (int64_t j = 0; j < sizes_[1]; ++j)
      if (p[j] > -HUGE_VAL)
        p[j] = std::exp(p[j] - most), sum += p[j];
      else
        p[j] = 0;
    const double error =
        (64 + 32 * std::sqrt(double(q_.columns())) + std::sqrt(double(sizes_[1]))) * unit * 8;
    const uint8_t type = o_.operand->type;
    const double half = type == DEEPGEN_F16 ? 0x1p-11 : type == DEEPGEN_BF16 ? 0x1p-8 : unit;
    sum_values(p);
    for (int64_t d = 0; d < o_.columns(); ++d) {
      double value = values_.data[d], magnitude = magnitudes_.data[d];
      if (sum > 0) value /= sum, magnitude /= sum;
      if (const double found = o_.at(b, t, h, d);
          !(std::fabs(found - value) <= error * magnitude + half * std::fabs(value) + 0x1p-25))
        return wrong("out", b, t, h, d, found, value, finding);
    }
    if (!lse_.operand) return true;
    const double value = sum > 0 ? most + std::log(sum) : -HUGE_VAL, found = lse_.at(b, t, h, 0);
    return found == value || std::fabs(found - value) <= error * (1 + std::fabs(value)) ||
           wrong("lse", b, t, h, 0, found, value, finding);
  }

  static bool wrong(const char* what, int64_t b, int64_t t, int64_t h, int64_t d, double found,
                    double expected, Finding& finding) {
    std::snprintf(finding.text, sizeof finding.text, "%s[%lld, %lld, %lld, %lld] is %.9g, expected %.9g",
                  what, (long long)b, (long long)t, (long long)h, (long long)d, found, expected);
    return false;
  }

  const deepgen_function& f_;
  const int64_t* sizes_;
  const bool padded_, causal_, top_left_, window_;
  static constexpr int64_t left_ = 37, right_ = 5; ///< of a window
  double softcap_ = 0;
  PageTable pages_;
  TokenBuffer q_, k_, v_, o_, lse_, sink_;
  BiasBuffer bias_;
  Numbers q_row_, k_head_, v_head_, values_, magnitudes_; ///< one row; all keys of an entry's head
};

} // namespace

void verify_attention(const deepgen_function& f, bool padded, const int64_t* sizes, Finding& finding) {
  AttentionCheck check(f, padded, sizes);
  finding.status = DEEPGEN_ERROR_WORKSPACE, finding.checked = 0;
  if (!check.make()) return;
  finding.status = DEEPGEN_ERROR_ARGUMENT;
  if (!check.has_operands()) return;
  finding.status = DEEPGEN_ERROR_WORKSPACE;
  if (!check.make_numbers()) return;
  if ((finding.status = check.call())) return;
  if (!check.is_right(finding)) finding.status = DEEPGEN_ERROR_WRONG_RESULT;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
