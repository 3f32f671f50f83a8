// What a program says last: the library's own exceptions in the form of base/text/error.h.
#pragma once

#include <exception>
#include <string>

namespace deepgen {

std::string describe(const std::exception&);

} // namespace deepgen
