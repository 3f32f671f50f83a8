// B packed ahead of calls: what packs it, and what is refused.
#include "base/problem/packed_b.h"
#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

using deepgen::Gemm;
using deepgen::Layout;
using deepgen::Type;

uint64_t seen_b = 0;
void note_b(const uint64_t* args) { seen_b = args[0]; }

struct Free {
  void operator()(char* x) const { std::free(x); }
};
/// Aligned to 64 bytes and of exactly so many: AddressSanitizer sees what reads or writes beyond.
using Memory = std::unique_ptr<char, Free>;
Memory memory(size_t bytes) {
  void* x = nullptr;
  if (posix_memalign(&x, 64, bytes)) throw std::bad_alloc();
  std::memset(x, 0x5a, bytes);
  return Memory(static_cast<char*>(x));
}

/// A function that takes its B packed.
struct Function {
  explicit Function(Gemm p) {
    p.packed_b = true;
    complete(p);
    key = p.key();
    description = {
        deepgen::packed_layout_id(p), p.n, p.k, p.batch, uint8_t(p.b), p.b_transposed(), p.gate.has_value()};
    kernel.arch = "cpu", kernel.config = "none", kernel.isa = 1, kernel.entry = note_b;
    kernel.args = slots, kernel.arg_count = 1, kernel.packed_b = description.layout;
    kernel.tiles_m = kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
    f.name = "lib_f", f.problem = key.c_str(), f.kernels = &kernel, f.kernel_count = 1,
    f.selected = &selected;
    f.packed_b = &description;
    operands.set(f, p);
    size = deepgen_packed_b_size(&f);
  }
  Function(const Function&) = delete;

  static constexpr uint8_t slots[] = {DEEPGEN_ARG_B};
  std::string key;
  deepgen_packed_b description{};
  deepgen_kernel kernel{};
  const deepgen_kernel* selected = nullptr;
  deepgen_function f{};
  deepgen::RuntimeOperands operands;
  size_t size = 0;
};

Gemm problem(Type type, int64_t n, int64_t k, Layout layout = Layout::nt, int64_t batch = 1) {
  Gemm p;
  p.m = 3, p.n = n, p.k = k, p.batch = batch, p.layout = layout, p.a = p.b = p.d = type;
  if (type == Type::i8) p.d = Type::f32;
  return p;
}

std::vector<float> numbers(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = float(i + 1);
  return x;
}

/// Runs the function on this B.
deepgen_status run(Function& x, const void* b) {
  static std::vector<double> matrix(1 << 16);
  deepgen_gemm_args args;
  args.a = matrix.data(), args.d = matrix.data() + (1 << 15), args.b = b;
  args.ldb = -5, args.stride_b = -7; // are ignored
  return deepgen_run_gemm(&x.f, &args);
}
std::string finding(Function& x, const void* packed, size_t bytes, deepgen_status expected) {
  char text[200] = "nothing was written";
  EXPECT_EQ(deepgen_check_packed_b(&x.f, packed, bytes, text, sizeof text), expected);
  return text;
}

/// Panels of f32 have 64 columns, or 32 where B has no more.
TEST(Packed, LiesAsTheLayoutSays) {
  constexpr int64_t k = 5;
  for (const auto [n, columns, panels] : {std::array<int64_t, 3>{32, 32, 1}, {33, 64, 1}, {69, 64, 2}}) {
    Function x(problem(Type::f32, n, k));
    const deepgen::PackedLayout layout = deepgen::packed_layout(x.operands.problem);
    EXPECT_EQ(x.size, uint64_t(64 + panels * k * columns * 4));
    const std::vector<float> b = numbers(size_t(n * k));
    const Memory packed = memory(x.size);
    ASSERT_EQ(deepgen_pack_b(&x.f, b.data(), 0, 0, packed.get(), x.size), DEEPGEN_OK);
    const auto* data = reinterpret_cast<const float*>(packed.get() + 64);
    for (int64_t column = 0; column < panels * columns; ++column)
      for (int64_t i = 0; i < k; ++i)
        EXPECT_EQ(data[column / columns * layout.panel_bytes / 4 + i * columns + column % columns],
                  column < n ? b[size_t(column * k + i)] : 0);
    EXPECT_EQ(finding(x, packed.get(), x.size, DEEPGEN_OK), "");
    ASSERT_EQ(run(x, packed.get()), DEEPGEN_OK);
    EXPECT_EQ(seen_b, uint64_t(reinterpret_cast<uintptr_t>(data)));
  }
}

/// Bytes in quads along K, behind what 128 more in A adds.
TEST(Packed, HasSumsOfBytes) {
  constexpr int64_t n = 3, k = 6;
  Function x(problem(Type::i8, n, k, Layout::nn));
  std::vector<int8_t> b(n * k);
  for (size_t i = 0; i < b.size(); ++i) b[i] = int8_t(int(i) - 9);
  const Memory packed = memory(x.size);
  ASSERT_EQ(deepgen_pack_b(&x.f, b.data(), 0, 0, packed.get(), x.size), DEEPGEN_OK);
  for (int64_t column = 0; column < n; ++column) {
    int32_t sum = 0, found = 0;
    for (int64_t i = 0; i < k; ++i) {
      int8_t byte;
      std::memcpy(&byte, packed.get() + 64 + 128 + (i / 4 * 32 + column) * 4 + i % 4, 1);
      EXPECT_EQ(byte, b[size_t(i * n + column)]);
      sum += byte;
    }
    std::memcpy(&found, packed.get() + 64 + 4 * column, 4);
    EXPECT_EQ(found, -128 * sum);
  }
}

/// The layout follows from B alone: of both orders in memory, with gaps or without, whatever M.
TEST(Packed, IsEqualForEqualMatrices) {
  constexpr int64_t n = 40, k = 9, batch = 2;
  Function rows(problem(Type::f64, n, k, Layout::nn, batch)),
      columns(problem(Type::f64, n, k, Layout::tt, batch));
  constexpr int64_t ld = n + 3, stride = k * ld + 5;
  std::vector<double> b(size_t(batch * stride)), turned(size_t(batch * n * k));
  for (int64_t e = 0; e < batch; ++e)
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j)
        b[size_t(e * stride + i * ld + j)] = turned[size_t((e * n + j) * k + i)] =
            double(e * 1000 + i * 50 + j);
  ASSERT_EQ(rows.size, columns.size);
  const Memory one = memory(rows.size), other = memory(rows.size);
  ASSERT_EQ(deepgen_pack_b(&rows.f, b.data(), ld, stride, one.get(), rows.size), DEEPGEN_OK);
  ASSERT_EQ(deepgen_pack_b(&columns.f, turned.data(), 0, 0, other.get(), rows.size), DEEPGEN_OK);
  EXPECT_EQ(std::memcmp(one.get(), other.get(), rows.size), 0);
  EXPECT_EQ(run(columns, one.get()), DEEPGEN_OK);
  ASSERT_EQ(deepgen_pack_b(&rows.f, b.data(), ld, DEEPGEN_BROADCAST, one.get(), rows.size), DEEPGEN_OK);
  const size_t entry = (rows.size - 64) / 2;
  EXPECT_EQ(std::memcmp(one.get() + 64, one.get() + 64 + entry, entry), 0);
}

TEST(Packed, OfAnotherFunctionIsRefused) {
  Function x(problem(Type::f32, 33, 7));
  const std::vector<float> b = numbers(2 * 33 * 8);
  Gemm gated = problem(Type::f32, 33, 7);
  gated.gate = deepgen::EpilogueOp::silu;
  for (const Gemm& p : {problem(Type::f32, 34, 7), problem(Type::f32, 33, 8), gated,
                        problem(Type::f32, 33, 7, Layout::nt, 2), problem(Type::bf16, 33, 7)}) {
    Function other(p);
    const Memory packed = memory(other.size);
    ASSERT_EQ(deepgen_pack_b(&other.f, b.data(), 0, 0, packed.get(), other.size), DEEPGEN_OK);
    EXPECT_EQ(run(x, packed.get()), DEEPGEN_ERROR_PACKED) << p.key();
    const std::string why = finding(x, packed.get(), other.size, DEEPGEN_ERROR_PACKED);
    EXPECT_NE(why.find("lib_f cannot take this packed B: it was packed for"), std::string::npos) << why;
  }
  EXPECT_EQ(run(x, memory(x.size).get()), DEEPGEN_ERROR_PACKED) << "what was never packed";
}

TEST(Packed, DamageIsFound) {
  Function x(problem(Type::f32, 33, 7));
  const std::vector<float> b = numbers(33 * 7);
  const Memory packed = memory(x.size);
  ASSERT_EQ(deepgen_pack_b(&x.f, b.data(), 0, 0, packed.get(), x.size), DEEPGEN_OK);
  for (size_t at = 0; at < x.size; at += at < 64 ? 1 : 61) {
    if (at >= 48 && at < 64) continue; // nothing is there
    packed.get()[at] ^= 1;
    const bool header = at < 40;
    EXPECT_EQ(run(x, packed.get()), header ? DEEPGEN_ERROR_PACKED : DEEPGEN_OK)
        << at << ": calls read the header";
    EXPECT_NE(finding(x, packed.get(), x.size, DEEPGEN_ERROR_PACKED), "") << at;
    packed.get()[at] ^= 1;
  }
  EXPECT_EQ(finding(x, packed.get(), x.size, DEEPGEN_OK), "");
  for (const size_t bytes : {size_t(0), size_t(63), size_t(64), x.size - 1}) {
    Memory part = memory(bytes + 1); // of no more than these
    std::memcpy(part.get(), packed.get(), bytes);
    EXPECT_NE(finding(x, part.get(), bytes, DEEPGEN_ERROR_PACKED).find("shorter"), std::string::npos)
        << bytes;
  }
  const uint64_t version = 99;
  std::memcpy(packed.get() + 40, &version, sizeof version);
  EXPECT_NE(finding(x, packed.get(), x.size, DEEPGEN_ERROR_PACKED).find("another version"),
            std::string::npos);
}

TEST(Packed, BadArgumentsAreRefused) {
  Function x(problem(Type::f32, 33, 7));
  const std::vector<float> b = numbers(33 * 7 + 1);
  const Memory packed = memory(x.size + 64);
  char* to = packed.get();
  const auto pack = [&](const void* from, int64_t ldb, char* memory, size_t bytes) {
    return deepgen_pack_b(&x.f, from, ldb, 0, memory, bytes);
  };
  EXPECT_EQ(pack(nullptr, 0, to, x.size), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(pack(b.data(), 0, nullptr, x.size), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(pack(b.data(), 6, to, x.size), DEEPGEN_ERROR_LEADING_DIMENSION);
  EXPECT_EQ(pack(b.data(), INT64_MAX / 2, to, x.size), DEEPGEN_ERROR_LEADING_DIMENSION);
  EXPECT_EQ(pack(b.data(), 0, to, x.size - 1), DEEPGEN_ERROR_PACKED);
  EXPECT_EQ(pack(b.data(), 0, to + 4, x.size), DEEPGEN_ERROR_ALIGNMENT);
  EXPECT_EQ(pack(reinterpret_cast<const char*>(b.data()) + 1, 0, to, x.size), DEEPGEN_ERROR_ALIGNMENT);
  ASSERT_EQ(pack(b.data(), 0, to, x.size), DEEPGEN_OK);
  EXPECT_EQ(run(x, nullptr), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(run(x, to + 32), DEEPGEN_ERROR_ALIGNMENT);
  EXPECT_EQ(finding(x, to + 32, x.size, DEEPGEN_ERROR_ALIGNMENT),
            "packed memory is not aligned to 64 bytes: read it into memory that is");
  deepgen_function plain = x.f;
  plain.packed_b = nullptr;
  EXPECT_EQ(deepgen_packed_b_size(&plain), 0u);
  EXPECT_EQ(deepgen_pack_b(&plain, b.data(), 0, 0, to, x.size), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(deepgen_packed_b_size(nullptr), 0u);
}

/// A library with a layout of another version, or with kernels of several, is not run.
TEST(Packed, KernelsShareTheFunctionsLayout) {
  const auto registered = [](const auto& change) {
    Function x(problem(Type::f32, 33, 7));
    change(x);
    return deepgen_register(&x.f, 1);
  };
  EXPECT_EQ(registered([](Function&) {}), DEEPGEN_OK);
  EXPECT_EQ(registered([](Function& x) { x.kernel.packed_b ^= 1; }), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(registered([](Function& x) { x.kernel.packed_b = 0; }), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(registered([](Function& x) { x.f.packed_b = nullptr; }), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(registered([](Function& x) { x.description.k = 8; }), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(registered([](Function& x) { x.description.layout = x.kernel.packed_b = 7; }),
            DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(registered([](Function& x) { x.description.type = DEEPGEN_E4M3; }), DEEPGEN_ERROR_ARGUMENT);
}

} // namespace
