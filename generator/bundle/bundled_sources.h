// What a bundle has beside its library: bytes of the tool, so that it needs no file.
#pragma once

#include <map>
#include <string>

namespace deepgen {

/// The runtime: headers in deepgen/, and its sources in one folder, so that `c++ *.cpp` takes them.
std::map<std::string, std::string> bundled_runtime();
/// How to build and install the folder, and the licence; with @words@ to be replaced.
std::map<std::string, std::string> bundled_frame();
/// A source as it stands in the folder: what it includes is found without any -I.
std::string for_bundle(const std::string& text);

} // namespace deepgen
