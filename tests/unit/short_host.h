// A host that is short of something for a while, and a library that it then cannot load.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace deepgen::tests {

/// For as long as it lives this process gets no more of RLIMIT_NOFILE (file descriptors) or RLIMIT_AS
/// (address space).
class ShortOf {
public:
  explicit ShortOf(__rlimit_resource resource) : resource_(resource) {
    getrlimit(resource_, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    if (resource == RLIMIT_AS) {
      std::ifstream pages("/proc/self/statm");
      pages >> none.rlim_cur;
      none.rlim_cur *= rlim_t(sysconf(_SC_PAGESIZE));
    }
    if (setrlimit(resource_, &none) != 0) std::_Exit(97);
  }
  ~ShortOf() { setrlimit(resource_, &before_); }
  ShortOf(const ShortOf&) = delete;

private:
  const __rlimit_resource resource_;
  rlimit before_;
};

/// A library that the test is linked with, under another name: it has to be opened, and with `copied` mapped
/// too, as one with a state of its own.
class LibraryCopy {
public:
  explicit LibraryCopy(const std::string& file, bool copied)
      : path_(std::filesystem::temp_directory_path() / ("libcopy." + std::to_string(getpid()) + ".so")) {
    const std::filesystem::path library = std::filesystem::canonical(file);
    if (copied)
      std::filesystem::copy_file(library, path_);
    else
      std::filesystem::create_symlink(library, path_);
  }
  ~LibraryCopy() { std::filesystem::remove(path_); }
  LibraryCopy(const LibraryCopy&) = delete;
  const char* path() const { return path_.c_str(); }

private:
  const std::filesystem::path path_;
};

} // namespace deepgen::tests
