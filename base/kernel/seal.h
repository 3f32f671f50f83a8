// Seal: how a file that is a line of JSON and bytes behind it tells that a byte of it was changed.
#pragma once

#include <string>

namespace deepgen {

/// `head`, a JSON object in one line, with a last field "digest": the SHA-256 of `head`, a newline and
/// `rest`. Then these.
std::string seal(const std::string& head, const std::string& rest);
/// Throws Error unless `bytes` are as seal() made them. `line`: where the first line ends.
void check_seal(const std::string& bytes, size_t line, const std::string& where);

} // namespace deepgen
