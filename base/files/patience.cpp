#include "base/files/patience.h"

#include <algorithm>
#include <ctime>

namespace deepgen {
namespace {

double now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

} // namespace

Patience::Patience(double seconds) : left_(seconds), last_(now()) {}

void Patience::restart(double seconds) { left_ = seconds, last_ = now(); }

double Patience::left() {
  const double time = now();
  left_ -= std::min(time - last_, 2 * slice);
  last_ = time;
  return left_;
}

int Patience::milliseconds() { return std::max(1, int(std::min(left(), slice) * 1000)); }

} // namespace deepgen
