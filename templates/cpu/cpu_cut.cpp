#include "templates/cpu/cpu_cut.h"

#include "templates/core/sizes.h"

#include <algorithm>

namespace deepgen {

Parameter cut_parameter(const Gemm& p) {
  std::vector<int64_t> values = {int64_t(Cut::rows), int64_t(Cut::columns)};
  if (p.threads >= 4) values.push_back(int64_t(Cut::both));
  return {"cut",
          values,
          "how threads share a call: 1 rows of D, 2 columns, 3 both; 0: by the runtime's rule",
          {0, int64_t(Cut::both)}};
}

Cut cut_of(const Config& config) {
  for (const auto& [name, value] : config.values)
    if (name == "cut") return Cut(value);
  return Cut::rule;
}

std::string why_no_cut(const Gemm& p, Cut cut, int64_t m_tiles, int64_t n_tiles) {
  if (cut == Cut::rows && m_tiles == 1 && n_tiles > 1) return "cut=1 has one task: a tile covers M";
  if (cut == Cut::columns && n_tiles == 1) return "cut=2 has one task: a tile covers N";
  if (cut == Cut::both && (m_tiles == 1 || n_tiles == 1 || p.threads < 4))
    return "cut=3 needs several rows and columns of tiles, and four threads";
  return "";
}

Gemm share_of(const Gemm& p, Cut cut, int64_t mr, int64_t dr) {
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
    if (cut == Cut::rows ? rows : cut == Cut::columns ? columns : cut == Cut::both ? both : true)
      consider(first, threads / first);
  }
  Gemm part = p;
  part.m = std::min(p.m, best.m * mr), part.n = std::min(p.n, best.n * dr);
  return part;
}

} // namespace deepgen
