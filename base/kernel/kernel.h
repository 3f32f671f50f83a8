// Kernel: a self-describing artifact. One file (.dgk) holds one candidate: a line of JSON, then the code
// bytes.
#pragma once

#include "base/kernel/config.h"
#include "base/problem/signature.h"

#include <array>
#include <optional>

namespace deepgen {

/// One kernel launch of a GPU kernel; a call makes them in order on one stream. All of a kernel's entries
/// take the same parameters (Kernel::args).
struct Launch {
  std::string entry;                       ///< symbol in the code object
  std::array<int64_t, 3> grid{1, 1, 1};    ///< in blocks (of the whole grid, not in clusters)
  std::array<SizeRule, 3> grid_rules{};    ///< of a problem with ranges; `grid` is that of the largest call
  std::array<int64_t, 3> block{1, 1, 1};   ///< in threads
  std::array<int64_t, 3> cluster{1, 1, 1}; ///< in blocks; {1,1,1}: no cluster launch
  int64_t shared = 0;                      ///< dynamic shared memory, bytes
  bool persistent = false; ///< grid[0] is lowered to the blocks that fit on the device at once
  bool dependent =
      false; ///< programmatic dependent launch: the code waits for its predecessor (griddepcontrol.wait)
  // What the assembler reports about the entry; 0 when only PTX was made.
  int64_t registers = 0, stack = 0, spill_stores = 0, spill_loads = 0, static_shared = 0;
  /// On AMD GPUs also: accumulation registers (part of `registers`), scalar registers, and waves that a SIMD
  /// holds at once. Spills count registers there, not bytes.
  int64_t accumulation = 0, scalars = 0, waves = 0;
  bool operator==(const Launch&) const = default;
};

/// Where an earlier launch of the same call puts a copy of an operand: in the workspace, with rows `ld`
/// elements apart and batch entries rows * ld.
struct PackedOperand {
  int64_t offset = 0; ///< bytes from the workspace's beginning, a multiple of 256
  int64_t rows = 0, columns = 0;
  int64_t ld = 0; ///< 0: there is no copy
  /// Of a size that is a range: those above are of the largest call, and a call's are proportional to it.
  std::optional<Size> rows_by = {}, columns_by = {};
  bool operator==(const PackedOperand&) const = default;
};

/// A tensor map (CUtensorMap) of one operand, encoded by the runtime at each call and passed by value as the
/// argument "map_<operand>". Rank 2, or 3 with the batch outermost: dimensions innermost first are the
/// columns and rows as stored. Several of one operand stand next to each other and are an array in that
/// argument. Of attention rank 4: elements of a row, tokens, heads, entries.
struct TensorMap {
  std::string operand; ///< "a", "b", "c", "d", "residual" or "multiplier"; "q", "key" or "value"
  int64_t box_columns = 64, box_rows = 128; ///< elements of one copy
  int64_t swizzle = 128;                    ///< bytes: 0 (none), 32, 64, 128
  int64_t promotion = 256;                  ///< L2 promotion, bytes: 0, 64, 128, 256
  PackedOperand packed;                     ///< what the map is of, in place of the operand itself
  /// Of a map for last boxes: the size of the call along its rows. A copy has as many rows as such a size is
  /// more than a multiple of box_rows, in whole eights, after which each swizzle repeats.
  std::optional<Size> rest_of = {};
  bool operator==(const TensorMap&) const = default;
};

/// One kernel with its code. What `code` is depends on the candidate's arch:
/// "cpu": a position-independent image of x86-64 machine code and constants without relocations: copy it to
/// executable
///   memory aligned to `align` and call the byte at `entry` as   void entry(const uint64_t* args)
///   where args[i] holds the value named by args[i] below (see runtime/include/deepgen/kernel_abi.h).
/// "sm_...": a cubin, empty when no ptxas was there, and `ptx`, its source, for other devices of the same or
/// later archs.
///   The parameters of each entry are args[] in order, 8 bytes each (scalars of 4 bytes: 4 bytes; tensor
///   maps: 128 bytes each).
/// "gfx...": a code object (ELF), which carries no PTX. The parameters are as above, and there are no hidden
/// ones; shared
///   memory is static.
struct Kernel {
  std::string role; ///< "main"; "awkward": the same config for a small awkward shape; "fallback": for lesser
                    ///< devices or less aligned operands
  Problem problem;  ///< the shape this code is for (differs from the candidate's for "awkward")
  Choice choice;    ///< the config this code is for (differs for "fallback")
  std::vector<std::string> args; ///< argument slots in order, names from kernel_abi.h
  int64_t workspace = 0; ///< bytes of scratch that one call needs; aligned to 64 on the CPU, to 256 on GPUs
  /// Of a problem with ranges: a call needs `workspace_fixed` bytes and those of the rule, at most
  /// `workspace`.
  int64_t workspace_fixed = 0;
  SizeRule workspace_rule;
  /// Of one of several kernels of a problem with ranges: the sizes of the calls that take it; none: all.
  std::optional<SizeSpan> taken;
  /// Of a batch invariant problem: the order in which it adds up over K (Template::sum_order()). Kernels of
  /// one order give the same bits.
  std::string sum_order;
  std::string code;   ///< raw bytes
  std::string sha256; ///< of `code` (of `ptx` when there is no code), hex; filled by the compiler

  // CPU
  int64_t isa = 1; ///< what the code needs of an x86-64 CPU (cpu_isa.h)
  /// The iteration grid that the runtime may split among threads: tiles along M, N and batch. A call computes
  /// the tiles [m0,m1) x [n0,n1) of the batch entries [b0,b1).
  int64_t tiles_m = 1, tiles_n = 1, tiles_b = 1;
  /// Of a problem with ranges: how the tiles follow from a call's sizes; those above are of the largest call.
  std::array<SizeRule, 3> tile_rules;
  /// Where a split along M or N should fall to keep cache blocks whole, in tiles.
  int64_t grain_m = 1, grain_n = 1;
  int64_t cut = 0; ///< how threads share a call: DEEPGEN_CUT_... (kernel_abi.h)
  int64_t align = 64, entry = 0;
  std::string packed_b; ///< the layout in which it reads B (packed_layout_text()); empty: as stored

  // GPU
  /// What the code was made for: "sm_90" runs on devices of major version 9 and minor >= 0, its PTX on all
  /// later ones; "sm_90a", with architecture-specific instructions, on 9.0 alone; "gfx942" on that chip
  /// alone, with any setting of its features (xnack, sramecc). Need not be the candidate's arch.
  std::string target;
  std::string ptx;
  std::vector<Launch> launches;
  std::vector<TensorMap> maps;
  /// Bytes to which base and strides of an operand must be aligned for this kernel. d: of C, D, residual and
  /// multiplier. Of rows: a: X, the residual and its output; b: scale and bias; d: D alone. Of attention: a:
  /// Q, K and V; d: out. The runtime takes the next kernel for a call that does not meet them.
  int64_t align_a = 1, align_b = 1, align_d = 1;
  /// Bytes from one row of A, and of B, to the next that this kernel's offsets reach, at most; 0: any. A call
  /// beyond takes the next kernel, too.
  int64_t most_pitch = 0;
  std::string assembler;             ///< "ptxas 13.0.88", "LLD 22.1.8"; empty without code
  std::vector<std::string> warnings; ///< of the assembler
  std::string device; ///< tuned on the device of this name; empty: for any (in winner.dgk only)

  /// What this kernel asks of an operand of its problem's signature; 1: as its elements are aligned.
  int64_t align_of(const Operand&) const;
  /// Bytes from one of its rows to the next, at most; 0: any.
  int64_t most_pitch_of(const std::string& operand) const;
};

/// What became of one candidate. `status` is "ok", "failed" (with `detail`) or "empty" (the plan has no such
/// slot).
struct KernelFile {
  std::string status = "ok", detail;
  Problem problem;
  std::string arch = "cpu";
  Choice choice;
  int64_t revision = 0; ///< of the template
  std::string origin; ///< why the plan has it: "default", "incumbent", "model", "neighbour", "random", "lock"
  std::vector<Kernel> kernels;

  const Kernel* find(const std::string& role) const; ///< nullptr when absent
  std::string serialize() const;
  static KernelFile parse(const std::string& bytes, const std::string& where);
  static KernelFile read(const std::string& path);
};

} // namespace deepgen
