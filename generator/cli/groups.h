// Repeated groups on a command line, such as "--problem P --arch A -o F --problem ...", which CLI11 cannot
// express.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace deepgen {

/// The options of one group; each starts at a "--problem".
class Group {
public:
  explicit Group(std::string command) : command_(std::move(command)) {}
  std::vector<std::string>& operator[](const std::string& option) { return options_[option]; }
  const std::vector<std::string>& many(const std::string& option) const;
  /// The option's only value; throws Error when there is none or more than one.
  std::string one(const std::string& option) const;
  const std::vector<std::string>&
  at_least_one(const std::string& option) const; ///< throws Error when there is none
  std::string one_or(const std::string& option, const std::string& otherwise) const;

private:
  std::string command_;
  std::map<std::string, std::vector<std::string>> options_;
};

/// Takes the groups out of `arguments` (without the program's name), which keeps the rest for CLI11.
/// Does nothing for commands that have no groups. Throws Error on a group option before the first --problem.
std::vector<Group> take_groups(std::vector<std::string>& arguments);

} // namespace deepgen
