// Packs B once for each function, calls with it, and sees what is refused. Writes a packed B to a file, or
// reads it.
#include <kernels.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int failures = 0;
void expect(bool good, const char* what) {
  if (good) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

std::vector<float> values(size_t count, unsigned state) {
  std::vector<float> x(count);
  for (float& v : x) v = float(int((state = state * 1664525u + 1013904223u) >> 20) - 2048) / 2048;
  return x;
}

struct Packed {
  explicit Packed(size_t size) : bytes(size), data(std::aligned_alloc(64, size)) {}
  Packed(const deepgen_function* f, const void* b) : Packed(deepgen_packed_b_size(f)) {
    expect(deepgen_pack_b(f, b, 0, 0, data, bytes) == DEEPGEN_OK, "packing");
  }
  Packed(const Packed&) = delete;
  ~Packed() { std::free(data); }
  size_t bytes;
  void* data;
};

void check_up(const std::vector<float>& b, const void* packed) {
  constexpr int64_t n = 70, k = 50;
  const std::vector<float> bias = values(n, 3);
  for (int64_t m : {1, 2, 7, 40}) {
    const std::vector<float> a = values(size_t(m * k), 5);
    std::vector<float> d(size_t(m * n));
    expect(kernels::up(m, a.data(), packed, bias.data(), d.data()) == DEEPGEN_OK, "status of up");
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias[size_t(j)];
        for (int64_t x = 0; x < k; ++x) sum += double(a[size_t(i * k + x)]) * b[size_t(j * k + x)];
        expect(std::fabs(d[size_t(i * n + j)] - sum) < 1e-4, "element of up");
      }
  }
}

void check_file(const char* action, const Packed& packed) {
  const deepgen_function* f = kernels_up_function();
  std::FILE* file = std::fopen("up.packed", std::strcmp(action, "write") ? "rb" : "wb");
  Packed read(packed.bytes);
  if (!std::strcmp(action, "write")) {
    expect(file && std::fwrite(packed.data, 1, packed.bytes, file) == packed.bytes, "writing");
  } else {
    expect(file && std::fread(read.data, 1, read.bytes, file) == read.bytes, "reading");
    char why[200];
    expect(deepgen_check_packed_b(f, read.data, read.bytes, why, sizeof why) == DEEPGEN_OK, why);
    expect(!std::memcmp(read.data, packed.data, packed.bytes), "bytes of the file");
    static_cast<char*>(read.data)[100] ^= 1;
    expect(deepgen_check_packed_b(f, read.data, read.bytes, why, sizeof why) == DEEPGEN_ERROR_PACKED,
           "damage");
    std::printf("%s\n", why);
  }
  if (file) std::fclose(file);
}

} // namespace

int main(int count, char** words) {
  const std::vector<float> b = values(70 * 50, 1);
  std::vector<float> turned(b.size());
  for (size_t j = 0; j < 70; ++j)
    for (size_t i = 0; i < 50; ++i) turned[i * 70 + j] = b[j * 50 + i];
  const Packed packed(kernels_up_function(), b.data());
  static_assert(kernels::up_sizes::bytes_packed_b == 64 + 2 * 50 * 64 * 4, "a panel more");
  expect(packed.bytes == kernels::up_sizes::bytes_packed_b, "size as a constant");
  check_up(b, packed.data);
  if (count > 1) check_file(words[1], packed);

  // Another function of the same B takes it, and gives what it gives without packing.
  const std::vector<float> a = values(3 * 50, 7);
  std::vector<float> d(3 * 70), plain(3 * 70);
  const Packed again(kernels_down_function(), turned.data());
  expect(packed.bytes == again.bytes && !std::memcmp(packed.data, again.data, again.bytes), "layout of down");
  expect(kernels::down(a.data(), packed.data, d.data()) == DEEPGEN_OK, "status of down");
  expect(kernels::plain(a.data(), turned.data(), plain.data()) == DEEPGEN_OK, "status of plain");
  for (size_t i = 0; i < d.size(); ++i) expect(std::fabs(d[i] - plain[i]) < 1e-4f, "element of down");

  Packed other(kernels_gated_function(), values(2 * 33 * 41, 9).data());
  expect(kernels::down(a.data(), other.data, d.data()) == DEEPGEN_ERROR_PACKED, "a foreign B");
  expect(kernels::down(a.data(), Packed(4096).data, d.data()) == DEEPGEN_ERROR_PACKED, "no packed B");
  std::printf("%s\n", deepgen_status_string(DEEPGEN_ERROR_PACKED));
  for (const deepgen_function* f : {kernels_up_function(), kernels_down_function(), kernels_gated_function(),
                                    kernels_bytes_function(), kernels_half_function()}) {
    char text[200];
    expect(deepgen_verify(f, text, sizeof text) == DEEPGEN_OK, text);
  }
  std::printf(failures ? "failed\n" : "all is right\n");
  return failures != 0;
}
