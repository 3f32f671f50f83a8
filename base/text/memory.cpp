#include "base/text/memory.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace deepgen {
namespace {

std::string limit_text(int which, const char* name, const char* option) {
  rlimit limit = {};
  if (getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "the limit on " + std::string(name) + " is " + bytes_text(int64_t(limit.rlim_cur)) + " (ulimit " +
         option + "); ";
}

/// Of this process's control group, where there is one with a limit.
std::string group_text() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (line.rfind("0::", 0) != 0) continue;
    std::ifstream limit("/sys/fs/cgroup" + line.substr(3) + "/memory.max");
    if (int64_t bytes = 0; limit >> bytes) return "the control group's limit is " + bytes_text(bytes) + "; ";
  }
  return "";
}

int64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string line;
  long long kib = 0;
  while (std::getline(in, line))
    if (std::sscanf(line.c_str(), "MemAvailable: %lld kB", &kib) == 1) return int64_t(kib) << 10;
  return 0;
}

} // namespace

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, "%.2f %s", value, kUnits[unit]);
  return text;
}

int64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? int64_t(pages) * size : 0;
}

std::string memory_text() {
  std::string text =
      limit_text(RLIMIT_AS, "address space", "-v") + limit_text(RLIMIT_DATA, "data", "-d") + group_text();
  const int64_t free = available_memory();
  return text + "the machine has " + bytes_text(physical_memory()) +
         (free ? ", of which " + bytes_text(free) + " are free" : "");
}

HostFault no_memory(const std::string& what, const std::string& where, int64_t wanted, int error) {
  const std::string refused =
      wanted ? bytes_text(wanted) + " (" + std::to_string(wanted) + " bytes) were refused"
             : "memory was refused";
  return HostFault(what, where,
                   refused + (error ? std::string(": ") + std::strerror(error) : "") + "; " + memory_text(),
                   "free memory, raise the limit or run fewer jobs at once, and run the same command again: "
                   "it goes on here");
}

} // namespace deepgen
