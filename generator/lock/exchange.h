// The two small files that the edges of one problem exchange: problem.json and choice.json
// (docs/reference/formats.md).
#pragma once

#include "base/kernel/config.h"
#include "base/problem/points.h"
#include "base/problem/problem.h"
#include "base/search/vendor_call.h"

#include <optional>

namespace deepgen {

/// problem.json: what `deepgen_add_gemm()` declared.
struct ProblemFile {
  std::string target, name, ns;
  Problem problem;
  bool untuned = false;    ///< true: always the default config
  bool fallback = false;   ///< FALLBACK vendor: the vendor's library runs where it was found faster
  TunePoints points;       ///< of a problem with ranges: TUNE_AT, WEIGHTS and KERNELS
  bool own_points = false; ///< TUNE_AT was given

  std::string label() const { return target + " " + name; }
  static ProblemFile parse(const std::string& text, const std::string& where);
  static ProblemFile read(const std::string& path);
};

/// One decision of a lock, as choice.json keeps it.
struct LockedChoice {
  Choice choice;
  int64_t revision = 0;
  std::string expect_sha256; ///< of the main kernel's code; empty unless it is the lock's choice
  std::string toolchain;     ///< what made that code
  std::string device;        ///< tuned on the device of this name; empty: for all of the arch
  /// Of a problem with ranges that has several kernels: the calls that take this one.
  std::optional<SizeSpan> taken = {};
  std::optional<VendorCall> vendor = {}; ///< runs in place of it where it can; of a function with a fallback
};

/// A call beside one of the kernels that a function links: the main one of an arch and a device, as
/// Kernel::device has it.
struct LinkedCall {
  std::string arch, device;
  VendorCall call;
};

/// choice.json: the config to build. Holds no timings, so that measuring again with the same outcome rebuilds
/// nothing.
struct ChoiceFile {
  std::string function; ///< ProblemFile::label(), for messages
  Problem problem;
  std::string arch = "cpu";
  LockedChoice main;
  std::string origin;               ///< "lock", "search" or "default"
  std::vector<LockedChoice> ranges; ///< linked beside `main`, each for other sizes
  std::vector<LockedChoice>
      devices; ///< GPUs: linked beside `main`, each for the device it was tuned on alone
  std::vector<Choice>
      instead; ///< GPUs: for a default that the assembler refuses (it spills, say), best first

  std::vector<LinkedCall> calls() const;
  std::string serialize() const;
  static ChoiceFile parse(const std::string& text, const std::string& where);
  static ChoiceFile read(const std::string& path);
};

} // namespace deepgen
