#include "runtime/gpu/driver_library.h"

#include "runtime/gpu/gpu.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr int out_of_memory = 2; ///< of both drivers

bool ends_with(const char* text, const char* end) {
  const size_t length = std::strlen(text), tail = std::strlen(end);
  return length >= tail && std::strcmp(text + length - tail, end) == 0;
}

/// glibc ends with the system's words for the fault, in the program's language: "NAME: cannot open shared
/// object file: No such file or directory". Its own words it may translate; those that name a fault of the
/// host alone are told in English, and else the library counts as broken, which is not remembered either.
/// Where a library that this one needs is missing, the words begin with that one's name.
Lookup lookup_of(const char* name, const char* words) {
  const size_t length = std::strlen(name);
  if (std::strncmp(words, name, length) == 0 && words[length] == ':' &&
      ends_with(words, std::strerror(ENOENT)))
    return Lookup::absent;
  for (int error : {ENOMEM, EMFILE, ENFILE, EIO, ENOSPC, EAGAIN})
    if (ends_with(words, std::strerror(error))) return Lookup::not_now;
  for (const char* part :
       {"failed to map", "cannot map", "ot enough space", "cannot create shared object", "out of memory"})
    if (std::strstr(words, part)) return Lookup::not_now;
  return Lookup::broken;
}

const char* host_text(int) {
  return "the driver's library is there and could not be loaded this time, for lack of memory, of address "
         "space (ulimit -v) or of file descriptors (ulimit -n): the next call tries again";
}

} // namespace

void* open_library(const char* name, int flags, Lookup& lookup) {
  if (void* library = dlopen(name, flags)) {
    lookup = Lookup::found;
    return library;
  }
  const char* words = dlerror(); // null: RTLD_NOLOAD, and it is not loaded
  const Lookup now = words ? lookup_of(name, words) : Lookup::absent;
  if (lookup < now) lookup = now;
  return nullptr;
}

deepgen_status without_driver(Lookup lookup) {
  if (lookup != Lookup::not_now) return DEEPGEN_ERROR_NO_DRIVER;
  keep_driver_error(out_of_memory, host_text);
  return DEEPGEN_ERROR_DRIVER;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
