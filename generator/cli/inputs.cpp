#include "generator/cli/inputs.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/text/error.h"
#include "generator/lock/exchange.h"
#include "templates/core/template.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace deepgen {
namespace {

/// A fresh file in TMPDIR or /tmp, removed at the end of the scope.
struct TemporaryFile {
  std::string path;
  TemporaryFile() {
    std::error_code failure;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(failure);
    path = (failure ? "/tmp" : folder) / "deepgen-device-XXXXXX";
    const int fd = mkstemp(path.data());
    if (fd < 0)
      throw HostFault("cannot create a temporary file", path, std::strerror(errno),
                      "set TMPDIR to a folder that can be written, or pass --device");
    close(fd);
  }
  ~TemporaryFile() { unlink(path.c_str()); }
};

/// Runs the sibling deepgen-measure.
void run_measure(std::vector<std::string> words, const std::string& what = "cannot find out the device",
                 const std::string& remedy = "install it beside deepgen, or pass --device") {
  const std::string program = std::filesystem::path(own_program()).replace_filename("deepgen-measure");
  if (access(program.c_str(), X_OK) != 0)
    throw Error(what + ": deepgen-measure is missing", program, std::strerror(errno), remedy);
  const std::string command = program + " " + words.front();
  words.insert(words.begin(), program);
  if (const int status = run_program(words); status != 0)
    throw Error(what + ": deepgen-measure failed", command, "wait status " + std::to_string(status), remedy);
}

/// That of a GPU which is present; empty where there is none.
std::string present_device(const std::vector<std::string>& paths, const std::string& arch) {
  for (const std::string& path : paths)
    if (const Device device = Device::read(path); device.arch == arch && device.present) return path;
  return "";
}

} // namespace

int run_program(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return -1;
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Device probe_device(const std::string& arch) {
  TemporaryFile file;
  run_measure({"devices", "--arch", arch, "-o", file.path});
  return Device::read(file.path);
}

void show_devices() { run_measure({"devices", "--list"}); }
void show_sandbox() { run_measure({"sandbox"}); }
void show_rocm() { run_measure({"rocm"}); }
void show_cudnn() { run_measure({"cudnn"}); }

std::set<std::string> read_verified(const std::string& path) {
  const Json json = parse_json(read_file(path), path);
  check_schema(json, "deepgen.verified/1", path);
  const auto hashes = get<std::vector<std::string>>(json, "sha256", path);
  return {hashes.begin(), hashes.end()};
}

std::set<std::string> verified_of(const KernelFile& file, const std::vector<std::string>& devices) {
  TemporaryFile kernels, verified;
  write_atomically(kernels.path, file.serialize());
  std::vector<std::string> words = {"verify", kernels.path, "--unproven", "-o", verified.path};
  if (is_gpu(file.arch)) {
    const std::string device = present_device(devices, file.arch);
    if (device.empty()) return {}; // its fallbacks are linked as any that this host cannot run
    words.insert(words.end(), {"--device", device});
  }
  run_measure(words, "cannot verify kernels", "see what it says above; it must be installed beside deepgen");
  return read_verified(verified.path);
}

Device device_of(const std::string& path, const std::string& arch) {
  const bool gpu = is_gpu(arch);
  if (path.empty()) return gpu ? generic_gpu(arch) : probe_device(arch);
  Device device = Device::read(path);
  if (device.arch != arch)
    throw Error("the device is of another arch", path, device.arch + " instead of " + arch,
                "pass the device.json of that arch");
  return gpu && !device.present ? generic_gpu(arch) : device;
}

Device device_of(const std::vector<std::string>& paths, const std::string& arch) {
  for (const std::string& path : paths)
    if (Device::read(path).arch == arch) return device_of(path, arch);
  return device_of(std::string(), arch);
}

Problem problem_of(const std::string& text) {
  std::string words;
  for (const std::string& op : operator_names()) {
    if (text.starts_with(op + " ")) return Problem::parse(text); // a path may have spaces, too
    words += (words.empty() ? "'" : " or '") + op + " '";
  }
  require_file(text, "there is no such problem file, nor is it a problem key: those begin with " + words,
               "pass the path of a problem.json, or a key as `deepgen --help` shows one");
  return ProblemFile::read(text).problem;
}

Choice choice_of(const std::string& text, const Problem& problem, const std::string& arch) {
  const std::string first = text.substr(0, text.find(' '));
  if (first.find('=') == std::string::npos) {
    find_template(first);
    return {first, Config::parse(text.substr(first.size()))};
  }
  std::string name, names;
  for (const Template* t : templates())
    if (t->why_not(problem, arch).empty()) names += (names.empty() ? "" : ", ") + (name = t->name());
  if (name != names || name.empty())
    throw Error("the config does not name its template", text,
                name.empty() ? "no template serves the problem on " + arch
                             : "several serve the problem: " + names,
                "start it with the template's name");
  return {name, Config::parse(text)};
}

void require_file(const std::string& path, const std::string& what, const std::string& remedy) {
  if (!file_exists(path)) throw Error(what, path, "", remedy);
}

void require_logs(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    require_file(path, "the record log does not exist",
                 "correct the path; logs are records.jsonl and final.jsonl in a search's folder, "
                 "_deepgen/<target>/<name>/<arch>/");
}

std::vector<RecordLog> logs_of(const std::vector<std::string>& paths) {
  std::vector<RecordLog> logs;
  require_logs(paths);
  for (const std::string& path : paths) logs.push_back(RecordLog::read(path));
  return logs;
}

} // namespace deepgen
