#include "remote/board.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/text/text.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kRunning = "/running";
constexpr const char* kFailuresFile = "/failures.jsonl";
constexpr const char* kNodesSchema = "deepgen.nodes/1";
constexpr size_t kShownFailures = 20, kLongestText = 2000;
constexpr int64_t kMostOfFailures = int64_t(1) << 20;

/// What a reader finds damaged is as if it were not there: a board decides nothing that is written.
template <typename Read>
void tolerant(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

std::vector<BadNode> read_nodes(const std::string& path) {
  std::vector<BadNode> nodes;
  tolerant([&] {
    if (!file_exists(path)) return;
    for (const Json& json : get<Json::array_t>(read_json(path, kNodesSchema), "nodes", path))
      nodes.push_back({get_name(json, "name", path),
                       int(std::min<int64_t>(get_count(json, "failures", path), 1000)),
                       get_count(json, "last", path)});
  });
  return nodes;
}

void write_nodes(const std::string& path, const std::vector<BadNode>& nodes) {
  Json list = Json::array();
  for (const BadNode& n : nodes)
    list.push_back({{"name", n.name}, {"failures", n.failures}, {"last", n.last}});
  write_if_changed(path, dump_json({{"schema", kNodesSchema}, {"nodes", list}}) + "\n");
}

} // namespace

int64_t unix_time() { return int64_t(std::time(nullptr)); }

Json RemoteWork::to_json() const {
  return {{"site", site}, {"task", task},       {"what", what},  {"node", node},
          {"job", job},   {"attempt", attempt}, {"since", since}};
}

RemoteWork RemoteWork::from_json(const Json& json, const std::string& where) {
  return {get_word(json, "site", where),  get_word(json, "task", where),
          get_text(json, "what", where),  get_text(json, "node", where),
          get_text(json, "job", where),   int(std::min<int64_t>(get_count(json, "attempt", where), 1000)),
          get_count(json, "since", where)};
}

bool BadNode::left_out(int64_t now) const {
  return failures >= Board::kFailures && now - last < Board::kLeftOutSeconds;
}

Board::Notice::Notice(const std::string& folder, const RemoteWork& work) {
  if (folder.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder + kRunning, ignored);
  path_ = folder + kRunning + "/" + std::to_string(getpid()) + ".json";
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ >= 0) flock(fd_, LOCK_EX | LOCK_NB); // as long as this process is there
  change(work);
}

/// In place, so that the lock stays: a reader takes what is torn for absent.
void Board::Notice::change(const RemoteWork& work) {
  if (fd_ < 0) return;
  const std::string text = dump_json(work.to_json()) + "\n";
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, text.data(), text.size(), 0) < 0) return; // nobody needs it
}

Board::Notice::~Notice() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  close(fd_);
}

std::vector<RemoteWork> Board::running() const {
  std::vector<RemoteWork> list;
  std::error_code failure;
  for (fs::directory_iterator it(folder_ + kRunning, failure), end; !failure && it != end;
       it.increment(failure)) {
    const std::string path = it->path().string();
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    const bool dead = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (dead) unlink(path.c_str());
    close(fd);
    if (!dead) tolerant([&] { list.push_back(RemoteWork::from_json(read_json(path), path)); });
  }
  std::sort(list.begin(), list.end(),
            [](const RemoteWork& x, const RemoteWork& y) { return x.what < y.what; });
  return list;
}

void Board::add_failure(const RemoteWork& work, const std::string& why) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  Json json = work.to_json();
  json["why"] = why.substr(0, kLongestText);
  const std::string line = dump_json(json) + "\n";
  const int fd =
      open((folder_ + kFailuresFile).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return;
  if (lseek(fd, 0, SEEK_END) > kMostOfFailures && ftruncate(fd, 0) != 0) ignored.clear();
  if (write(fd, line.data(), line.size()) < 0) ignored.clear(); // a full disk is told by the edge's own files
  close(fd);
}

std::vector<RemoteFailure> Board::failures() const {
  std::vector<RemoteFailure> list;
  const std::string path = folder_ + kFailuresFile;
  std::string text;
  tolerant([&] { text = file_exists(path) ? read_file(path) : ""; });
  for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    tolerant([&] {
      const Json json = parse_json(text.substr(at, end - at), path);
      list.push_back({RemoteWork::from_json(json, path), get_text(json, "why", path)});
    });
  }
  if (list.size() > kShownFailures) list.erase(list.begin(), list.end() - kShownFailures);
  return list;
}

template <typename Change>
void Board::change_nodes(const std::string& site, const Change& change) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  tolerant([&] {
    const auto lock = FileLock::of_folder(folder_);
    std::vector<BadNode> nodes = read_nodes(nodes_path(site));
    change(nodes);
    write_nodes(nodes_path(site), nodes);
  });
}

bool Board::count_failure(const std::string& site, const std::string& node) const {
  bool left_out = false;
  change_nodes(site, [&](std::vector<BadNode>& nodes) {
    auto at = std::find_if(nodes.begin(), nodes.end(), [&](const BadNode& n) { return n.name == node; });
    if (at == nodes.end()) at = nodes.insert(nodes.end(), {node, 0, 0});
    ++at->failures, at->last = unix_time();
    left_out = at->left_out(at->last);
  });
  return left_out;
}

void Board::count_success(const std::string& site, const std::string& node) const {
  const std::vector<BadNode> known = nodes(site);
  const auto is_it = [&](const BadNode& n) { return n.name == node; };
  if (std::none_of(known.begin(), known.end(), is_it)) return; // mostly
  change_nodes(site, [&](std::vector<BadNode>& all) { std::erase_if(all, is_it); });
}

std::vector<BadNode> Board::nodes(const std::string& site) const {
  return folder_.empty() ? std::vector<BadNode>() : read_nodes(nodes_path(site));
}

} // namespace deepgen
