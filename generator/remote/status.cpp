#include "generator/remote/status.h"

#include "base/files/files.h"
#include "base/search/searches.h"
#include "base/text/error.h"
#include "remote/board.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kNodes = ".nodes.json";

std::string clock_text(int64_t seconds) {
  const int64_t s = std::max<int64_t>(seconds, 0);
  char text[48];
  std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60),
                (long long)(s % 60));
  return text;
}

std::string place(const RemoteWork& work) {
  if (work.node.empty()) return "waits for a worker";
  return "on " + work.node + (work.job.empty() ? "" : ", job " + work.job);
}

std::string searches_text(const fs::path& folder) {
  const std::string path = (folder / "searches.txt").string();
  if (!file_exists(path)) return "no search is planned\n";
  const std::vector<PlannedSearch> searches = parse_searches(read_file(path));
  const SearchProgress p = progress_of(searches);
  std::string text =
      std::to_string(p.ended) + " of " + std::to_string(searches.size()) + " problems searched";
  if (p.began > 0)
    text += ", " + clock_text((p.ended == searches.size() ? p.last : unix_time()) - p.began) + " elapsed";
  if (p.seconds_left > 0) text += ", about " + clock_text(int64_t(p.seconds_left)) + " left";
  return text + "\n";
}

std::string running_text(const Board& board) {
  const std::vector<RemoteWork> running = board.running();
  std::map<std::string, std::pair<int, int>> counts; // of a site's task: at work, waiting
  std::string lines;
  for (const RemoteWork& w : running) {
    auto& [at_work, waiting] = counts[w.site + " " + w.task];
    (w.node.empty() ? waiting : at_work)++;
    lines += "  " + w.what + "\n    " + w.task + " at " + w.site + ", " + place(w) + ", for " +
             clock_text(unix_time() - w.since) + (w.attempt > 1 ? ", try " + std::to_string(w.attempt) : "") +
             "\n";
  }
  std::string text = running.empty() ? "nothing runs elsewhere\n" : "";
  for (const auto& [what, count] : counts)
    text += what + ": " + std::to_string(count.first) + " at work, " + std::to_string(count.second) +
            " waiting\n";
  return text + lines;
}

std::string nodes_text(const fs::path& folder, const Board& board) {
  std::string text;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(kNodes)) continue;
    const std::string site = name.substr(0, name.size() - std::string(kNodes).size());
    for (const BadNode& node : board.nodes(site))
      text += "  " + node.name + " of " + site + ": " + std::to_string(node.failures) + " in a row" +
              (node.left_out(unix_time()) ? ", left out where the site says how" : "") + "\n";
  }
  return text.empty() ? "" : "nodes that fail:\n" + text;
}

std::string failures_text(const Board& board) {
  std::string text;
  for (const RemoteFailure& f : board.failures())
    text += "  " + clock_text(unix_time() - f.work.since) + " ago, " + f.work.task + " at " + f.work.site +
            ": " + f.work.what + "\n    " + first_line(f.why) + "\n";
  return text.empty() ? "" : "failures elsewhere, each of which was or is tried again:\n" + text;
}

} // namespace

std::string status_text(const std::string& build) {
  const fs::path folder = fs::path(build) / "_deepgen";
  if (!fs::is_directory(folder))
    throw Error("this is no build tree with DeepGen in it", build, "it has no folder _deepgen",
                "pass the configured build folder with --build");
  const Board board((folder / "remote").string());
  return searches_text(folder) + running_text(board) + nodes_text(folder / "remote", board) +
         failures_text(board);
}

} // namespace deepgen
