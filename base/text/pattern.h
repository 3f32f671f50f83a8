// Pattern: a regular expression of a user's. RE2 matches in time that grows with the text alone: whatever is
// written cannot hang a build.
#pragma once

#include <memory>
#include <string>

namespace deepgen {

class Pattern {
public:
  /// Throws Error; `where` names file and key.
  Pattern(const std::string& text, const std::string& where);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  bool is_found_in(const std::string& text) const;

private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

} // namespace deepgen
