// Packing on GPUs: a launch that copies operands into the workspace, in rows that TMA can address, and along
// K where tensor cores want them so. It reads and writes an operand once, so it pays where each element is
// used often.
#pragma once

#include "base/kernel/kernel.h"
#include "templates/gpu/gpu_sizes.h"

namespace deepgen {

class GpuPack {
public:
  /// What becomes of one operand.
  struct Side {
    bool packed = false;
    bool k_major =
        true;           ///< of the copy; the operand is transposed on the way if its own rows are not along K
    int64_t align = 16; ///< bytes to which the operand's rows are aligned
  };

  GpuPack() = default;
  /// The copies begin `start` bytes into the workspace.
  GpuPack(const Gemm&, const Side& a, const Side& b, int64_t start);

  bool any() const { return a_.place.ld || b_.place.ld; }
  PackedOperand place(const std::string& operand) const { return operand == "a" ? a_.place : b_.place; }
  int64_t end() const {
    return end_;
  } ///< bytes of workspace, with what comes before; 0 when there are no copies
  double bytes() const { return bytes_; } ///< that the launch reads and writes
  /// Where a range of M decides how many rows the copy of A has, which comes last: the bytes of the workspace
  /// before it, and the rule of those that it takes.
  std::pair<int64_t, SizeRule> workspace_rule(const Gemm&) const;

  /// Adds the entry `deepgen_pack` to the module and returns its launch. From sm_90 on it waits for what runs
  /// before it (with `dependent` it starts before that has ended), and lets the next launch start early: that
  /// must wait for it. `early`: what is copied is asked for before that wait.
  Launch emit(NvIr&, const Gemm&, const std::vector<std::string>& arguments, bool dependent,
              bool early) const;

private:
  struct Copy {
    bool is_a = true;
    PackedOperand place;
    Type type = Type::bf16;
    bool transposed = false;
    int64_t align = 16, rows = 0, columns = 0; ///< of the operand
    int64_t blocks = 0;                        ///< of the launch

    std::string name() const { return is_a ? "a" : "b"; }
    int64_t unit() const { return 16 / size_of(type); } ///< elements that a thread stores
    int64_t piece() const;                              ///< at a time
    int64_t tile() const { return size_of(type) == 1 ? 64 : 32; }
    int64_t pitch() const { return tile() * size_of(type) + 4; } ///< of a tile's rows in shared memory, bytes
  };
  /// An operand of the call.
  struct Operand {
    Value base, ld, stride;
    SizeValue rows, columns, batch;
  };
  /// Of a piece: its number, whether there is one, the copy's row and its column there, the operand's row.
  struct Place {
    Value index, inside, line, column, row;
  };
  static Copy describe(const Gemm&, bool is_a, const Side&, int64_t offset);
  static Operand operand(GpuIr&, const Gemm&, const Copy&, const KernelArguments&);
  SizeRule grid_rule(const Gemm&) const;
  bool varies(const Gemm&) const; ///< how much there is to do
  static SizeValue in_row(GpuIr&, const Copy&, const Operand&, int64_t bytes);
  static SizeValue blocks_of(GpuIr&, const Copy&, const Operand&);
  /// Does the block's part of the copy that it is of, with its number among those of that copy.
  void of_copy(NvIr&, Value block, const SizeValue& blocks_of_a,
               const std::function<void(const Copy&, Value)>& work) const;
  void make(NvIr&, const Gemm&, const KernelArguments&, bool walks, bool early) const;
  static Place locate(GpuIr&, const Copy&, const Operand&, Value block, int64_t step);
  static void copy(GpuIr&, const Copy&, const Operand&, Value to, Value block);
  static void prefetch(GpuIr&, const Copy&, const Operand&, Value block);
  static void transpose(GpuIr&, const Copy&, const Operand&, Value to, Value block);

  Copy a_, b_;
  int64_t end_ = 0;
  double bytes_ = 0;
};

} // namespace deepgen
