#include "measure/values/inputs.h"

#include "base/text/memory.h"
#include "measure/values/operands.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace deepgen {
namespace {

constexpr size_t kPage = 4096, kColourBytes = 17 * 64, kBehindLine = 16;

/// splitmix64
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Seeds of streams: A, B, C, bias, then one for each other operand.
uint64_t stream(uint64_t seed, EpilogueOp op) {
  return op == EpilogueOp::bias ? 4 * seed + 3 : 4 * seed + ((1 + uint64_t(op)) << 40);
}

/// From y uniform in [-1, 1).
double scale(double y) { return std::exp2(2 * std::fabs(y) - 1) * (y < 0 ? -1 : 1); }

template <typename T>
void fill_as(char* data, size_t count, uint64_t seed, bool scales) {
  T* out = reinterpret_cast<T*>(data);
  for (size_t i = 0; i < count; ++i) out[i] = T(scales ? scale(uniform(seed, i)) : uniform(seed, i));
}

/// From y uniform in [-1, 1).
double whole(Type type, double y) {
  return std::floor(type == Type::u8 ? (y + 1) * 128 : y * (type == Type::i8 ? 128 : 1000));
}

PageBuffer values(Type type, int64_t count, uint64_t seed, int colour, bool scales = false) {
  PageBuffer buffer(size_t(count * size_of(type)), colour, Begins::as_malloc);
  if (type == Type::f32)
    fill_as<float>(buffer.data(), size_t(count), seed, scales);
  else if (type == Type::f64)
    fill_as<double>(buffer.data(), size_t(count), seed, scales);
  else
    for (int64_t i = 0; i < count; ++i) {
      const double y = uniform(seed, uint64_t(i));
      const bool integer = is_integer(type) || type == Type::i32;
      encode(type, integer ? whole(type, y) : scales ? scale(y) : y, buffer.data(), i);
    }
  return buffer;
}

/// Of sums with alpha 1, in terms of those of values in [-1, 1).
double sum_scale(const Gemm& p) { return is_integer(p.a) ? 128.0 * 128.0 : is_integer(p.b) ? 128 : 1; }

double unit_alpha_of(const Gemm& p) {
  if (!is_integer(p.b) || p.d == Type::i32) return 1;
  if (!p.gate && p.d != Type::i8 && p.epilogue.empty()) return 1; // exact, but for the rounding
  const double typical = std::sqrt(double(p.k)) / 3 * sum_scale(p);
  return std::exp2(std::floor(std::log2((p.gate ? 2 : p.d == Type::i8 ? 40 : 8) / typical)));
}

/// A sample of what clamp gets: near-normal sums with K products' deviation, sqrt(K) / 3, and the steps
/// before it.
std::vector<double> before_clamp(const Gemm& p, uint64_t seed, double unit_alpha) {
  constexpr size_t kSamples = 1000;
  std::vector<double> out(kSamples);
  for (size_t i = 0; i < kSamples; ++i) {
    const auto sum = [&](uint64_t number) {
      double x = 0;
      for (uint64_t j = 0; j < 6; ++j) // variance 1/3 each
        x += uniform(stream(seed, EpilogueOp::clamp), 6 * number + j);
      return x * std::sqrt(double(p.k)) / (3 * M_SQRT2) * (sum_scale(p) * unit_alpha);
    };
    double x = sum(i);
    if (p.gate) x = apply_step(*p.gate, sum(kSamples + i), 0, 0, 0) * x;
    for (EpilogueOp op : p.epilogue) {
      if (op == EpilogueOp::clamp) break;
      double y = 0;
      for (const StepOperand& operand : operands_of(p))
        if (operand.op == op) y = uniform(stream(seed, op), i % size_t(operand.count()));
      x = apply_step(op, x, is_scale(op) ? scale(y) : y, 0, 0);
    }
    out[i] = x;
  }
  std::sort(out.begin(), out.end());
  return out;
}

} // namespace

double uniform(uint64_t seed, uint64_t index) {
  return double(int64_t(mix(seed * 0x2545f4914f6cdd1du + index) >> 40)) * 0x1p-23 - 1.0;
}

PageBuffer::PageBuffer(size_t bytes, int colour, Begins begins) : size_(bytes) {
  const size_t behind = begins == Begins::as_malloc ? kBehindLine : 0;
  const size_t shift = size_t(colour) * kColourBytes % kPage + behind;
  mapped_ = (bytes + shift + kPage - 1) / kPage * kPage;
  if (!mapped_) return;
  pages_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages_ == MAP_FAILED) {
    pages_ = nullptr;
    throw no_memory("not enough memory to measure", "an operand", int64_t(mapped_), errno);
  }
  data_ = static_cast<char*>(pages_) + shift;
}

PageBuffer::~PageBuffer() {
  if (pages_) munmap(pages_, mapped_);
}

void PageBuffer::swap(PageBuffer& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(mapped_, other.mapped_);
  std::swap(size_, other.size_);
  std::swap(data_, other.data_);
}

Inputs::Inputs(const Gemm& p, uint64_t seed, bool with_c)
    : a(values(p.a, p.m * p.k * p.batch, 4 * seed, 1)),
      b(values(p.b, p.k * p.sum_columns() * p.batch, 4 * seed + 1, 2)) {
  if (with_c) c = values(p.d, p.m * p.n * p.batch, 4 * seed + 2, 4);
  int colour = 3;
  for (const StepOperand& operand : operands_of(p)) {
    const bool scales = is_scale(operand.op);
    operands[size_t(operand.op)] =
        values(operand.type, operand.count(), stream(seed, operand.op), colour, scales);
    colour = std::max(6, colour + 1); // C is 4, D is 5
  }
  unit_alpha = unit_alpha_of(p);
  if (!p.has(EpilogueOp::clamp)) return;
  const std::vector<double> sample = before_clamp(p, seed, unit_alpha);
  clamp_low = float(sample[sample.size() / 8]), clamp_high = float(sample[sample.size() * 7 / 8]);
}

} // namespace deepgen
