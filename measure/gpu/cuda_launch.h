// A GPU kernel launched from its description.
#pragma once

#include "base/kernel/kernel.h"
#include "measure/devices/cuda_driver.h"
#include "measure/gpu/toolbox/cuda_parameters.h"
#include "measure/values/loader.h"

#include <array>
#include <vector>

namespace deepgen::cuda {

/// What one call of a kernel gets. Absent operands have data 0.
struct CallOperands {
  Array a, b, c, d;
  std::array<Array, epilogue_op_count> steps; ///< of the epilogue, by EpilogueOp, as spread() makes them
  Address offsets = 0;                        ///< of the groups of rows
  std::vector<int32_t> in_groups;             ///< what is there, where the host knows
  Address workspace = 0;
  double alpha = 1, beta = 0, clamp_low = 0, clamp_high = 0;

  Array& step(EpilogueOp op) { return steps[size_t(op)]; }
  const Array& step(EpilogueOp op) const { return steps[size_t(op)]; }
};

/// The same of rows.
struct RowsOperands {
  Array x, residual, d, residual_out;
  Address scale = 0, bias = 0, row_scales = 0;
  double epsilon = 0;
};
/// By its name in the signature.
void set_operand(RowsOperands&, const std::string& name, const Array&);

/// The bits of a scalar argument, in the low bytes.
uint64_t scalar_bits(double value, Type type);

class LoadedKernel {
public:
  /// Loads the cubin when the device runs it, else the PTX. Throws Error when neither does, or the
  /// description is not understood; DriverError when the driver refuses it. Of a problem with ranges: of
  /// kernel_in_call(), or calls are of the largest sizes.
  LoadedKernel(const Kernel& kernel, const Context& context);
  /// Enqueues the launches of one call. The operands are copied.
  void enqueue(const CallOperands& operands, Stream stream) const;
  void enqueue(const RowsOperands& operands, Stream stream) const;
  /// Of attention: the sizes are those of the call, of which the grid is made.
  void enqueue(const SlotValues& values, Stream stream) const;

private:
  /// `slots`: a value for each deepgen_arg; `maps`: in the order of the kernel's; `sizes`: those of the call,
  /// where the grid follows from them.
  void launch(uint64_t* slots, std::vector<TensorMapBits>& maps, Stream stream,
              const Sizes* sizes = nullptr) const;
  struct Entry {
    Function function = nullptr;
    LaunchConfig config;
    std::vector<LaunchAttribute> attributes;
    std::array<SizeRule, 3> grid_rules;
  };
  void find_step_slots();
  const Array& mapped(const std::string& name, const CallOperands&) const;
  Entry prepare(const Launch& launch, const Context& context) const;

  const Kernel kernel_; ///< without its code
  Module module_;
  std::vector<int> slots_; ///< deepgen_arg
  /// Where an operand of the epilogue goes; of a matrix its leading dimension and batch stride, too.
  struct StepSlots {
    EpilogueOp op;
    std::string name;
    int data, ld, stride; ///< deepgen_arg; -1: none
  };
  std::vector<StepSlots> step_slots_;
  std::vector<Entry> entries_;
};

} // namespace deepgen::cuda
