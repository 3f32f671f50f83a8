// What a build tree has of DeepGen's.
#pragma once

#include <string>
#include <vector>

namespace deepgen {

/// The searches of a build tree, sorted: what lies in its folders `_deepgen`.
struct BuildTree {
  std::vector<std::string> records, problems;
};

BuildTree search_build_tree(const std::string& root); ///< throws Error when there is no such folder

} // namespace deepgen
