// Folders whose content only their owner may make.
#pragma once

#include <string>

struct stat;

namespace deepgen {

/// Creates the folder, for its owner alone, and the folders above it as the umask says. False, with errno,
/// when it cannot.
bool create_private_folder(const std::string& path);
/// Why others may have written a file or folder, or may write to it now: neither this user nor root owns it,
/// or its mode lets others write. Empty when they cannot.
std::string why_not_private(const struct stat&);

} // namespace deepgen
