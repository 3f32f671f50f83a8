#include "templates/cpu/cpu_cut.h"

#include "templates/core/sizes.h"

#include <algorithm>

namespace deepgen {

Parameter cut_parameter(const Gemm& p) {
  std::vector<int64_t> values = {int64_t(TaskCut::rows), int64_t(TaskCut::columns)};
  if (p.threads >= 4) values.push_back(int64_t(TaskCut::both));
  return {"cut",
          values,
          "how threads share a call: 1 rows of D, 2 columns, 3 both; 0: by the runtime's rule",
          {0, int64_t(TaskCut::both)}};
}

TaskCut cut_of(const Config& config) {
  for (const auto& [name, value] : config.values)
    if (name == "cut") return TaskCut(value);
  return TaskCut::rule;
}

std::string why_no_cut(const Gemm& p, TaskCut cut, int64_t m_tiles, int64_t n_tiles) {
  if (cut == TaskCut::rows && m_tiles == 1 && n_tiles > 1) return "cut=1 has one task: a tile covers M";
  if (cut == TaskCut::columns && n_tiles == 1) return "cut=2 has one task: a tile covers N";
  if (cut == TaskCut::both && (m_tiles == 1 || n_tiles == 1 || p.threads < 4))
    return "cut=3 needs several rows and columns of tiles, and four threads";
  return "";
}

Gemm share_of(const Gemm& p, TaskCut cut, int64_t mr, int64_t dr) {
  const int64_t m_tiles = ceil_div(p.m, mr), n_tiles = ceil_div(p.n, dr), threads = p.threads;
  struct Part {
    int64_t m, n; ///< tiles
  } best = {m_tiles, n_tiles};
  const auto consider = [&](int64_t along_m, int64_t along_n) {
    const Part part = {ceil_div(m_tiles, along_m), ceil_div(n_tiles, along_n)};
    if (part.m * part.n < best.m * best.n) best = part;
  };
  for (int64_t first = 1; first <= threads; ++first) {
    const bool rows = first == threads, columns = first == 1, both = first >= 2 && threads / first >= 2;
    if (cut == TaskCut::rows ? rows : cut == TaskCut::columns ? columns : cut == TaskCut::both ? both : true)
      consider(first, threads / first);
  }
  Gemm part = p;
  part.m = std::min(p.m, best.m * mr), part.n = std::min(p.n, best.n * dr);
  return part;
}

} // namespace deepgen
