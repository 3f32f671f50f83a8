#include "generator/cli/build_tree.h"

#include "base/text/error.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace deepgen {

BuildTree search_build_tree(const std::string& root) {
  if (!fs::is_directory(root))
    throw Error("there is no such folder", root, "", "pass a build folder with --build");
  BuildTree tree;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::recursive_directory_iterator(root, options); it != fs::recursive_directory_iterator();
       ++it) {
    const fs::path& path = it->path();
    if (it->is_directory() && path.filename() == "CMakeFiles") {
      it.disable_recursion_pending();
      continue;
    }
    const fs::path inside = path.lexically_relative(root);
    if (std::find(inside.begin(), inside.end(), "_deepgen") == inside.end() || !it->is_regular_file())
      continue;
    if (path.filename() == "records.jsonl" || path.filename() == "final.jsonl")
      tree.records.push_back(path.string());
    else if (path.filename() == "problem.json")
      tree.problems.push_back(path.string());
  }
  std::sort(tree.records.begin(), tree.records.end());
  std::sort(tree.problems.begin(), tree.problems.end());
  return tree;
}

} // namespace deepgen
