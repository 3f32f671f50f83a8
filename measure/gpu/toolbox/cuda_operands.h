// Operands in device memory that show a stray access, and the kernels that fill and check them.
#pragma once

#include "base/problem/gemm.h"
#include "measure/devices/cuda_driver.h"
#include "measure/gpu/toolbox/cuda_parameters.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deepgen::cuda {

/// What is too much work to be checked in full, in FLOP: see call_cases() and checked_blocks().
struct CheckBudget {
  double full = 150e9, sample = 50e9, all_cases = 100e9, broadcast = 10e9;
};

/// The kernels of cuda_kernels.cu, on one device. Where it takes no PTX, they run on the host
/// (host_toolbox.cpp), and there is none that times.
class Toolbox {
public:
  static std::unique_ptr<const Toolbox> make(const Context& context);
  explicit Toolbox(const Context& context);
  virtual ~Toolbox() = default;
  Toolbox(const Toolbox&) = delete;
  const Context& context() const { return context_; }
  virtual CheckBudget budget() const { return {}; }
  /// Whether read_all() can be called, and spin() reads the clock.
  virtual bool times() const { return true; }

  virtual void fill(const Array& x, const Values& v) const { run("fill", elements(x), x, v); }
  virtual void check_values(const Array& x, const Values& v, Address finding) const {
    run("check_values", elements(x), x, v, finding);
  }
  virtual void check_gaps(const Array& x, Address begin, Address end, Address finding) const {
    constexpr int64_t kForEnds = 1 << 16; // threads: they may be long
    run("check_gaps", std::max(32 * x.batch * x.rows, kForEnds), x, begin, end, finding);
  }
  virtual void check_written(const Array& d, Address finding) const {
    run("check_written", elements(d), d, finding);
  }
  virtual void product(const ProductParameters& p, int64_t blocks) const;
  virtual void compare(const CompareParameters& q) const {
    run("compare", q.block_count * block_rows * q.d.columns, q);
  }
  /// `source`: dense, with twice the columns where there is a gate.
  virtual void epilogue(const Array& source, const Array& d, const EpilogueParameters& p) const;
  /// Every multiprocessor spins; `reading` is the address of a ClockReading.
  virtual void spin(Address reading, double seconds) const;
  virtual void read_all(Address data, size_t bytes, Address sink) const;
  void set_words(Address data, uint32_t word, size_t bytes) const;

protected:
  struct WithoutKernels {};
  Toolbox(const Context& context, WithoutKernels) : context_(context) {}

private:
  static int64_t elements(const Array& x) { return x.batch * x.rows * x.columns; }
  /// One thread an item, up to what keeps the device busy; the kernels loop over the rest.
  template <typename... Parameters>
  void run(const char* entry, int64_t items, const Parameters&... parameters) const {
    const void* list[] = {&parameters...};
    launch(entry, items, const_cast<void**>(list));
  }
  void launch(const char* entry, int64_t items, void** parameters) const;

  const Context& context_;
  std::optional<Module> module_;
};

/// An operand between two zones of canaries, in an allocation of its own.
class GuardedArray {
public:
  /// `offset`: bytes by which the first element misses 256-byte alignment. `zone`: bytes of canaries before
  /// and behind; a multiple of 256.
  GuardedArray(Type type, const Array& shape, int64_t offset, int64_t zone);
  const Array& array() const { return array_; }
  Address data() const { return array_.data; }
  /// Canaries everywhere: a value that is read, or not written, shows.
  void poison(const Toolbox& tools) const;
  void check_gaps(const Toolbox& tools, Address finding) const;
  /// Of a matrix of which the rows [first, last) alone are anybody's.
  void check_gaps(const Toolbox& tools, Address finding, int64_t first, int64_t last) const;
  /// "12 bytes before the first element", from a Finding of check_gaps.
  std::string place_of_damage(uint64_t place) const;

private:
  Memory memory_;
  Array array_;
  Address end_ = 0;
};

/// A dense matrix, or `gap` elements between rows and between batch entries.
Array shape_of(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t gap);

} // namespace deepgen::cuda
