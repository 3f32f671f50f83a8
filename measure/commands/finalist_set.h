// FinalistSet: the finalists of a search with their kernels, and what is still to be verified of them.
#pragma once

#include "base/kernel/kernel.h"
#include "base/search/finalists.h"

#include <string>
#include <vector>

namespace deepgen {

struct Finalist {
  Record record; ///< of stage "final", without a time
  KernelFile file;
  double seconds = 0; ///< of a call, in its last round
  const Kernel& kernel() const { return *file.find("main"); }
};

class FinalistSet {
public:
  /// `records`: the logs of the rounds. `awkward`: what `deepgen compile --finalist` wrote, where the rounds'
  /// kernel files lack the kernel for an awkward shape. `output`: the log to be written.
  FinalistSet(const std::vector<std::string>& records, const std::vector<std::string>& awkward,
              const std::string& output);

  const std::vector<Finalist>& finalists() const { return finalists_; }
  bool has_default() const { return has_default_; } ///< the first one is it

  /// The others are left out.
  void keep_first(size_t count);

  /// Finalists that no round has verified on an awkward shape, each with that kernel. Those whose kernel
  /// could not be compiled are rejected by this. Throws Error when one has no file in `awkward`.
  std::vector<KernelFile> unverified();
  /// Of the finalist with the config: is good, with this error, ...
  void accept(const Choice&, double error);
  /// ... or is none any more.
  void reject(const Choice&, const std::string& status, const std::string& detail);

  /// Of a batch invariant problem: rejects those whose bits of rows are others than those of their order.
  void reject_others();

  /// The default's record when it failed in its round, then those of the rejected.
  std::vector<Record> failed() const { return failed_; }

private:
  Finalist load(const LoggedRecord&, const std::string& output) const;

  std::vector<Finalist> finalists_;
  std::vector<KernelFile> awkward_;
  std::vector<Record> failed_;
  bool has_default_ = false;
};

} // namespace deepgen
