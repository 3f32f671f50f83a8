// A call of a vendor's library that does all of a problem: what a function may run in place of its kernel,
// where the hold-out found that faster.
#pragma once

#include "base/json/json.h"
#include "base/problem/problem.h"

#include <optional>

namespace deepgen {

struct VendorCall {
  std::string library; ///< "openblas", "cublaslt", "hipblaslt"
  std::string version; ///< "0.3.21": no other one was timed
  std::string
      algorithm;    ///< of a GPU's: cublasLtMatmulAlgo_t as 128 hex digits, which one version reads alone
  std::string text; ///< what the library calls it: "id 66, tile 20, stages 36, split-K 1"
  int64_t workspace = 0; ///< bytes that a call needs
  std::string device;    ///< that it was timed on; its entry has it, and not its own text
  bool operator==(const VendorCall&) const = default;

  /// "cublaslt 13.1.0, id 66, tile 20"; of OpenBLAS with the epilogue behind it.
  std::string config(const Problem&) const;
};
Json to_json(const VendorCall&);
/// Throws Error when a field is missing or of another type. What it says is judged by why_unusable().
VendorCall vendor_call_from(const Json&, const std::string& where);
/// The field `key`, where it is.
std::optional<VendorCall> get_vendor_call(const Json&, const std::string& key, const std::string& where);

/// The words of an algorithm: 8, or Error.
std::array<uint64_t, 8> algorithm_words(const std::string& hex);
std::string algorithm_hex(const std::array<uint64_t, 8>&);

/// The one that functions call on an arch, as locks name it.
std::string vendor_library(const std::string& arch);

/// Why no library can do all of the problem in one call that the runtime makes; empty when one can.
std::string why_no_call(const Problem&, const std::string& arch);
/// Why this one cannot be made, whatever is installed; empty when it is good.
std::string why_unusable(const VendorCall&, const Problem&, const std::string& arch);

/// Whether a verdict of the tuned kernel against the vendor says that the vendor is faster.
bool is_loss(const std::string& verdict);

} // namespace deepgen
