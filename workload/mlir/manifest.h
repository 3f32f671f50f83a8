// Manifest: the committed file of a module's matrix products, deepgen.mlir/1: what deepgen_add_mlir() builds,
// one function a line, without dates, hosts or paths.
#pragma once

#include "base/problem/gemm.h"

#include <string>
#include <utility>
#include <vector>

namespace deepgen::tensors {

/// A function of the library. Its form for MLIR takes a memref for each operand, in this order.
struct Entry {
  std::string name; ///< of the library's function
  Gemm problem;
  std::string function; ///< of the module, where it stands first
  int64_t line = 1;     ///< there
  int64_t calls = 1;    ///< places in the module that call it
  bool whole = false;   ///< the function of the module is this call and nothing else
  std::vector<std::pair<std::string, int64_t>>
      operands; ///< fields of deepgen_gemm_args, and the memrefs' ranks
  std::vector<std::pair<std::string, double>> arguments; ///< other fields that are not as by default

  bool operator==(const Entry&) const = default;
};

/// An operation that stays in the module, because somebody said so (--leave).
struct Left {
  std::string operation, why;
  int64_t line = 1;

  bool operator==(const Left&) const = default;
};

struct Manifest {
  static constexpr const char* schema = "deepgen.mlir/1";
  static constexpr size_t most_entries = 10'000, most_operands = 12;

  std::string source; ///< name of the module's file, without its folder
  std::string sha256; ///< of its bytes
  std::vector<Entry> functions;
  std::vector<Left> left;

  bool operator==(const Manifest&) const = default;

  /// Throws Error on anything that is not as serialize() writes it.
  static Manifest parse(const std::string& text, const std::string& where);
  static Manifest read(const std::string& path);
  std::string serialize() const;
};

} // namespace deepgen::tensors
