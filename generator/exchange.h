// The two small files that the edges of one problem exchange: problem.json and choice.json (docs/formats.md).
#pragma once

#include "base/config.h"
#include "base/problem.h"

namespace deepgen {

/// problem.json: what `deepgen_add_gemm()` declared.
struct ProblemFile {
  std::string target, name, ns;
  Problem problem;
  bool untuned = false; ///< true: always the default config

  std::string label() const { return target + " " + name; }
  static ProblemFile read(const std::string& path);
};

/// choice.json: the config to build. Holds no timings, so that measuring again with the same outcome rebuilds
/// nothing.
struct ChoiceFile {
  Problem problem;
  std::string arch = "cpu";
  Choice choice;
  int64_t revision = 0;
  std::string origin;        ///< "lock", "search" or "default"
  std::string expect_sha256; ///< of the main kernel's code; empty unless the lock has one

  std::string serialize() const;
  static ChoiceFile read(const std::string& path);
};

} // namespace deepgen
