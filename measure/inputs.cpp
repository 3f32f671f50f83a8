#include "measure/inputs.h"

#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace deepgen {
namespace {

constexpr size_t kPage = 4096, kColourBytes = 17 * 64;

/// splitmix64
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
void fill_as(char* data, size_t count, uint64_t seed) {
  T* out = reinterpret_cast<T*>(data);
  for (size_t i = 0; i < count; ++i)
    out[i] = T(uniform(seed, i));
}

PageBuffer values(Type type, int64_t count, uint64_t seed, int colour) {
  PageBuffer buffer(size_t(count * size_of(type)), colour);
  if (type == Type::f32)
    fill_as<float>(buffer.data(), size_t(count), seed);
  else
    fill_as<double>(buffer.data(), size_t(count), seed);
  return buffer;
}

} // namespace

double uniform(uint64_t seed, uint64_t index) {
  return double(int64_t(mix(seed * 0x2545f4914f6cdd1du + index) >> 40)) * 0x1p-23 - 1.0;
}

PageBuffer::PageBuffer(size_t bytes, int colour) : size_(bytes) {
  const size_t shift = size_t(colour) * kColourBytes % kPage;
  mapped_ = (bytes + shift + kPage - 1) / kPage * kPage;
  if (!mapped_)
    return;
  pages_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages_ == MAP_FAILED) {
    pages_ = nullptr;
    throw Error("not enough memory to measure", std::to_string(mapped_) + " bytes", std::strerror(errno),
                "measure on a host with more memory, or tune a smaller problem");
  }
  data_ = static_cast<char*>(pages_) + shift;
}

PageBuffer::~PageBuffer() {
  if (pages_)
    munmap(pages_, mapped_);
}

void PageBuffer::swap(PageBuffer& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(mapped_, other.mapped_);
  std::swap(size_, other.size_);
  std::swap(data_, other.data_);
}

Inputs::Inputs(const Problem& p, uint64_t seed, bool with_c)
    : a(values(p.a, p.m * p.k * p.batch, 4 * seed, 1)), b(values(p.b, p.k * p.n * p.batch, 4 * seed + 1, 2)),
      bias(values(p.d, p.n, 4 * seed + 3, 3)) {
  if (with_c)
    c = values(p.d, p.m * p.n * p.batch, 4 * seed + 2, 4);
}

} // namespace deepgen
