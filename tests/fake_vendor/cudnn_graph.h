// What the parts of the fake cuDNN share: descriptors, and graphs that are run.
#pragma once

#include "fake_cudnn.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace fake_cudnn {

/// As cudnn_graph.h of 9.6.0 numbers them, by the names there.
enum : int {
  DATA_FLOAT = 0,
  DATA_HALF = 2,
  DATA_INT32 = 4,
  DATA_BFLOAT16 = 9,
  DATA_BOOLEAN = 11,
  DATA_FP8_E4M3 = 12,
  POINTWISE_ADD = 0,
  POINTWISE_MUL = 1,
  POINTWISE_MAX = 3,
  POINTWISE_DIV = 6,
  POINTWISE_SUB = 9,
  POINTWISE_EXP = 13,
  POINTWISE_LOG = 15,
  POINTWISE_TANH_FWD = 101,
  POINTWISE_CMP_GT = 302,
  POINTWISE_CMP_GE = 303,
  POINTWISE_CMP_LT = 304,
  POINTWISE_LOGICAL_AND = 400,
  POINTWISE_GEN_INDEX = 501,
  POINTWISE_BINARY_SELECT = 601,
  REDUCE_ADD = 0,
  REDUCE_MAX = 3,
  REDUCE_AMAX = 4
};

using Four = std::array<int64_t, 4>;

struct Tensor {
  int64_t uid = 0;
  int type = DATA_FLOAT;
  Four sizes{}, strides{};
  bool is_virtual = false, by_value = false;
  int64_t count() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
};

struct Operation {
  enum Kind { product, pointwise, reduction, pages } kind;
  std::vector<Tensor> in; ///< a, b; or x, b, t; or x; or the cache, lengths, the table
  Tensor out;
  int mode = 0, math = 0; ///< of elements; or the reduction's operator
  int64_t axis = -1;
  /// Of a product: by entry, the rows, columns and depth that count. What else there is is no operand of it.
  std::array<std::optional<Tensor>, 3> counts = {};

  /// All that it reads.
  std::vector<Tensor> read() const {
    std::vector<Tensor> all = in;
    for (const std::optional<Tensor>& t : counts)
      if (t) all.push_back(*t);
    return all;
  }
};

/// Why the library would take no such graph; empty when it would.
std::string fault_of(const std::vector<Operation>&);
/// The graph without its loads of pages; and why these are none that the library takes, or the products and
/// masks beside them.
std::vector<Operation> without_pages(const std::vector<Operation>&);
std::string fault_of_pages(const std::vector<Operation>&);
std::string fault_of_pages(const Operation&);
/// The key that a place in the loaded operand is of.
int64_t key_of(const Operation& load, const Four& place);
/// Where in the cache it is, of a page by its id.
Four place_in_cache(const Operation& load, const Four& place, int64_t page);
/// Whether it multiplies 8-bit floats; and what else is wrong then.
bool is_narrow(const std::vector<Operation>&);
std::string fault_of_narrow(const std::vector<Operation>&);
/// That was finalized last, whatever came of it.
std::vector<Operation>& last_graph();
/// The operation that writes out.
const Operation& last_of(const std::vector<Operation>&);
/// Why a call cannot be; empty when it can. `pointers`: by uid.
std::string fault_of(const std::vector<Operation>&, const std::map<int64_t, void*>& pointers);
/// What a call does once its stream is there. Reads by-value tensors now.
std::function<void()> prepared(const std::vector<Operation>&, const std::map<int64_t, void*>& pointers,
                               const Config&);

} // namespace fake_cudnn
