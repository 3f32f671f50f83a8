// Graph: what the search for matrix products knows of a module: functions, operations of linalg and the
// values between them. The reader (generator/mlir_in) makes it of MLIR; nothing here knows MLIR.
#pragma once

#include "workload/mlir/formula.h"

#include <cstdint>

namespace deepgen::tensors {

/// For each dimension of an operand the loop that runs along it, or one of these.
using Map = std::vector<int>;
constexpr int kZeroIndex = -1; ///< always the first: of a dimension of size 1
constexpr int kOddIndex = -2;  ///< a sum of loops, and the like

struct Value {
  std::vector<int64_t> shape;     ///< -1: not known before run time
  std::string element;            ///< as MLIR prints it: "f32", "f8E4M3FN"
  bool tensor = false;            ///< else a scalar, a memref, ...
  int producer = -1;              ///< Operation; -1: something else
  int argument = -1;              ///< of its function, from 0
  std::vector<int> users;         ///< Operations, one for each use
  bool elementwise_use = false;   ///< by arith or math on whole tensors, which is no operation of linalg
  int other_uses = 0;             ///< returns too
  std::optional<double> constant; ///< all elements are this
  bool undefined = false;         ///< tensor.empty

  int64_t size() const; ///< elements
};

/// An operation of linalg: a nest of loops with a body.
struct Operation {
  std::string name; ///< "linalg.matmul"
  int64_t line = 0, column = 0;
  int function = 0, block = 0;
  std::vector<bool> reduction; ///< for each loop
  std::vector<int64_t> extents;
  std::vector<int> operands; ///< Values: inputs, then outputs
  int inputs = 0;
  std::vector<Map> maps; ///< for each operand
  Formula body;          ///< of the element that is yielded
  int result = -1;       ///< Value; -1: none, or several
  bool memrefs = false;  ///< works on memrefs

  bool elementwise() const; ///< all loops are parallel, and it has one result
};

struct Function {
  std::string name;
  int64_t line = 0;
  std::vector<int> arguments; ///< Values
  std::vector<int> returned;  ///< Values; of a function with several blocks none
  int other_operations = 0;   ///< but those of linalg, constants, tensor.empty and the return
};

struct Graph {
  std::vector<Function> functions;
  std::vector<Operation> operations; ///< in the order of the text
  std::vector<Value> values;

  const Value& value(int v) const { return values[size_t(v)]; }
  const Operation& operation(int o) const { return operations[size_t(o)]; }
};

/// "x.mlir:12:5"
std::string place(const std::string& file, const Operation&);
/// "tensor<4x?xf32>"
std::string type_text(const Value&);

/// An operand as others see it, behind operations that only broadcast or transpose it.
struct Seen {
  int value = -1;
  Map loops;                      ///< for each of its dimensions the loop of whoever looks at it
  std::optional<double> constant; ///< all of its elements, as of linalg.fill
  bool undefined = false;
};
/// `map`: for each dimension of the value the loop.
Seen look_through(const Graph&, int value, Map map);

} // namespace deepgen::tensors
