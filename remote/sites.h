// sites.json: where kernels are compiled and measured when it is not here (docs/cluster.md).
#pragma once

#include "base/json/json.h"

#include <string>
#include <vector>

namespace deepgen {

enum class Task { compile, measure };
const char* to_string(Task);

/// How workers are started for one task of a site.
struct Launcher {
  bool here = false;              ///< the site says nothing: this host does it, without a worker
  std::vector<std::string> words; ///< go before the worker; none: the worker is started as it is
  int64_t jobs = 1;               ///< at once; Ninja's pool
};

struct Site {
  std::string name;
  std::vector<std::string> archs;
  Launcher compile, measure;
  int64_t batch = 4;     ///< slots of a round that one compile takes
  std::string worker;    ///< path of `deepgen` there
  std::string measurer;  ///< path of `deepgen-measure` there; when not given, beside the worker
  bool send = false;     ///< workers are sent there, to the cache of the user, and paths are not needed
  std::string leave_out; ///< a launcher's word for bad nodes, with {nodes} for their names; often empty
  bool shell = false;    ///< the launcher hands its words to a shell there, as ssh does
  double start_seconds = 86400;                    ///< until a worker has started; a queue may be long
  double run_seconds = 0;                          ///< until its answer; 0: by the command
  double silence_seconds = 60;                     ///< without a sign of life
  std::vector<double> retry_seconds = {1, 10, 60}; ///< pauses before further tries

  const Launcher& launcher(Task task) const { return task == Task::compile ? compile : measure; }
};

struct Sites {
  std::vector<Site> sites;

  /// Throws Error, naming site and field, for what is no good.
  static Sites parse(const std::string& text, const std::string& where);
  static Sites read(const std::string& path);
  const Site& find(const std::string& name, const std::string& where) const;
};

} // namespace deepgen
