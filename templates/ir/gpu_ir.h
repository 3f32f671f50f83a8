// GpuIr: what kernels for GPUs of any vendor are made of, over MLIR's llvm, scf, arith and vector dialects.
// What is virtual NvIr (nv_ir.h) and AmdIr (amd_ir.h) do, each by its own instructions, and they add those
// that the other vendor lacks: templates that keep to GpuIr serve both. Indices within a block and byte
// offsets are i32; addresses in global memory and leading dimensions are i64. Everything is inlined into one
// function per entry, whose loops are scf.for and branches scf.if.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/ir/ir_builder.h"
#include "templates/ir/size_value.h"

#include <map>
#include <memory>

namespace deepgen {

/// The argument slots of every entry of a kernel for `problem`, in the order of kernel_abi.h. Tensor maps,
/// which a template adds itself, come last ("map_a", ...).
std::vector<std::string> gpu_arguments(const Gemm&, bool workspace);
/// Pointers first, then leading dimensions, then epsilon.
std::vector<std::string> gpu_arguments(const Rows&);
/// Pointers first, then the most queries and keys, strides, ends of a window; then scale and softcap.
std::vector<std::string> gpu_arguments(const Attention&);

/// An entry of a kernel, as its function says it to the assembler.
struct GpuEntry {
  std::string name;
  int64_t threads = 256;
  int64_t min_blocks = 1;    ///< that the register allocator leaves room for on a multiprocessor
  int64_t max_registers = 0; ///< 0: as many as min_blocks allows; AMD GPUs have no such limit
  int64_t shared = 0;        ///< bytes of shared memory where it is static, as on AMD GPUs
  std::array<int64_t, 3> cluster{1, 1, 1}; ///< on NVIDIA GPUs
};

/// How a load from global memory treats the caches, where a GPU can be told.
enum class CachePolicy {
  usual,
  read_only, ///< nothing writes the operand while the kernel runs
  streamed,  ///< read_only, read once: not kept in L1, fetched into L2 by long pieces
  passing,   ///< read once, as streamed, of what the kernel may write behind
};

class GpuIr : public Ir {
public:
  virtual ~GpuIr() = default;

  mlir::Type i8, i16, i32, f16, bf16, f32, f64;
  mlir::Type global, shared; ///< pointer types

  /// The type of one element in memory: fp8 is i8, tf32 is f32.
  mlir::Type memory_type(Type) const;
  /// vector<n x type>; the type itself for n == 1.
  mlir::Type lanes(int64_t n, mlir::Type) const;

  // Entries. `body` gets the parameters by name.
  using Arguments = KernelArguments;
  void kernel(const GpuEntry&, const Gemm&, const std::vector<std::string>& arguments,
              const std::function<void(const Arguments&)>& body);
  void kernel(const GpuEntry&, const Rows&, const std::vector<std::string>& arguments,
              const std::function<void(const Arguments&)>& body);
  void kernel(const GpuEntry&, const Attention&, const std::vector<std::string>& arguments,
              const std::function<void(const Arguments&)>& body);
  /// The block's shared memory, aligned to 1024 bytes (one symbol for the module).
  virtual Value shared_memory() = 0;

  // Where a thread is; i32.
  virtual Value thread() = 0; ///< threadIdx.x
  virtual Value block_x() = 0;
  virtual Value block_y() = 0;
  virtual Value block_z() = 0;
  Value lane();             ///< thread % 32, on AMD GPUs too
  virtual Value warp() = 0; ///< thread / 32

  // Integers. The arithmetic of Ir works on i32 and i64 alike; constants take the other operand's type.
  Value c(int64_t); ///< i32
  Value c(mlir::Type, int64_t);
  Value divide(Value, int64_t); ///< of a non-negative value
  Value divide(Value, Value);
  Value remainder(Value, int64_t);
  Value remainder(Value, Value);
  Value bit_and(Value, int64_t);
  Value bit_and(Value, Value);
  Value bit_or(Value, Value);
  Value bit_xor(Value, Value);
  Value bit_xor(Value, int64_t);
  Value shift_left(Value, int64_t);
  Value shift_left(Value, Value);
  Value shift_right_bits(Value, int64_t); ///< logical
  Value wrapping_add(Value, Value);       ///< modulo 2^32 or 2^64, where add() must not overflow
  Value add_sums(Value, Value); ///< of accumulators, scalars or vectors: floats, or integers that may wrap
  Value max(Value, Value);      ///< signed
  Value less(Value, Value);     ///< signed
  Value less(Value, int64_t);
  Value at_least(Value, int64_t); ///< signed
  Value both(Value, Value);       ///< of conditions
  Value to_i64(Value i32);        ///< of a non-negative value
  Value to_i32(Value i64);
  Value to_i16(Value i32); ///< the lower bits

  // Of sizes. The second operand's type is the first one's.
  using Ir::mul;
  using Ir::sub;
  Value c(const SizeValue&); ///< i32
  Value mul(Value, const SizeValue&);
  Value divide(Value, const SizeValue&); ///< of a non-negative value
  Value remainder(Value, const SizeValue&);
  Value less(Value, const SizeValue&);                   ///< signed
  SizeValue product(const SizeValue&, const SizeValue&); ///< of i64 where one is
  SizeValue sum(const SizeValue&, const SizeValue&);     ///< of i32
  SizeValue sub(const SizeValue&, int64_t);
  SizeValue tiles(const SizeValue& size, int64_t step); ///< ceil(size / step)
  /// Of tiles that `parts` take in turns, how many the part has whose first is number `first`, below `parts`:
  /// the first parts may have one more, and with a value for `tiles` the last ones may have none.
  Value tiles_in_turn(const SizeValue& tiles, Value first, int64_t parts);
  SizeValue wide(const SizeValue&); ///< as i64

  // Addresses.
  Value offset(Value pointer, const SizeValue& bytes);
  Value offset(Value pointer, Value bytes); ///< bytes: i32 or i64, non-negative
  Value offset(Value pointer, int64_t bytes);

  // Memory, of scalars and vectors.
  virtual Value load_global(mlir::Type, Value address, int64_t alignment,
                            CachePolicy = CachePolicy::usual) = 0;
  void store(Value, Value address, int64_t alignment);

  // Threads together.
  virtual void barrier() = 0;                         ///< of the block
  Value shuffle_xor(Value, int64_t lane_mask);        ///< within 32 lanes; 32-bit and 64-bit scalars
  virtual Value shuffle_index(Value, Value lane) = 0; ///< within 32 lanes; of 32 bits
  /// Brings a line into L2, of which the thread may not know yet what others write there. A hint: may do
  /// nothing.
  virtual void prefetch(Value global_address) { (void)global_address; }
  /// Whether a launch may begin before its predecessor ends; where not, the other two do nothing.
  virtual bool launches_early() const { return false; }
  virtual void wait_for_predecessor() {}
  virtual void launch_dependents() {}

  // Conversions, of scalars and vectors.
  Value bitcast(mlir::Type, Value);
  /// From an element's memory type to the type in which it is multiplied without tensor cores: f32, f64, or
  /// i32 for i8.
  Value decode(Type, Value);
  /// From f32 (f64 and i32 as they are) to an element of D's type: rounded to nearest even; i8 and e4m3
  /// saturated.
  Value encode(Type, Value);
  Value convert(mlir::Type to, Value); ///< between floats of any width, or from i32 to a float

  // Floats.
  Value number(mlir::Type, double); ///< of a scalar or vector type
  Value zero(mlir::Type);           ///< of any scalar or vector type
  Value maximum(Value, Value);      ///< NaN when one is NaN
  Value minimum(Value, Value);
  Value larger(Value, Value);   ///< the other one when one is NaN
  Value square_root(Value f32); ///< rounded to nearest
  Value greater(Value, double); ///< i1; false for NaN
  // By one instruction, whose error the vendors' headers give.
  virtual Value exp2_fast(Value f32) = 0;
  virtual Value log2_fast(Value f32) = 0;
  virtual Value reciprocal_fast(Value f32) = 0;
  Value multiply_add(Value x, Value y, Value z);       ///< one rounding, any float type, scalar or vector
  virtual Value dot4(Value a, Value b, Value sum) = 0; ///< i32 registers of four i8 each

  // Vectors, also of one lane (scalars).
  Value extract(Value, int64_t lane);
  Value pack(mlir::ValueRange scalars);
  Values unpack(Value);
  Value slice(Value, int64_t first, int64_t count);

  /// A loop that LLVM leaves as it is: neither unrolled nor peeled (as scf.for through Ir::loop otherwise).
  Values rolled_loop(Value from, Value to, Value step, mlir::ValueRange carried, const Body& body);
  Values rolled_loop(Value from, Value to, int64_t step, mlir::ValueRange carried, const Body& body);
  void rolled_loop(Value from, Value to, int64_t step, const std::function<void(Value)>& body);
  /// What `sum` makes where there is a tile of K; else as many zeros: nothing is read then.
  Values sums_of(Value tiles, size_t count, mlir::Type, const std::function<Values()>& sum);

protected:
  explicit GpuIr(mlir::ModuleOp module);
  static int64_t bytes_of(mlir::Type);                          ///< of a scalar or vector
  virtual Value shuffle_word_xor(Value, int64_t lane_mask) = 0; ///< of 32 bits
  virtual Value round_to_i8(Value f32) = 0;                     ///< to nearest even, saturated; NaN is 0
  // Of 8-bit floats, by integers: for chips without OCP's conversions.
  virtual Value decode_pair(Type, Value);
  virtual Value encode_e4m3(Value);
  using Parameters = std::vector<std::pair<std::string, mlir::Type>>;
  virtual void define(const GpuEntry&, const Parameters&,
                      const std::function<void(const Arguments&)>& body) = 0;
  mlir::ModuleOp module_;

private:
  Value decode_e4m3(Value), decode_e5m2(Value), encode_e4m3_by_bits(Value);
  mlir::Type argument_type(Type scalar, const std::string& name);
  Parameters parameters_of(Type scalar, const std::vector<std::string>& names);
};

/// What Kernel::target of a kernel that needs no instruction of one architecture alone is: "sm_90" for arch
/// "sm_90a".
std::string gpu_target(const std::string& arch);
std::unique_ptr<GpuIr> make_gpu_ir(mlir::ModuleOp, const std::string& target);

} // namespace deepgen
