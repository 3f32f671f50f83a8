#include "runtime/core/cpus.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace deepgen::cpus {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr size_t kLongest = 4096; ///< of a path, and of what is read of a file

/// What is in a file, as a string; false where there is none.
bool read_file(const char* path, char (&text)[kLongest]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[size > 0 ? size : 0] = 0;
  return size > 0;
}

/// A number of a cgroup's file; -1 for "max", and where there is none.
double number_in(const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end == text ? -1 : value;
}

/// CPUs that one cgroup has a quota of; 0: no limit. Version 2 has "quota period" in one file, version 1 a
/// file for each.
double quota_of(const char* folder, int version) {
  char path[kLongest], text[kLongest];
  double quota = -1, period = -1;
  if (version == 2) {
    if (std::snprintf(path, sizeof path, "%s/cpu.max", folder) >= int(sizeof path) || !read_file(path, text))
      return 0;
    quota = number_in(text);
    if (const char* second = std::strchr(text, ' ')) period = number_in(second);
  } else {
    if (std::snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder) >= int(sizeof path) ||
        !read_file(path, text))
      return 0;
    quota = number_in(text);
    if (std::snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder) < int(sizeof path) &&
        read_file(path, text))
      period = number_in(text);
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

void lower(double& least, double quota) {
  if (quota > 0 && (least == 0 || quota < least)) least = quota;
}

/// Of the cgroup `path` below `mount`, and of those that hold it. In a container the path may be that of the
/// host, and the mount itself the container's: then only the latter is there.
double least_quota(const char* mount, char* path, int version) {
  double least = 0;
  char folder[kLongest];
  for (;;) {
    if (std::snprintf(folder, sizeof folder, "%s%s", mount, path) < int(sizeof folder))
      lower(least, quota_of(folder, version));
    char* last = std::strrchr(path, '/');
    if (!last) return least;
    *last = 0;
  }
}

/// Whether a list as "cpu,cpuacct" names the controller of CPUs.
bool names_cpu(const char* list) {
  for (const char* at = list;; ++at) {
    const size_t length = std::strcspn(at, ",");
    if (length == 3 && std::strncmp(at, "cpu", 3) == 0) return true;
    at += length;
    if (!*at) return false;
  }
}

} // namespace

int of_quota(const char* memberships, const char* mounts) {
  char text[kLongest], mount[kLongest];
  if (!read_file(memberships, text)) return 0;
  double least = 0;
  char* rest = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* controllers = std::strchr(line, ':'); // "4:cpu,cpuacct:/a/b"; of version 2 "0::/a/b"
    char* path = controllers ? std::strchr(controllers + 1, ':') : nullptr;
    if (!path) continue;
    *path++ = 0, ++controllers;
    if (*controllers && !names_cpu(controllers)) continue;
    const int version = *controllers ? 1 : 2;
    if (std::snprintf(mount, sizeof mount, "%s%s", mounts, version == 1 ? "/cpu" : "") < int(sizeof mount))
      lower(least, least_quota(mount, path, version));
  }
  return least == 0 ? 0 : least < 1 ? 1 : least > INT_MAX ? 0 : int(least);
}

int usable() {
  // Wider than cpu_set_t: the kernel refuses a mask shorter than its own.
  alignas(cpu_set_t) unsigned char mask[4096] = {};
  if (sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask)) != 0) return 1;
  int count = 0;
  for (unsigned char byte : mask) count += __builtin_popcount(byte);
  const int quota = of_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota && quota < count) count = quota;
  return count < 1 ? 1 : count;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::cpus
