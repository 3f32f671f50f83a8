// Attention by cuDNN as a baseline: a graph of operations that its engines for fused attention take as a
// whole, with every config of an engine that its heuristics return.
//
// The graph is that of cudnn-frontend for versions of cuDNN before 9.21, which later ones take, too: product,
// scale, mask by indices, maximum, difference, exponential, sum, quotient, product. The one descriptor of
// attention that 9.13 brought has masks since 9.21 alone. Of 8-bit floats there are more operations:
// cudnn_fp8.cpp; and where keys and values are in pages: cudnn_pages.cpp.
#pragma once

#include "measure/gpu/cuda_ring.h"
#include "measure/values/attention/attention_expected.h"
#include "measure/vendor/gpu/cuda_vendor.h"
#include "measure/vendor/gpu/cudnn_library.h"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deepgen::cuda {

/// Why cuDNN is not asked for the call that the problem is tuned for: "cuDNN: none: ...", in words; empty
/// where it is. It is asked for calls of f16, bf16 and e4m3. Those that are timed are dense, or have pages of
/// entries that are all as long, and so has the graph.
std::string why_no_cudnn(const Attention&);

/// The types of out that it is asked for, one after the other until an engine serves: the problem's; of e4m3
/// that itself, too, as all engines for it write that, and few another one.
std::vector<Type> cudnn_outs(const Attention&);
/// Of the products that its engines make.
AttentionArithmetic cudnn_arithmetic(const Attention&, const std::string& arch);

/// One graph, of the strides, scale and window of a call. Lives in a worker.
class CudnnAttention {
public:
  /// `out`: one of cudnn_outs(). Throws DriverError where the library takes no such graph.
  CudnnAttention(const Attention&, const SlotValues& call, Type out);
  CudnnAttention(const CudnnAttention&) = delete;

  /// What the heuristics return, mode A first, each once.
  size_t configs() const { return configs_.size(); }
  Type out() const { return out_; }
  /// "engine 5, knobs 24=3, 14=2", as the library numbers them; of e4m3 with ", out of bf16".
  const std::string& text(size_t config) const { return texts_[config]; }
  /// Where there are no configs, the library's words.
  const std::string& why_none() const { return why_none_; }

  struct Plan {
    CudnnDescriptor descriptor;
    uint64_t workspace; ///< bytes
  };
  /// Throws DriverError where the config does not serve the graph after all.
  Plan plan(size_t config) const;
  /// `operands`: of a call with the graph's strides, scale and window. `workspace`: of the plan's bytes.
  void enqueue(const Plan&, const SlotValues& operands, Address workspace, Stream) const;

private:
  using Sizes4 = std::array<int64_t, 4>; ///< of entries, heads, rows, columns
  struct Tensor {
    size_t index; ///< in tensors_
    Sizes4 sizes = {};
  };
  struct Operand {
    int64_t uid;
    deepgen_arg slot;
  };
  struct Scalar {
    int64_t uid;
    uint32_t bits;
  };
  struct Number { ///< or one of each entry, in device memory
    int64_t uid;
    Memory memory;
  };

  Tensor tensor(CudnnType, const Sizes4& sizes, const Sizes4& strides, bool is_virtual, bool by_value);
  Tensor operand(deepgen_arg, CudnnType, const Sizes4& sizes, const Sizes4& strides);
  /// From one entry (or page), head, token and column to the next. `token`: the first of three slots that
  /// stand together.
  static Sizes4 strides_of(const SlotValues& call, deepgen_arg token) {
    return {int64_t(call[token + 2]), int64_t(call[token + 1]), int64_t(call[token]), 1};
  }
  Tensor between(CudnnType, const Sizes4& sizes); ///< virtual, dense
  Tensor scalar(CudnnType, uint32_t bits);
  Tensor number(float);
  Tensor number_on_device(float);
  Tensor lengths(int64_t of_each);
  const CudnnDescriptor& descriptor(const Tensor& t) const { return tensors_[t.index]; }

  /// `of_keys`: which size of it is of keys.
  Tensor product(const Tensor& a, const Tensor& b, const Tensor& c, CudnnAttribute of_keys);
  /// `others`: b, then t. `y`: what it becomes.
  Tensor pointwise(CudnnPointwise, CudnnType math, const Tensor& x, const std::vector<Tensor>& others,
                   const Tensor& y, int64_t axis = -1);
  Tensor reduce(CudnnReduction, const Tensor& x, const Tensor& y);
  Tensor reduce_rows(CudnnReduction, const Tensor& x);
  Tensor capped(const Tensor& scores, const SlotValues& call);
  Tensor biased(const Tensor& scores, const SlotValues& call);
  Tensor index(const Tensor& scores, int64_t axis);
  Tensor masked(Tensor scores, const SlotValues& call);
  Tensor compared(CudnnPointwise, const Tensor& x, const Tensor& b, const Sizes4& sizes);
  Tensor select(const Tensor& scores, const Tensor& seen);
  Tensor behind(const Tensor& column, int64_t left, int64_t shift);
  Tensor softmax(const Tensor& scores, const SlotValues& call);
  /// Keys, which are transposed, and values of a call: as they lie, or loaded from pages.
  Tensor key_operand(const SlotValues& call), value_operand(const SlotValues& call);
  Tensor from_pages(deepgen_arg, deepgen_arg token, const Tensor& loaded, int64_t columns,
                    const SlotValues& call);
  Tensor padded(const Tensor& scores);
  bool is_narrow() const { return p_.q == Type::e4m3; }
  Tensor times(const Tensor& x, float scale, const Tensor& y);
  Tensor descaled(const Tensor& product, float a, float b);
  void narrow_product(const Tensor& weights, const Tensor& v, const Tensor& out);
  void build(const SlotValues& call);
  void ask(CudnnHeuristic);
  void note_none(const std::string& why);
  std::string text_of(const CudnnDescriptor& config) const;

  const CudnnLibrary& library_;
  const Attention p_;
  const Type out_;
  void* handle_ = nullptr;
  std::deque<CudnnDescriptor> tensors_, descriptors_, operations_;
  std::vector<Operand> operands_;
  std::deque<Scalar> scalars_; ///< read when a plan is executed
  std::vector<Number> numbers_;
  /// Of each entry: what the library knows of entries in pages.
  struct Lengths {
    Tensor queries, keys;
  };
  std::optional<Lengths> lengths_;     ///< none: nothing is in pages
  std::vector<CudnnDescriptor> graph_; ///< one
  std::vector<CudnnDescriptor> configs_;
  std::vector<std::string> texts_;
  std::string why_none_;
};

/// In this process: every config that runs, and whose output is the reference's; of the others, why not
/// (Vendor::left_out). The operands of the ring's first set are written anew. `may_try`: as of ask_vendor().
Vendor ask_cudnn(
    Bench::Ring&, const std::string& arch, uint64_t seed,
    const std::function<bool(int)>& may_try = [](int) { return true; });

/// The enqueue of an algorithm on one set of the ring, by number.
Bench::EnqueueSet cudnn_call(const Vendor::Algorithm&, Bench::Ring&);

} // namespace deepgen::cuda
