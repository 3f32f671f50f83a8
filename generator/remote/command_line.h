// The command of an edge, taken apart: which of its words are files, so that they can go to another host.
#pragma once

#include "remote/bundle.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace deepgen {

enum class WordKind {
  text,    ///< stays as it is
  flag,    ///< has no value
  file,    ///< the files go along
  output,  ///< comes back
  kernels, ///< a folder of which the round's kernel files go along
  dropped, ///< concerns this host alone
};

class CommandLine {
public:
  /// `kinds` has the options of the command; "" is for its positional words. Throws Error for an unknown one.
  CommandLine(const std::vector<std::string>& words, const std::map<std::string, WordKind>& kinds);

  const std::string& command() const { return command_; }
  const std::vector<std::string>& many(const std::string& option) const;
  bool has(const std::string& option) const { return options_.count(option) != 0; }
  std::string one_or(const std::string& option, const std::string& otherwise) const;
  std::string one(const std::string& option) const; ///< throws Error when it is not there
  /// A number that one() has to be.
  double number_or(const std::string& option, double otherwise) const;

  /// The same command with the names that its files have in a bundle.
  std::vector<std::string> words_in_bundle() const;
  std::vector<std::string> files() const; ///< here, of kind file
  /// Options with values that are no files, and flags, but for those of `without`.
  std::vector<std::string> plain_words(const std::set<std::string>& without) const;

  /// What a file is called in a bundle: as here, if it lies below the present folder.
  static std::string name_in_bundle(const std::string& path);

private:
  std::string command_;
  std::map<std::string, WordKind> kinds_;
  std::vector<std::string> order_; ///< of the options
  std::map<std::string, std::vector<std::string>> options_;
};

/// Reads the files of `paths`, each once.
std::vector<BundleFile> bundle_files(const std::vector<std::string>& paths);

} // namespace deepgen
