#include "measure/process/progress.h"

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace deepgen {

Progress::Progress(const std::string& title) : title_(title), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() { clear(); }

void Progress::live(const std::string& text) {
  if (!terminal_) return;
  winsize size = {};
  ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  const size_t width = size.ws_col > 1 ? size.ws_col - 1u : 79u;
  const std::string line = (title_ + ": " + text).substr(0, width);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr), std::fflush(stderr);
  shown_ = false;
}

void Progress::summary(const std::string& text) {
  clear();
  std::fprintf(stderr, "%s: %s\n", title_.c_str(), text.c_str());
}

} // namespace deepgen
