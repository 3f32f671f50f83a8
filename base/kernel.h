// Kernel: a self-describing artifact. One file (.dgk) holds one candidate: a line of JSON, then the code bytes.
#pragma once

#include "base/config.h"
#include "base/problem.h"

namespace deepgen {

/// One entry point with its code. For arch "cpu" the code is a position-independent image of x86-64 machine code
/// and constants without relocations: copy it to executable memory aligned to `align` and call the byte at `entry` as
///   void entry(const uint64_t* args)
/// where args[i] holds the value named by args[i] below (see runtime/include/deepgen/kernel_abi.h).
struct Kernel {
  std::string role;  ///< "main"; "awkward": the same config for a small awkward shape; "fallback": for lesser devices
  Problem problem;   ///< the shape this code is for (differs from the candidate's for "awkward")
  Choice choice;     ///< the config this code is for (differs for "fallback")
  int64_t isa = 1;   ///< x86-64 level that the code needs
  std::vector<std::string> args; ///< argument slots in order, names from kernel_abi.h
  /// The iteration grid that the runtime may split among threads: tiles along M, N and batch. A call computes the
  /// tiles [m0,m1) x [n0,n1) of the batch entries [b0,b1).
  int64_t tiles_m = 1, tiles_n = 1, tiles_b = 1;
  /// Where a split along M or N should fall to keep cache blocks whole, in tiles.
  int64_t grain_m = 1, grain_n = 1;
  int64_t workspace = 0; ///< bytes of scratch that one call needs, aligned to 64
  int64_t align = 64, entry = 0;
  std::string code; ///< raw bytes

  std::string sha256; ///< of `code`, hex; filled by the compiler
};

/// What became of one candidate. `status` is "ok", "failed" (with `detail`) or "empty" (the plan has no such slot).
struct KernelFile {
  std::string status = "ok", detail;
  Problem problem;
  std::string arch = "cpu";
  Choice choice;
  int64_t revision = 0;  ///< of the template
  std::string origin;    ///< why the plan has it: "default", "incumbent", "model", "neighbour", "random", "lock"
  std::vector<Kernel> kernels;

  const Kernel* find(const std::string& role) const; ///< nullptr when absent
  std::string serialize() const;
  static KernelFile parse(const std::string& bytes, const std::string& where);
  static KernelFile read(const std::string& path);
};

} // namespace deepgen
