// A request to a site, tried until a worker has answered it.
#pragma once

#include "remote/attempt.h"
#include "remote/sites.h"

namespace deepgen {

struct RemoteCall {
  const Site& site;
  Task task;
  Request request;
  std::vector<BundleFile> files;
  std::string program;    ///< `deepgen` or `deepgen-measure` here, for sites that it is sent to
  std::string what;       ///< the file that will be written, for people
  std::string board;      ///< folder of the build tree's board; empty: none
  double run_seconds = 0; ///< until the answer, unless the site says otherwise
  /// A command that ends with status 1 has decided something, and would again. Else it is no answer.
  bool decides = false;
};

struct Answer {
  Bundle files;
  std::string text; ///< what the command said
  Started where;
  bool failed = false; ///< of a call that decides: the command ended with status 1, and wrote nothing
};

/// Throws HostFault when no try of the site's gave an answer: whatever a launcher or a host does, it says
/// nothing about a candidate. Throws Error, without another try, where the worker refuses.
Answer call(const RemoteCall&);

/// With which a command ends for what its host could not do; another host may.
constexpr int kHostFaultStatus = 75;

/// The words that start the worker; `left_out` nodes are named where the site says how.
std::vector<std::string> worker_words(const Site&, Task, const Sent&,
                                      const std::vector<std::string>& left_out);

} // namespace deepgen
