#include "measure/race/slices.h"

#include "measure/race/statistics.h"

#include <new>
#include <sys/mman.h>

namespace deepgen {

Sample sample_of(const std::vector<Sample>& slices) {
  std::vector<double> clean, all;
  for (const Sample& s : slices) {
    all.push_back(s.seconds);
    if (s.clean) clean.push_back(s.seconds);
  }
  Sample out;
  out.clean = 2 * clean.size() >= all.size();
  out.seconds = quantile(out.clean ? clean : all, 0.25);
  return out;
}

Running::Running() {
  void* page = mmap(nullptr, sizeof *arm_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  arm_ = new (page) std::atomic<size_t>(0);
}

Running::~Running() { munmap(arm_, sizeof *arm_); }

} // namespace deepgen
