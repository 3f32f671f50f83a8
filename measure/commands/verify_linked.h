// deepgen-measure verify: kernel files by themselves, outside of a search.
#pragma once

#include "measure/gpu/cuda_verify_all.h"

namespace deepgen {

struct VerifyCommand {
  cuda::VerifyCommand gpu; ///< files and options; those for the CPU take what they know of these
  std::string
      output; ///< for one file: verified.json with what `embed` may call verified; wrong kernels are an error
  std::string device, devices; ///< with `output`, of a GPU
  std::string cache;           ///< folder; empty: the environment's
  bool no_cache = false;       ///< a frozen build believes nobody
  bool unproven = false;       ///< leaves out what a search has verified, and what takes minutes
  /// verified.json also has what this host is too old for: it is the same on every host then.
  bool any_host = false;
};
/// Prints a line for each file, or writes the output. Returns whether all are good.
bool verify(const VerifyCommand&);

} // namespace deepgen
