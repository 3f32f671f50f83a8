#include "generator/cli/groups.h"

#include "base/text/error.h"

#include <algorithm>

namespace deepgen {
namespace {

/// The options that belong to a group, by command; the first one opens a group.
const std::map<std::string, std::vector<std::string>> kGroupOptions = {
    {"select", {"--problem", "--arch", "--records", "-o"}},
    {"header", {"--problem"}},
    {"embed", {"--problem", "--kernel", "--choice", "--verified", "--vendored"}},
    {"bundle", {"--problem", "--kernel", "--choice", "--verified", "--vendored"}},
    {"lock merge", {"--problem", "--arch", "--on", "--records"}},
    {"lock check", {"--problem", "--arch"}}};

std::string command_of(const std::vector<std::string>& arguments) {
  std::string command;
  for (const std::string& word : arguments) {
    if (word.starts_with("-")) break;
    command += (command.empty() ? "" : " ") + word;
    if (kGroupOptions.count(command)) return command;
  }
  return "";
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

} // namespace

const std::vector<std::string>& Group::many(const std::string& option) const {
  static const std::vector<std::string> none;
  auto it = options_.find(option);
  return it == options_.end() ? none : it->second;
}

std::string Group::one(const std::string& option) const {
  const auto& values = many(option);
  if (values.size() != 1)
    throw Error(values.empty() ? "missing " + option : option + " takes one value in each group",
                "deepgen " + command_ +
                    (many("--problem").empty() ? "" : " --problem " + many("--problem")[0]),
                "", "see `deepgen " + command_ + " --help`");
  return values[0];
}

const std::vector<std::string>& Group::at_least_one(const std::string& option) const {
  if (many(option).empty()) one(option);
  return many(option);
}

std::string Group::one_or(const std::string& option, const std::string& otherwise) const {
  return many(option).empty() ? otherwise : one(option);
}

std::vector<Group> take_groups(std::vector<std::string>& arguments) {
  const std::string command = command_of(arguments);
  if (command.empty()) return {};
  const auto& names = kGroupOptions.at(command);
  std::vector<std::string> rest;
  std::vector<Group> groups;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    const size_t equals = name.starts_with("--") ? name.find('=') : std::string::npos;
    if (equals != std::string::npos) value = name.substr(equals + 1), name.resize(equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      rest.push_back(arguments[i]);
      continue;
    }
    if (name == "--problem") groups.emplace_back(command);
    if (groups.empty())
      throw Error(name + " before the first --problem", "deepgen " + command,
                  "a group starts at each --problem", "see `deepgen " + command + " --help`");
    auto& values = groups.back()[name];
    if (equals != std::string::npos) values.push_back(value);
    while (equals == std::string::npos && i + 1 < arguments.size() && !is_option(arguments[i + 1]))
      values.push_back(arguments[++i]);
  }
  arguments = rest;
  return groups;
}

} // namespace deepgen
