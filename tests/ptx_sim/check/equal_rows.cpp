#include "tests/ptx_sim/check/equal_rows.h"

#include "base/kernel/kernel_call.h"
#include "base/problem/signature.h"
#include "tests/ptx_sim/check/operands.h"
#include "tests/ptx_sim/program/fault.h"

#include <algorithm>
#include <cstring>

namespace deepgen::ptx_sim {
namespace {

constexpr uint64_t kSeed = 3;

std::vector<int64_t> places_of(int64_t m) {
  std::vector<int64_t> places = {0, m / 3, m / 2, m - 1};
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

void repeat(Operands& o, const Matrix& x, const std::vector<int64_t>& places, bool along) {
  std::vector<uint8_t>& bytes = o.memory[x.region].bytes;
  const int64_t size = size_of(x.type);
  for (int64_t place : places)
    for (int64_t c = 0; c < (along ? 1 : x.columns); ++c)
      std::memcpy(&bytes[size_t(along ? x.bytes_at(0, 0, place) : x.bytes_at(0, place, c))],
                  &bytes[size_t(x.bytes_at(0, 0, c))], size_t(size));
}

std::string hex(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += "0123456789abcdef"[bytes[i] >> 4], text += "0123456789abcdef"[bytes[i] & 15];
  return text;
}

/// Of the rows at the places, in the first entry.
std::vector<std::string> rows_of(const EqualRowsRun& r, const Kernel& k, const cuda::CallCase& c) {
  const Gemm& p = k.problem.gemm();
  Operands o(k, c, kSeed);
  const std::vector<int64_t> places = places_of(p.m);
  repeat(o, o.matrices.at("a"), places, false);
  for (EpilogueOp op : p.epilogue)
    for (const deepgen::Operand& x : operands_of(op, p))
      if (x.is_matrix() || x.shape == deepgen::Operand::Shape::per_row)
        repeat(o, o.matrices.at(x.name), places, !x.is_matrix());
  std::vector<std::vector<uint8_t>> arguments;
  for (const std::string& name : k.args) arguments.push_back(o.argument(k, name));
  for (size_t i = 0; i < k.launches.size(); ++i) {
    Launch l = k.launches[i];
    if (l.persistent) l.grid[0] = std::min(l.grid[0], l.cluster[0] * 3);
    r.run(l, arguments, o.memory, kSeed + i);
  }
  const Matrix& d = o.matrices.at("d");
  std::vector<std::string> rows;
  for (int64_t place : places)
    rows.push_back(
        hex(&o.memory[d.region].bytes[size_t(d.bytes_at(0, place, 0))], size_t(p.n * size_of(p.d))));
  return rows;
}

} // namespace

std::string equal_rows(const EqualRowsRun& r, const std::vector<int64_t>& rows) {
  const cuda::CallCase dense{"dense", false, 1, 0, cuda::CallCase::absent},
      padded{"padded", true, 1, 0, cuda::CallCase::absent};
  std::string first;
  for (int64_t m : rows)
    for (const cuda::CallCase& c : {dense, padded}) {
      Sizes sizes = r.kernel.problem.gemm().sizes();
      sizes.m = m;
      const Kernel k = kernel_in_call(r.kernel, sizes);
      try {
        for (const std::string& row : rows_of(r, k, c)) {
          if (first.empty()) first = row;
          if (row != first) return std::string("other bits at m=") + std::to_string(m) + ", " + c.name;
        }
      } catch (const Fault& f) {
        return std::string("fault at m=") + std::to_string(m) + ": " + f.what();
      }
    }
  return first;
}

} // namespace deepgen::ptx_sim
