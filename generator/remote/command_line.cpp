#include "generator/remote/command_line.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/sha256.h"

#include <cstdlib>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr int64_t kMostOfLog = int64_t(256) << 20;
constexpr size_t kDigits = 16;

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

[[noreturn]] void refuse(const std::string& what, const std::string& command) {
  throw Error(what, "deepgen remote -- " + command, "", "see `deepgen remote --help`");
}

} // namespace

CommandLine::CommandLine(const std::vector<std::string>& words, const std::map<std::string, WordKind>& kinds)
    : command_(words.empty() ? "" : words.front()), kinds_(kinds) {
  std::string option;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (is_option(word)) {
      const auto kind = kinds.find(word);
      if (kind == kinds.end()) refuse("the command has an unknown option: " + word, command_);
      if (!options_.count(word)) order_.push_back(word);
      options_[word];
      option = kind->second == WordKind::flag ? "" : word;
    } else {
      if (option.empty() && !kinds.count("")) refuse("the command has a word too many: " + word, command_);
      if (option.empty() && !options_.count("")) order_.insert(order_.begin(), "");
      options_[option].push_back(word);
    }
  }
}

const std::vector<std::string>& CommandLine::many(const std::string& option) const {
  static const std::vector<std::string> none;
  const auto at = options_.find(option);
  return at == options_.end() ? none : at->second;
}

std::string CommandLine::one_or(const std::string& option, const std::string& otherwise) const {
  const std::vector<std::string>& values = many(option);
  if (values.size() > 1) refuse(option + " takes one value", command_);
  return values.empty() ? otherwise : values.front();
}

std::string CommandLine::one(const std::string& option) const {
  if (many(option).empty()) refuse("the command lacks " + option, command_);
  return one_or(option, "");
}

double CommandLine::number_or(const std::string& option, double otherwise) const {
  const std::string text = one_or(option, "");
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end || !(value >= 0 && value < 1e6)) refuse(option + " is no number in range: " + text, command_);
  return value;
}

std::string CommandLine::name_in_bundle(const std::string& path) {
  const fs::path here = fs::current_path();
  const fs::path whole = (fs::path(path).is_absolute() ? fs::path(path) : here / path).lexically_normal();
  const std::string name = whole.lexically_relative(here).generic_string();
  if (!name.empty() && !name.starts_with("..")) return name;
  return "outside/" + sha256_hex(whole.parent_path().string()).substr(0, kDigits) + "/" +
         whole.filename().string();
}

std::vector<std::string> CommandLine::words_in_bundle() const {
  std::vector<std::string> words = {command_};
  for (const std::string& option : order_) {
    const WordKind kind = kinds_.at(option);
    if (kind == WordKind::dropped) continue;
    if (!option.empty()) words.push_back(option);
    for (const std::string& value : many(option))
      words.push_back(kind == WordKind::text ? value : name_in_bundle(value));
  }
  return words;
}

std::vector<std::string> CommandLine::files() const {
  std::vector<std::string> paths;
  for (const std::string& option : order_)
    if (kinds_.at(option) == WordKind::file)
      paths.insert(paths.end(), many(option).begin(), many(option).end());
  return paths;
}

std::vector<std::string> CommandLine::plain_words(const std::set<std::string>& without) const {
  std::vector<std::string> words;
  for (const std::string& option : order_) {
    const WordKind kind = kinds_.at(option);
    if ((kind != WordKind::text && kind != WordKind::flag) || without.count(option)) continue;
    words.push_back(option);
    words.insert(words.end(), many(option).begin(), many(option).end());
  }
  return words;
}

std::vector<BundleFile> bundle_files(const std::vector<std::string>& paths) {
  std::vector<BundleFile> files;
  std::set<std::string> names;
  for (const std::string& path : paths)
    if (const std::string name = CommandLine::name_in_bundle(path); names.insert(name).second)
      files.push_back({name, read_file(path, kMostOfLog)});
  return files;
}

} // namespace deepgen
