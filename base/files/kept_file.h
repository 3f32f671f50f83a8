// What one run of the tests has made and a later one takes: whole, or not at all.
#pragma once

#include <optional>
#include <string>

namespace deepgen {

/// What keep_file() wrote to that path; nothing where there is no such file, or where it is not what was
/// written. It is used then: its time is that of now, by which a store drops what nothing has used for long.
std::optional<std::string> kept_file(const std::string& path);
void keep_file(const std::string& path, const std::string& bytes);

} // namespace deepgen
