// doctor: what is installed, what is missing, and how to get it.
#include "base/files/cache.h"
#include "base/files/library.h"
#include "base/files/lock_folder.h"
#include "base/text/error.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/codegen/compile.h"
#include "generator/codegen/ptxas.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sstream>
#include <unistd.h>

namespace deepgen {
namespace {

struct Tool {
  const char* name;
  std::vector<std::string> programs; ///< any one of them serves
  const char* remedy;
};

const std::vector<Tool> kTools = {{"cmake", {"cmake"}, "apt install cmake (3.25 or newer)"},
                                  {"ninja", {"ninja"}, "apt install ninja-build (1.11 or newer)"},
                                  {"C++ compiler", {"c++", "g++", "clang++"}, "apt install g++"}};

/// Full path of a program in PATH.
std::string which(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string full = (folder.empty() ? "." : folder) + "/" + program;
    if (access(full.c_str(), X_OK) == 0) return full;
  }
  return "";
}

void line(const char* name, const std::string& text) { std::printf("%-14s %s\n", name, text.c_str()); }

bool check_tool(const Tool& tool) {
  for (const std::string& program : tool.programs)
    if (std::string path = which(program); !path.empty()) {
      line(tool.name, path);
      return true;
    }
  line(tool.name, std::string("MISSING: ") + tool.remedy);
  return false;
}

/// Shows what deepgen-measure says.
bool check_measure(const char* name, void (*show)()) {
  std::fflush(stdout);
  try {
    show();
    return true;
  } catch (const Error& e) {
    line(name, std::string("MISSING: ") + e.what());
    return false;
  }
}

/// Never a reason to fail: kernels of this machine's own search are code that DeepGen has made.
void check_sandbox() {
  if (check_measure("sandbox", show_sandbox))
    line("", "candidates on GPUs: none, since a driver needs its devices and files");
}

void check_ptxas() {
  const std::string program = find_ptxas();
  if (program.empty())
    line("CUDA ptxas",
         "not found: install the CUDA Toolkit, or set DEEPGEN_PTXAS; without it kernels for NVIDIA GPUs are "
         "PTX only, which the driver compiles when a program loads them");
  else
    line("CUDA ptxas", program + ", " + ptxas_version());
}

/// For lack of memory too it is only said.
OpenedLibrary look_for(const std::vector<std::string>& names) {
  try {
    return open_library(names);
  } catch (const HostFault& e) {
    return {nullptr, e.what()};
  }
}

/// What measurements on NVIDIA GPUs watch by. Where there is no driver, nobody misses it.
void check_nvml() {
  if (const OpenedLibrary driver = look_for({"libcuda.so.1"}); !driver) {
    if (!driver.why.empty()) line("NVIDIA driver", driver.absence(""));
    return;
  }
  const OpenedLibrary nvml = look_for({"libnvidia-ml.so.1"});
  if (!nvml.why.empty()) return line("NVML", nvml.absence(""));
  const auto start = nvml ? reinterpret_cast<int (*)()>(dlsym(nvml.handle, "nvmlInit_v2")) : nullptr;
  const int code = start ? start() : 0;
  line("NVML", !start ? "not found: in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility; without "
                        "it measurements do "
                        "not know throttling, and who else computes"
               : code != 0 ? "does not start, error " + std::to_string(code) +
                                 ": measurements do not know throttling, and who else computes"
                           : "libnvidia-ml.so.1");
}

/// Nothing that every build needs. As a program with tuned kernels finds it, and as measurements do.
void check_rocm() { check_measure("ROCm", show_rocm); }

/// As measurements find it.
void check_cudnn() { check_measure("cuDNN", show_cudnn); }

void check_openblas() {
  const OpenedLibrary library = look_for({"libopenblas.so.0", "libopenblas.so"});
  auto config =
      library ? reinterpret_cast<const char* (*)()>(dlsym(library.handle, "openblas_get_config")) : nullptr;
  line("OpenBLAS", config    ? config()
                   : library ? "of unknown version"
                             : library.absence("not found: apt install libopenblas0; the vendor baseline of "
                                               "searches on the CPU"));
}

void check_cache() {
  Cache cache(CacheSettings::from_environment());
  const std::string why = cache.why_no_store();
  if (!cache.why_refused().empty())
    return line("cache", cache.settings().folder + ": not used: " + cache.why_refused());
  line("cache",
       !cache.on() ? "off" : cache.settings().folder + (why.empty() ? "" : ": nothing new is kept: " + why));
}

bool check_locks() {
  try {
    const LockFolder locks = find_lock_folder();
    line("locks", locks.path + (locks.refused.empty() ? "" : ", not in\n" + locks.refused));
    return true;
  } catch (const Error& e) {
    line("locks", std::string("MISSING: ") + e.what());
    return false;
  }
}

} // namespace

void add_doctor_command(CLI::App& app, CliContext& context) {
  CLI::App* c =
      app.add_subcommand("doctor", "toolchains and devices: what is there, what is missing, how to get it");
  c->footer("Fails when something that every build needs is missing.\nExample:\n  deepgen doctor");
  c->callback([&context] {
    line("deepgen", toolchain());
    line("codegen id", codegen_id());
    bool good = true;
    for (const Tool& tool : kTools) good &= check_tool(tool);
    check_ptxas();
    check_nvml();
    check_rocm();
    check_cudnn();
    check_openblas();
    check_cache();
    good &= check_locks();
    check_sandbox();
    good &= check_measure("devices", show_devices);
    context.status = good ? 0 : 1;
  });
}

} // namespace deepgen
