#include "base/text/failure.h"

#include "base/text/memory.h"

#include <filesystem>
#include <new>
#include <system_error>

namespace deepgen {

std::string describe(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e))
    return no_memory("not enough memory", "this program", 0).what();
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&e))
    return Error("cannot use a file or folder", files->path1().string(), files->code().message(),
                 "check that it exists, its permissions, the free space and the disk")
        .what();
  if (const auto* system = dynamic_cast<const std::system_error*>(&e))
    return HostFault("the system refuses something", "", system->what(),
                     "raise the limits on processes and threads (ulimit -u), or run fewer jobs at once; then "
                     "run the same command again")
        .what();
  return e.what();
}

} // namespace deepgen
