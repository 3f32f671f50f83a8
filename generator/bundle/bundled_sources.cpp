#include "generator/bundle/bundled_sources.h"

#include <string_view>
#include <vector>

// A file of the source tree, as bytes of this object.
#define DEEPGEN_BUNDLED(name, file)                                                                          \
  asm(".pushsection .rodata, \"a\", @progbits\n"                                                             \
      ".hidden deepgen_bundled_" #name "\n.globl deepgen_bundled_" #name "\ndeepgen_bundled_" #name ":\n"    \
      ".incbin \"" DEEPGEN_BUNDLED_ROOT "/" file "\"\n.byte 0\n.popsection\n");                              \
  extern "C" const char deepgen_bundled_##name[];
#include "generator/bundled_files.inc"
#undef DEEPGEN_BUNDLED

namespace deepgen {
namespace {

struct BundledFile {
  std::string_view path; ///< in the source tree
  const char* text;
};

const std::vector<BundledFile>& bundled() {
#define DEEPGEN_BUNDLED(name, file) {file, deepgen_bundled_##name},
  static const std::vector<BundledFile> files = {
#include "generator/bundled_files.inc"
  };
#undef DEEPGEN_BUNDLED
  return files;
}

/// "runtime/core/abi.h" to "deepgen_core_abi.h"
std::string flat(std::string_view path) {
  constexpr std::string_view kRoot = "runtime/";
  std::string name = "deepgen_" + std::string(path.substr(kRoot.size()));
  for (char& c : name)
    if (c == '/') c = '_';
  return name;
}

/// What an #include names, as it is called in a bundle.
std::string included(std::string_view name) {
  if (name.starts_with("runtime/")) return flat(name);
  return std::string(name);
}

bool is_ours(std::string_view name) { return name.starts_with("runtime/") || name.starts_with("deepgen/"); }

} // namespace

std::string for_bundle(const std::string& text) {
  constexpr std::string_view kInclude = "#include ";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end;
    const size_t close = line.find_first_of(">\"", kInclude.size() + 1);
    const std::string_view name = line.starts_with(kInclude) && close != std::string_view::npos
                                      ? line.substr(kInclude.size() + 1, close - kInclude.size() - 1)
                                      : "";
    if (is_ours(name))
      out += std::string(kInclude) + "\"" + included(name) + "\"" + std::string(line.substr(close + 1));
    else
      out += line;
  }
  return out;
}

std::map<std::string, std::string> bundled_runtime() {
  constexpr std::string_view kPublic = "runtime/include/";
  std::map<std::string, std::string> files;
  for (const BundledFile& file : bundled())
    if (file.path.starts_with(kPublic))
      files[std::string(file.path.substr(kPublic.size()))] =
          file.text; // these include one another as they are
    else if (file.path.starts_with("runtime/"))
      files[flat(file.path)] = for_bundle(file.text);
  return files;
}

std::map<std::string, std::string> bundled_frame() {
  constexpr std::string_view kFrame = "generator/bundle/frame/", kTemplate = ".in";
  std::map<std::string, std::string> files;
  for (const BundledFile& file : bundled()) {
    if (file.path == "LICENSE") files["LICENSE"] = file.text;
    if (!file.path.starts_with(kFrame)) continue;
    std::string_view name = file.path.substr(kFrame.size());
    if (name.ends_with(kTemplate)) name.remove_suffix(kTemplate.size());
    files[std::string(name)] = file.text;
  }
  return files;
}

} // namespace deepgen
