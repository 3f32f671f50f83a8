// cuDNN's backend API, loaded with dlopen: descriptors with attributes, of which graphs of operations are
// made.
//
// The numbers are those of cudnn_graph.h of cuDNN 9.6.0, the public header of libcudnn_graph.so.9. All of
// them are as old as 9.0, but for those of pages, which are of 9.5. A later version may add numbers, and
// gives none another meaning.
#pragma once

#include "base/problem/types.h"
#include "measure/devices/cuda_driver.h"

#include <cstdint>
#include <string>
#include <vector>

namespace deepgen::cuda {

/// cudnnBackendDescriptorType_t
enum class CudnnKind : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  heuristic = 4,
  plan = 5,
  knob_choice = 7,
  pointwise_operation = 13,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  matmul_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  pages_operation = 35
};

/// cudnnBackendAttributeName_t
enum class CudnnAttribute : int {
  pointwise_mode = 0,
  pointwise_math_prec = 1,
  pointwise_axis = 9,
  heuristic_mode = 200,
  heuristic_graph = 201,
  heuristic_results = 202,
  config_engine = 300,
  config_knobs = 302,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace_size = 402,
  knob_type = 600,
  knob_value = 601,
  pointwise_descriptor = 750,
  pointwise_x = 751,
  pointwise_b = 752,
  pointwise_y = 753,
  pointwise_alpha1 = 754,
  pointwise_alpha2 = 755,
  pointwise_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_uid = 906,
  tensor_virtual = 907,
  tensor_by_value = 908,
  pack_uids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_index = 1301,
  matmul_compute = 1500,
  matmul_a = 1520,
  matmul_b = 1521,
  matmul_c = 1522,
  matmul_descriptor = 1523,
  matmul_rows = 1525,    ///< of each entry, that are multiplied
  matmul_columns = 1526, ///< the same
  matmul_depth = 1527,
  reduction_operator = 1600,
  reduction_compute = 1601,
  reduction_x = 1610,
  reduction_y = 1611,
  reduction_descriptor = 1612,
  pages_container = 1950,
  pages_y = 1951,
  pages_lengths = 1952,
  pages_table = 1953
};

/// cudnnBackendAttributeType_t: of what an attribute's elements are.
enum class CudnnElement : int {
  handle = 0,
  data_type = 1,
  boolean = 2, ///< one byte
  int64 = 3,
  f32 = 4,
  pointer = 6,
  heuristic_mode = 8,
  knob_type = 9,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18
};

/// cudnnDataType_t
enum class CudnnType : int { f32 = 0, f16 = 2, i32 = 4, bf16 = 9, boolean = 11, e4m3 = 12 };
CudnnType type_of(Type);
/// cudnnPointwiseMode_t; select: x where t is true, else b
enum class CudnnPointwise : int {
  add = 0,
  mul = 1,
  max = 3,
  div = 6,
  sub = 9,
  exp = 13,
  log = 15,
  tanh = 101,
  greater = 302,
  greater_or_equal = 303,
  less = 304,
  both = 400,
  index = 501,
  select = 601
};
/// cudnnReduceTensorOp_t
enum class CudnnReduction : int { add = 0, max = 3, max_magnitude = 4 };
/// cudnnBackendHeurMode_t
enum class CudnnHeuristic : int { fallback = 2, a = 3 };

struct CudnnLibrary {
  int (*create)(void** handle);
  int (*set_stream)(void* handle, Stream);
  int (*create_descriptor)(int kind, void** descriptor);
  int (*destroy_descriptor)(void* descriptor);
  int (*finalize)(void* descriptor);
  int (*set_attribute)(void* descriptor, int attribute, int element, int64_t count, const void* elements);
  int (*get_attribute)(void* descriptor, int attribute, int element, int64_t asked, int64_t* count,
                       void* elements);
  int (*execute)(void* handle, void* plan, void* variant_pack);
  const char* (*error_string)(int); ///< may be null, as the next
  void (*last_error_string)(char* text, size_t size);

  size_t number = 0;   ///< 91002
  std::string version; ///< "cudnn 9.10.2"
  std::string file;    ///< that it is in; empty: it is not here
  std::string why_not; ///< not empty: it is not here, or of another interface

  /// Loads what DEEPGEN_CUDNN names, or else libcudnn.so.9 or libcudnn_graph.so.9. Throws HostFault.
  static CudnnLibrary open();
  /// The process's own. Only for workers, as it may start the driver.
  static const CudnnLibrary& of_process();
  /// Throws DriverError when `status` is not success, in the library's own words. `call`: what failed.
  void check(int status, const std::string& call) const;
  /// What it says of its latest failure; empty: nothing, or it cannot say.
  std::string last_words() const;
};

/// Owns a descriptor.
class CudnnDescriptor {
public:
  CudnnDescriptor(const CudnnLibrary&, CudnnKind);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  void* get() const { return descriptor_; }
  void set(CudnnAttribute, CudnnElement, int64_t count, const void* elements);
  template <typename T>
  void set(CudnnAttribute attribute, CudnnElement element, const T& value) {
    set(attribute, element, 1, &value);
  }
  void set(CudnnAttribute attribute, const CudnnDescriptor& x) {
    set(attribute, CudnnElement::descriptor, 1, &x.descriptor_);
  }
  void finalize();
  /// How many elements there are of `asked`, which are written to `elements`. Descriptors among them are
  /// those that are there already, which the call fills.
  int64_t read(CudnnAttribute, CudnnElement, int64_t asked, void* elements) const;

private:
  const CudnnLibrary& library_;
  CudnnKind kind_;
  void* descriptor_ = nullptr;
};

} // namespace deepgen::cuda
