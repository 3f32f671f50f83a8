#include "base/files/private_folder.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace deepgen {

bool create_private_folder(const std::string& path) {
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  std::error_code ignored; // what cannot be created is found missing below
  std::filesystem::create_directories(above, ignored);
  struct stat info;
  if (mkdir(path.c_str(), 0700) == 0) return true;
  const int error = errno;
  const bool there = error == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  errno = error;
  return there;
}

std::string why_not_private(const struct stat& info) {
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return "it belongs to user " + std::to_string(info.st_uid);
  if (!(info.st_mode & (S_IWGRP | S_IWOTH))) return "";
  char mode[16];
  std::snprintf(mode, sizeof mode, "%04o", unsigned(info.st_mode & 07777));
  return std::string("others can write to it (mode ") + mode + ")";
}

} // namespace deepgen
