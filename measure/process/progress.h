// One live line on a terminal; nothing but the summary elsewhere, as Ninja prints whole outputs of edges.
#pragma once

#include <string>

namespace deepgen {

class Progress {
public:
  explicit Progress(const std::string& title);
  ~Progress();
  void live(const std::string& text);
  /// Ends the live line and prints one line that stays.
  void summary(const std::string& text);

private:
  void clear();
  std::string title_;
  bool terminal_, shown_ = false;
};

} // namespace deepgen
