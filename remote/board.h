// The board of a build tree: what its edges do elsewhere just now, what has failed there, and which nodes are
// left out. For `deepgen status`, and for the edges themselves.
#pragma once

#include "base/files/locks.h"
#include "base/json/json.h"

#include <optional>
#include <string>
#include <vector>

namespace deepgen {

/// What one edge does.
struct RemoteWork {
  std::string site, task, what; ///< what: the file that it writes
  std::string node, job;        ///< empty while no worker has started
  int attempt = 1;
  int64_t since = 0; ///< seconds since 1970

  Json to_json() const;
  static RemoteWork from_json(const Json&, const std::string& where);
};

struct RemoteFailure {
  RemoteWork work; ///< with the time of the failure
  std::string why;
};

struct BadNode {
  std::string name;
  int failures = 0; ///< one behind the other
  int64_t last = 0;
  bool left_out(int64_t now) const;
};

class Board {
public:
  /// An empty folder name: nothing is kept. The folder need not be there.
  explicit Board(std::string folder) : folder_(std::move(folder)) {}

  /// Puts up what is done by this process, until the guard goes. A dead process's is not shown any more.
  class Notice {
  public:
    Notice(const std::string& folder, const RemoteWork&);
    ~Notice();
    Notice(const Notice&) = delete;
    void change(const RemoteWork&);

  private:
    std::string path_;
    int fd_ = -1;
  };

  std::vector<RemoteWork> running() const;
  void add_failure(const RemoteWork&, const std::string& why) const;
  std::vector<RemoteFailure> failures() const; ///< the latest ones, oldest first

  /// After this many failures in a row a node of the site is left out, for so many seconds.
  static constexpr int kFailures = 3;
  static constexpr int64_t kLeftOutSeconds = 3600;
  /// Returns whether that leaves the node out.
  bool count_failure(const std::string& site, const std::string& node) const;
  void count_success(const std::string& site, const std::string& node) const;
  std::vector<BadNode> nodes(const std::string& site) const; ///< that have failed
  std::string nodes_path(const std::string& site) const { return folder_ + "/" + site + ".nodes.json"; }

private:
  template <typename Change>
  void change_nodes(const std::string& site, const Change&) const;

  std::string folder_;
};

int64_t unix_time();

} // namespace deepgen
