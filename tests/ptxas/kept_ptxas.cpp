// kept_ptxas: ptxas, whose results are kept for later runs of the tests.
//
// $DEEPGEN_PTXAS_KEPT is the ptxas, $DEEPGEN_PTXAS_STORE the folder of results. A result is kept under the
// SHA-256 of ptxas's bytes, of the options and of the PTX. The files' names are not in it: they are numbers
// of descriptors, which differ from run to run. One of ptxas that fails is not kept.
#include "base/files/files.h"
#include "base/files/kept_file.h"
#include "base/text/error.h"
#include "base/text/sha256.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace deepgen;

namespace {

std::string of_environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) throw Error("kept_ptxas needs " + std::string(name), "its environment");
  return value;
}

/// As read_file, of what is no regular file, either: /proc/self/fd/N.
std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw Error("cannot read a file", path);
  return bytes;
}

/// The SHA-256 of a program's bytes, which is kept while no one writes or replaces it: to read 38 MB takes
/// 0.1 s.
std::string hash_of_program(const std::string& program, const std::string& store) {
  struct stat s{};
  if (stat(program.c_str(), &s) != 0) throw Error("cannot find ptxas", program);
  std::string state = program;
  for (const int64_t part :
       {int64_t(s.st_dev), int64_t(s.st_ino), int64_t(s.st_size), int64_t(s.st_mtim.tv_sec),
        int64_t(s.st_mtim.tv_nsec), int64_t(s.st_ctim.tv_sec), int64_t(s.st_ctim.tv_nsec)})
    state += " " + std::to_string(part);
  const std::string path = store + "/" + sha256_hex(state) + ".program";
  if (std::optional<std::string> kept = kept_file(path)) return *kept;
  std::string hash = sha256_hex(bytes_of(program));
  keep_file(path, hash);
  return hash;
}

struct Result {
  int status = 0;
  std::string messages;
};

Result run(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0) throw Error("cannot create a pipe", program);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw Error("cannot start a process", program);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  Result result;
  char buffer[1 << 14];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    result.messages.append(buffer, size_t(n));
  while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  return result;
}

/// `-v -O3 -arch=sm_90a IN -o OUT`, as a build calls it: nothing else is kept.
std::optional<std::pair<std::string, std::string>> input_and_output(const std::vector<std::string>& words) {
  if (words.size() < 3 || words[words.size() - 2] != "-o" || words[words.size() - 3][0] == '-')
    return std::nullopt;
  return std::pair(words[words.size() - 3], words.back());
}

constexpr const char* kInput = "<the PTX>"; // stands for its name in kept messages

std::string with_name(std::string messages, const std::string& old, const std::string& name) {
  for (size_t at = 0; (at = messages.find(old, at)) != std::string::npos; at += name.size())
    messages.replace(at, old.size(), name);
  return messages;
}

int main_of(const std::vector<std::string>& words) {
  const std::string program = of_environment("DEEPGEN_PTXAS_KEPT"),
                    store = of_environment("DEEPGEN_PTXAS_STORE");
  const auto files = input_and_output(words);
  std::string path;
  if (files) {
    std::string key = hash_of_program(program, store);
    for (size_t i = 0; i < words.size() - 3; ++i)
      key += "\n" + std::to_string(words[i].size()) + " " + words[i];
    path = store + "/" + sha256_hex(key + "\n" + bytes_of(files->first)) + ".cubin";
    if (std::optional<std::string> kept = kept_file(path)) {
      const size_t line = kept->find('\n'), size = std::stoul(kept->substr(0, line));
      const std::string messages = with_name(kept->substr(line + 1, size), kInput, files->first);
      std::fwrite(messages.data(), 1, messages.size(), stdout);
      std::ofstream out(files->second, std::ios::binary | std::ios::trunc);
      out << kept->substr(line + 1 + size) << std::flush;
      if (!out) throw Error("cannot write the code", files->second);
      return 0;
    }
  }
  const Result result = run(program, words);
  std::fwrite(result.messages.data(), 1, result.messages.size(), stdout);
  std::fflush(stdout);
  if (WIFSIGNALED(result.status)) {
    signal(WTERMSIG(result.status), SIG_DFL);
    raise(WTERMSIG(result.status));
  }
  if (result.status == 0 && files) {
    const std::string messages = with_name(result.messages, files->first, kInput);
    keep_file(path, std::to_string(messages.size()) + "\n" + messages + bytes_of(files->second));
  }
  return WEXITSTATUS(result.status);
}

} // namespace

int main(int argc, char** argv) {
  try {
    return main_of({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kept_ptxas: %s\n", e.what());
    return 1;
  }
}
