#include "measure/gpu/toolbox/host_toolbox.h"

#include "base/text/error.h"
#include "measure/gpu/toolbox/host_kernels.h"

#include <algorithm>
#include <cmath>

namespace deepgen::cuda {
namespace {

/// As much as a few cores do in a second or two.
constexpr CheckBudget kHostBudget = {4e9, 4e9, 2e9, 2e9};

/// What fills the device's time in front of a sample: bytes that are set, over and over.
constexpr size_t kFilledBytes = size_t(64) << 20;
constexpr double kShortestFill = 5e-6;
constexpr int kMostFills = 4096;

[[noreturn]] void refuse(const char* what) {
  throw Error(std::string("nothing on this device can ") + what, "an AMD GPU",
              "the measurement has no kernels of its own there", "compare kernels with each other");
}

/// Bytes of device memory on the host, as long as this lives.
class HostCopy {
public:
  HostCopy(Address from, size_t bytes) : from_(from), bytes_(bytes) {
    if (bytes) check(driver()->cuMemcpyDtoH(bytes_.data(), from, bytes), "copying from the device");
  }
  void write_back() const {
    if (!bytes_.empty())
      check(driver()->cuMemcpyHtoD(from_, bytes_.data(), bytes_.size()), "copying to the device");
  }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(bytes_.data()); }
  uint64_t address_of(Address device) const { return address() + (device - from_); }
  template <typename T>
  T& as() {
    return *reinterpret_cast<T*>(bytes_.data());
  }

private:
  Address from_;
  std::vector<char> bytes_;
};

size_t extent_of(const Array& x) {
  if (!x.data) return 0;
  const int64_t elements = (x.batch - 1) * x.stride + (x.rows - 1) * x.ld + x.columns;
  return size_t(std::max<int64_t>(0, elements)) * size_t(size_of(Type(x.type)));
}

/// An array of which the elements lie on the host; it may move, as the copy's memory stays.
struct HostArray {
  HostCopy copy;
  Array array;
  explicit HostArray(const Array& x) : copy(x.data, extent_of(x)), array(x) {
    if (x.data) array.data = copy.address();
  }
};

HostCopy vector_copy(Address data, int32_t type, int64_t size) {
  return HostCopy(data, data ? size_t(size * size_of(Type(type))) : 0);
}

class HostToolbox final : public Toolbox {
public:
  explicit HostToolbox(const Context& c) : Toolbox(c, WithoutKernels{}), filled_(kFilledBytes) {
    measure_fill();
  }

  CheckBudget budget() const override { return kHostBudget; }
  bool times() const override { return false; }

  void fill(const Array& x, const Values& v) const override {
    context().synchronize();
    const HostArray on_host(x);
    host::fill(on_host.array, v);
    on_host.copy.write_back();
  }
  void check_values(const Array& x, const Values& v, Address finding) const override {
    context().synchronize();
    const HostArray on_host(x);
    find(finding, [&](Finding& f) { host::check_values(on_host.array, v, f); });
  }
  void check_gaps(const Array& x, Address begin, Address end, Address finding) const override {
    context().synchronize();
    const HostCopy all(begin, end - begin);
    Array on_host = x;
    on_host.data = all.address_of(x.data);
    find(finding, [&](Finding& f) { host::check_gaps(on_host, all.address(), all.address_of(end), f); });
  }
  void check_written(const Array& d, Address finding) const override {
    context().synchronize();
    const HostArray on_host(d);
    find(finding, [&](Finding& f) { host::check_written(on_host.array, f); });
  }
  void product(const ProductParameters&, int64_t blocks) const override;
  void compare(const CompareParameters&) const override;
  void epilogue(const Array&, const Array&, const EpilogueParameters&) const override {
    refuse("run an epilogue alone");
  }
  void read_all(Address, size_t, Address) const override { refuse("only read memory"); }

  /// Sets memory for so long. The reading stays as it is: nothing reads the clock.
  void spin(Address, double seconds) const override {
    const int fills = int(std::clamp(std::ceil(seconds / fill_seconds_), 1.0, double(kMostFills)));
    for (int i = 0; i < fills; ++i) set_words(filled_.address(), 0, filled_.bytes());
  }

private:
  template <typename Check>
  static void find(Address finding, const Check& check_on_host) {
    HostCopy result(finding, sizeof(Finding));
    check_on_host(result.as<Finding>());
    result.write_back();
  }
  void measure_fill();

  Memory filled_;
  double fill_seconds_ = kShortestFill;
};

void HostToolbox::measure_fill() {
  Event begin = nullptr, end = nullptr;
  check(driver()->cuEventCreate(&begin, 0), "creating an event");
  check(driver()->cuEventCreate(&end, 0), "creating an event");
  for (int i = 0; i < 3; ++i) { // the first ones may load code
    check(driver()->cuEventRecord(begin, context().stream()), "recording an event");
    set_words(filled_.address(), 0, filled_.bytes());
    check(driver()->cuEventRecord(end, context().stream()), "recording an event");
    context().synchronize();
    float milliseconds = 0;
    check(driver()->cuEventElapsedTime(&milliseconds, begin, end), "reading the events");
    fill_seconds_ = std::max(double(milliseconds) * 1e-3, kShortestFill);
  }
}

void HostToolbox::product(const ProductParameters& p, int64_t blocks) const {
  context().synchronize();
  HostCopy list(p.blocks, size_t(blocks) * sizeof(int64_t));
  const auto* indices = &list.as<int64_t>();
  const int64_t last_entry =
      *std::max_element(indices, indices + blocks) / ((p.m + block_rows - 1) / block_rows);
  const auto operand = [&](Address data, int32_t type, int64_t entry, int64_t rows, int64_t row,
                           int64_t k_step) {
    return vector_copy(data, type, last_entry * entry + (rows - 1) * row + (p.k - 1) * k_step + 1);
  };
  const HostCopy a = operand(p.a, p.a_type, p.a_entry, p.m, p.a_row, p.a_k),
                 b = operand(p.b, p.b_type, p.b_entry, p.n, p.b_column, p.b_k);
  const auto elements = size_t(blocks * block_rows * p.n);
  const HostCopy product(p.product, elements * sizeof(double)),
      magnitude(p.magnitude, elements * sizeof(float));
  ProductParameters on_host = p;
  on_host.a = a.address(), on_host.b = b.address(), on_host.blocks = list.address();
  on_host.product = product.address(), on_host.magnitude = magnitude.address();
  host::product(on_host, blocks);
  product.write_back(), magnitude.write_back();
}

void HostToolbox::compare(const CompareParameters& q) const {
  context().synchronize();
  const EpilogueParameters& e = q.epilogue;
  const HostArray d(q.d), c(e.c);
  std::vector<HostArray> operands;
  for (const Array& x : e.operands) operands.emplace_back(x);
  const auto elements = size_t(q.block_count * block_rows * q.d.columns * (e.gate < 0 ? 1 : 2));
  const HostCopy blocks(q.blocks, size_t(q.block_count) * sizeof(int64_t)),
      product(q.product, elements * sizeof(double)), magnitude(q.magnitude, elements * sizeof(float));
  CompareParameters on_host = q;
  on_host.d = d.array, on_host.epilogue.c = c.array;
  for (size_t i = 0; i < operands.size(); ++i) on_host.epilogue.operands[i] = operands[i].array;
  on_host.blocks = blocks.address(), on_host.product = product.address(),
  on_host.magnitude = magnitude.address();
  find(q.result, [&](Finding& f) {
    on_host.result = reinterpret_cast<uintptr_t>(&f);
    host::compare(on_host);
  });
}

} // namespace

std::unique_ptr<const Toolbox> host_toolbox(const Context& context) {
  return std::make_unique<const HostToolbox>(context);
}

} // namespace deepgen::cuda
