// `deepgen status`: how far a build tree's searches are, and what runs where.
#pragma once

#include <string>

namespace deepgen {

/// For people. Throws Error when the folder is no build tree of DeepGen's.
std::string status_text(const std::string& build);

} // namespace deepgen
