#include "measure/vendor/cpu/onednn.h"

#include "base/files/library.h"
#include "measure/values/inputs.h"

#include <cstdlib>
#include <dlfcn.h>

namespace deepgen {

// Constants and shapes of functions are those of oneDNN 2's dnnl.h and dnnl_types.h.
namespace {

constexpr int kAny = 1, kCpu = 1, kQueryWeights = 131;
constexpr int kSource = 1, kSecond = 2, kDestination = 17, kWeights = 33, kBias = 41, kPostOperation = 16384;
constexpr int kRelu = 0x1f, kLogistic = 0xaf, kGeluTanh = 0xcf, kSwish = 0xdf, kClip = 0xff, kGelu = 0x30;
constexpr int kAdd = 0x1fff0, kMultiply = 0x1fff1;
constexpr size_t kMostDimensions = 12;

/// Room for its structs, whose fields are its own: descriptions of memory and of an operation.
struct alignas(16) Blob {
  char bytes[8192] = {};
};
using Dimensions = std::array<int64_t, kMostDimensions>;
struct Argument {
  int index;
  void* memory;
};
struct Version {
  int major, minor, patch;
};

/// 0: not known to oneDNN.
int type_code(Type type) {
  switch (type) {
  case Type::f16:
    return 1;
  case Type::bf16:
    return 2;
  case Type::f32:
    return 3;
  case Type::i32:
    return 4;
  case Type::i8:
    return 5;
  case Type::u8:
    return 6;
  default:
    return 0;
  }
}

} // namespace

#define DEEPGEN_ONEDNN_FUNCTIONS(x)                                                                          \
  x(version, const Version*, ()) x(memory_desc_init_by_strides, int,                                         \
                                   (Blob*, int, const int64_t*, int, const int64_t*))                        \
      x(memory_desc_init_by_tag, int, (Blob*, int, const int64_t*, int, int)) x(memory_desc_get_size,        \
                                                                                size_t, (const void*))       \
          x(matmul_desc_init, int, (Blob*, const Blob*, const Blob*, const Blob*, const Blob*))              \
              x(primitive_desc_create, int, (void**, const Blob*, void*, void*, void*)) x(                   \
                  primitive_desc_query_md, const void*, (void*, int, int)) x(primitive_create, int,          \
                                                                             (void**, void*))                \
                  x(primitive_execute, int, (void*, void*, int, const Argument*)) x(                         \
                      memory_create, int,                                                                    \
                      (void**, const void*, void*, void*)) x(engine_create, int, (void**, int, size_t))      \
                      x(stream_create, int, (void**, void*, unsigned)) x(stream_wait, int, (void*))          \
                          x(primitive_attr_create, int, (void**))                                            \
                              x(primitive_attr_set_output_scales, int, (void*, int64_t, int, const float*))  \
                                  x(primitive_attr_set_post_ops, int, (void*, void*))                        \
                                      x(post_ops_create, int, (void**))                                      \
                                          x(post_ops_append_eltwise, int, (void*, float, int, float, float)) \
                                              x(post_ops_append_binary, int, (void*, int, const Blob*))      \
                                                  x(reorder_primitive_desc_create, int,                      \
                                                    (void**, const void*, void*, const void*, void*, void*))

struct OneDnn::Interface {
#define DEEPGEN_POINTER(name, result, parameters) result(*name) parameters = nullptr;
  DEEPGEN_ONEDNN_FUNCTIONS(DEEPGEN_POINTER)
#undef DEEPGEN_POINTER

  void (*set_threads)(int) = nullptr; ///< of its OpenMP runtime; null: it has none

  /// The first function that the library lacks; empty when it has all.
  std::string load(void* library) {
#define DEEPGEN_LOAD(name, result, parameters)                                                               \
  name = reinterpret_cast<decltype(name)>(dlsym(library, "dnnl_" #name));                                    \
  if (!name) return "dnnl_" #name;
    DEEPGEN_ONEDNN_FUNCTIONS(DEEPGEN_LOAD)
#undef DEEPGEN_LOAD
    set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
    return "";
  }
};

namespace {

/// What a primitive and its memories are made of. Handles live as long as the process that measures: it ends
/// with its worker.
class Matmul {
public:
  Matmul(const OneDnn::Interface& functions, const Gemm& p, const CallBuffers& x)
      : f_(functions), p_(p), x_(x) {}

  /// False where oneDNN has no such primitive.
  bool make(OneDnn::Weights weights) {
    if (p_.gate || p_.groups || p_.b_matrices() != p_.batch) return false;
    if (f_.engine_create(&engine_, kCpu, 0) || f_.stream_create(&stream_, engine_, 1)) return false;
    Blob a, b, d, bias, wanted, operation;
    if (!matrix(a, p_.a, p_.m, p_.k, x_.lda, x_.stride_a, p_.a_transposed()) ||
        !matrix(b, p_.b, p_.k, p_.n, x_.ldb, x_.stride_b, p_.b_transposed()) ||
        !matrix(d, p_.d, p_.m, p_.n, x_.ldd, x_.stride_d, false))
      return false;
    const bool packed = weights == OneDnn::Weights::packed;
    if (packed) {
      const Dimensions sizes = dimensions(p_.batch, p_.k, p_.n);
      if (f_.memory_desc_init_by_tag(&wanted, rank(), sizes.data(), type_code(p_.b), kAny)) return false;
    }
    void *attributes = nullptr, *description = nullptr;
    const bool biased = begins_with_bias();
    if (!make_attributes(&attributes, biased) || (biased && !make_bias(bias))) return false;
    if (f_.matmul_desc_init(&operation, &a, packed ? &wanted : &b, biased ? &bias : nullptr, &d) ||
        f_.primitive_desc_create(&description, &operation, attributes, engine_, nullptr) ||
        f_.primitive_create(&primitive_, description))
      return false;
    const void* inside = packed ? f_.primitive_desc_query_md(description, kQueryWeights, 0) : &b;
    void* weights_memory = memory(inside, x_.b);
    if (packed && !(weights_memory = reordered(b, inside))) return false;
    arguments_.push_back({kSource, memory(&a, x_.a)});
    arguments_.push_back({kWeights, weights_memory});
    arguments_.push_back({kDestination, memory(&d, x_.d)});
    return true;
  }

  void run() const {
    f_.primitive_execute(primitive_, stream_, int(arguments_.size()), arguments_.data());
    f_.stream_wait(stream_);
  }

private:
  int rank() const { return p_.batch > 1 ? 3 : 2; }
  Dimensions dimensions(int64_t batch, int64_t rows, int64_t columns) const {
    return p_.batch > 1 ? Dimensions{batch, rows, columns} : Dimensions{rows, columns};
  }

  bool matrix(Blob& out, Type type, int64_t rows, int64_t columns, int64_t ld, int64_t stride,
              bool transposed) const {
    const Dimensions sizes = dimensions(p_.batch, rows, columns);
    const Dimensions strides = transposed ? dimensions(stride, 1, ld) : dimensions(stride, ld, 1);
    return type_code(type) &&
           !f_.memory_desc_init_by_strides(&out, rank(), sizes.data(), type_code(type), strides.data());
  }

  void* memory(const void* description, const void* data) const {
    void* out = nullptr;
    f_.memory_create(&out, description, engine_, const_cast<void*>(data));
    return out;
  }

  /// B copied into the layout of `inside`.
  void* reordered(const Blob& b, const void* inside) {
    packed_ = PageBuffer(f_.memory_desc_get_size(inside), 2); // at a line, as its own memory
    void *description = nullptr, *primitive = nullptr, *to = memory(inside, packed_.data());
    if (f_.reorder_primitive_desc_create(&description, &b, engine_, inside, engine_, nullptr) ||
        f_.primitive_create(&primitive, description))
      return nullptr;
    const Argument arguments[] = {{kSource, memory(&b, x_.b)}, {kDestination, to}};
    return f_.primitive_execute(primitive, stream_, 2, arguments) || f_.stream_wait(stream_) ? nullptr : to;
  }

  /// Of its own operand: ahead of the post-operations, and not multiplied by alpha here.
  bool begins_with_bias() const {
    return !p_.epilogue.empty() && p_.epilogue.front() == EpilogueOp::bias && x_.alpha == 1;
  }
  bool make_bias(Blob& out) {
    const Dimensions sizes = dimensions(1, 1, p_.n), strides = dimensions(p_.n, p_.n, 1);
    const int type = type_code(p_.epilogue_type());
    if (!type || f_.memory_desc_init_by_strides(&out, rank(), sizes.data(), type, strides.data()))
      return false;
    arguments_.push_back({kBias, memory(&out, x_.step(EpilogueOp::bias).data)});
    return true;
  }

  bool make_attributes(void** out, bool biased) {
    void* steps = nullptr;
    if (f_.primitive_attr_create(out) || f_.post_ops_create(&steps)) return false;
    const float alpha = float(x_.alpha);
    if (alpha != 1 && f_.primitive_attr_set_output_scales(*out, 1, 0, &alpha)) return false;
    int index = 0;
    for (size_t i = biased; i < p_.epilogue.size(); ++i)
      if (!append(steps, p_.epilogue[i], index++)) return false;
    return index == 0 || !f_.primitive_attr_set_post_ops(*out, steps);
  }

  bool append(void* steps, EpilogueOp op, int index) {
    const auto function = [&](int kind, float alpha = 0, float beta = 0) {
      return !f_.post_ops_append_eltwise(steps, 1, kind, alpha, beta);
    };
    switch (op) {
    case EpilogueOp::relu:
      return function(kRelu);
    case EpilogueOp::gelu:
      return function(kGelu);
    case EpilogueOp::gelu_tanh:
      return function(kGeluTanh);
    case EpilogueOp::silu:
      return function(kSwish, 1);
    case EpilogueOp::sigmoid:
      return function(kLogistic);
    case EpilogueOp::clamp:
      return function(kClip, float(x_.clamp_low), float(x_.clamp_high));
    case EpilogueOp::bias:
    case EpilogueOp::bias_row:
    case EpilogueOp::residual:
    case EpilogueOp::multiply:
    case EpilogueOp::scale_a:
    case EpilogueOp::scale_b:
    case EpilogueOp::scale_row:
    case EpilogueOp::scale_col:
    case EpilogueOp::scale_d:
      return append_binary(steps, op, index);
    default:
      return false; // what is neither a sum nor a product: the library is not asked then
    }
  }

  bool append_binary(void* steps, EpilogueOp op, int index) {
    for (const StepOperand& operand : operands_of(p_)) {
      if (operand.op != op) continue;
      const bool adds = op == EpilogueOp::bias || op == EpilogueOp::bias_row || op == EpilogueOp::residual;
      const bool matrix = operand.shape == Operand::Shape::matrix;
      const int64_t rows = matrix || operand.shape == Operand::Shape::per_row ? p_.m : 1;
      const int64_t columns = matrix || operand.shape == Operand::Shape::per_column ? p_.n : 1;
      const CallBuffers::Step& step = x_.step(op);
      const Dimensions sizes = dimensions(matrix ? p_.batch : 1, rows, columns);
      const Dimensions strides =
          dimensions(matrix ? step.stride : rows * columns, matrix ? step.ld : columns, 1);
      Blob description;
      if (!type_code(operand.type) ||
          f_.memory_desc_init_by_strides(&description, rank(), sizes.data(), type_code(operand.type),
                                         strides.data()) ||
          f_.post_ops_append_binary(steps, adds ? kAdd : kMultiply, &description))
        return false;
      arguments_.push_back({kPostOperation * (index + 1) | kSecond, memory(&description, step.data)});
      return true;
    }
    return false;
  }

  const OneDnn::Interface& f_;
  const Gemm p_;
  const CallBuffers x_;
  void *engine_ = nullptr, *stream_ = nullptr, *primitive_ = nullptr;
  std::vector<Argument> arguments_;
  PageBuffer packed_;
};

} // namespace

std::optional<OneDnn> OneDnn::open(std::string* why) {
  setenv("OMP_NUM_THREADS", "1", 1); // read when its OpenMP runtime is loaded: it then starts no threads
  const OpenedLibrary found = open_library({"libdnnl.so.2"});
  const auto none = [&](const std::string& reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  if (!found) return none(found.absence(""));
  auto functions = std::make_shared<Interface>();
  if (const std::string missing = functions->load(found.handle); !missing.empty())
    return none("libdnnl.so.2 has no " + missing);
  const Version& version = *functions->version();
  if (version.major != 2)
    return none("libdnnl.so.2 is version " + std::to_string(version.major) +
                ", whose interface is not known here");
  OneDnn library;
  library.name_ = "onednn 2." + std::to_string(version.minor) + "." + std::to_string(version.patch);
  library.interface_ = functions;
  return library;
}

bool OneDnn::serves(const Gemm& p) const {
  CallBuffers x;
  x.lda = p.a_columns(), x.stride_a = p.m * p.k, x.ldb = p.b_columns(), x.stride_b = p.k * p.n;
  x.ldd = p.n, x.stride_d = p.m * p.n;
  for (const StepOperand& operand : operands_of(p))
    if (operand.is_matrix()) x.step(operand.op).ld = p.n, x.step(operand.op).stride = p.m * p.n;
  return bool(prepare(p, x, Weights::plain));
}

bool OneDnn::use_threads(int count) const {
  if (!interface_->set_threads) return false;
  interface_->set_threads(count);
  return true;
}

std::function<void()> OneDnn::prepare(const Gemm& p, const CallBuffers& x, Weights weights) const {
  auto product = std::make_shared<Matmul>(*interface_, p, x);
  if (!product->make(weights)) return {};
  return [product, keep = interface_] { product->run(); };
}

} // namespace deepgen
