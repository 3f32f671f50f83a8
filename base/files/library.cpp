#include "base/files/library.h"

#include "base/text/memory.h"

#include <algorithm>
#include <dlfcn.h>

namespace deepgen {

/// glibc's words; in another language, or of another loader, what fails is at worst called broken. Where a
/// library that this one needs is missing, they begin with that one's name.
LoadFailure load_failure(const std::string& name, const std::string& words) {
  const auto says = [&](const char* part) { return words.find(part) != std::string::npos; };
  if (words.rfind(name + ": ", 0) == 0 && says("No such file or directory")) return LoadFailure::absent;
  if (says("static TLS block")) return LoadFailure::broken; // of a fixed size, whatever is free
  for (const char* part : {"annot allocate memory", "failed to map", "cannot map", "ot enough space",
                           "cannot create shared object descriptor", "out of memory", "Too many open files",
                           "Input/output error"})
    if (says(part)) return LoadFailure::host;
  return LoadFailure::broken;
}

OpenedLibrary open_library(const std::vector<std::string>& names) {
  OpenedLibrary out;
  for (const std::string& name : names) {
    if ((out.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))) return out;
    const char* text = dlerror();
    const std::string words = text ? text : name + ": no reason is told";
    switch (load_failure(name, words)) {
    case LoadFailure::absent:
      break;
    case LoadFailure::broken:
      if (out.why.empty()) out.why = words;
      break;
    case LoadFailure::host:
      throw HostFault("a library is there and cannot be loaded now", name, words + "; " + memory_text(),
                      "free memory, raise the limit or run fewer jobs at once, and run the same command "
                      "again: it goes on here");
    }
  }
  return out;
}

} // namespace deepgen
