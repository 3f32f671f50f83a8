#include "remote/call.h"

#include "base/text/text.h"
#include "remote/board.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iostream>

namespace deepgen {
namespace {

constexpr const char* kNodes = "{nodes}";

std::vector<std::string> left_out(const Board& board, const Site& site) {
  std::vector<std::string> names;
  for (const BadNode& node : board.nodes(site.name))
    if (!site.leave_out.empty() && node.left_out(unix_time())) names.push_back(node.name);
  return names;
}

/// A pause that the signals of launched.cpp, which are blocked, end early.
void pause_for(double seconds) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  const timespec time = {time_t(seconds), long(std::fmod(seconds, 1) * 1e9)};
  if (sigtimedwait(&set, nullptr, &time) > 0)
    throw Stopped("stopped", "", "by a signal", "run the same command again: it goes on here");
}

std::string place(const Outcome& o) {
  if (o.started.node.empty()) return "no worker had started";
  return "node " + o.started.node + (o.started.job.empty() ? "" : ", job " + o.started.job);
}

/// What a whole answer says; what it is not able to say becomes the outcome's failure.
Response response_of(Outcome& o) {
  try {
    if (o.answer) return Response::from_json(o.answer->head, "the worker's answer");
  } catch (const Error& e) {
    o.failure = e.what();
    o.answer.reset();
  }
  return {};
}

/// Why an outcome is none, with what the launcher said; empty when it is one.
std::string why_failed(const Outcome& o, const Response& response, const std::vector<std::string>& outputs) {
  std::string why = o.failure;
  for (const std::string& name : outputs)
    if (o.answer && !o.answer->find(name)) why = "the answer lacks the file " + name;
  if (o.answer && response.status == "failed") why = "the worker: " + response.text;
  if (o.answer && response.status == "done" && response.exit != 0)
    why = "its command ended with status " + std::to_string(response.exit) + ": " + response.text;
  if (why.empty()) return "";
  return place(o) + ": " + why +
         (o.last_words.empty() ? "" : "\n          the launcher's last words: " + o.last_words);
}

std::string site_text(const RemoteCall& c) {
  return std::string(to_string(c.task)) + " at site '" + c.site.name + "'";
}

[[noreturn]] void refuse(const RemoteCall& c, const Outcome& o, const Response& response) {
  throw Error("the worker refuses to " + site_text(c), c.what, place(o) + ": " + response.text,
              "install this very DeepGen, with the same ptxas, there, or let it be sent (\"send\": true); "
              "a site's hosts have one model of device");
}

[[noreturn]] void give_up(const RemoteCall& c, const std::string& why, const std::vector<std::string>& out,
                          const Board& board) {
  std::string names;
  for (const std::string& name : out) names += (names.empty() ? "" : ",") + name;
  throw HostFault(
      "cannot " + site_text(c) + ", tried " + std::to_string(c.site.retry_seconds.size() + 1) + " times",
      c.what, why + (names.empty() ? "" : "\n          left out: " + names),
      "look at the host, or at what `deepgen sites --probe` says. No record was written: the same "
      "command goes on here" +
          (names.empty() ? "" : "; delete " + board.nodes_path(c.site.name) + " to take nodes back"));
}

} // namespace

std::vector<std::string> worker_words(const Site& site, Task task, const Sent& sent,
                                      const std::vector<std::string>& left_out) {
  std::vector<std::string> words = site.launcher(task).words;
  if (!left_out.empty()) {
    std::string names, word = site.leave_out;
    for (const std::string& name : left_out) names += (names.empty() ? "" : ",") + name;
    words.push_back(word.replace(word.find(kNodes), std::string(kNodes).size(), names));
  }
  std::vector<std::string> worker = {task == Task::compile ? site.worker : site.measurer, "worker"};
  if (!sent.path.empty()) worker = {"sh", "-c", sent.script()};
  for (const std::string& word : worker) words.push_back(site.shell ? quoted(word) : word);
  return words;
}

Answer call(const RemoteCall& c) {
  const Board board(c.board);
  const Sent sent = c.site.send ? Sent::program(c.program) : Sent();
  RemoteWork work{c.site.name, to_string(c.task), c.what, "", "", 1, unix_time()};
  Board::Notice notice(c.board, work);
  AttemptOptions o;
  o.request = Bundle{c.request.to_json(), c.files}.serialize();
  o.sent = sent;
  o.start_seconds = c.site.start_seconds, o.silence_seconds = c.site.silence_seconds;
  o.run_seconds = c.site.run_seconds > 0 ? c.site.run_seconds : c.run_seconds;
  o.started = [&](const Started& s) {
    work.node = s.node, work.job = s.job, work.since = unix_time();
    notice.change(work);
  };
  for (size_t tried = 0;; ++tried) {
    const std::vector<std::string> out = left_out(board, c.site);
    o.words = worker_words(c.site, c.task, sent, out);
    Outcome outcome = attempt(o);
    const Response response = response_of(outcome);
    if (response.status == "refused") refuse(c, outcome, response);
    if (outcome.answer && c.decides && response.status == "done" && response.exit == 1)
      return {{}, response.text, outcome.started, true};
    const std::string why = why_failed(outcome, response, c.request.outputs);
    const std::string& node = outcome.started.node;
    if (why.empty()) {
      board.count_success(c.site.name, node);
      return {*outcome.answer, response.text, outcome.started};
    }
    board.add_failure(work, why);
    if (!node.empty() && board.count_failure(c.site.name, node) && !c.site.leave_out.empty())
      std::cerr << "deepgen: site '" << c.site.name << "': node " << node << " has failed "
                << Board::kFailures << " times and is left out for now\n";
    if (tried == c.site.retry_seconds.size()) give_up(c, why, out, board);
    work.node = work.job = "", work.attempt = int(tried) + 2, work.since = unix_time();
    notice.change(work);
    pause_for(c.site.retry_seconds[tried]);
  }
}

} // namespace deepgen
