#include "measure/values/attention/attention_bias.h"

#include "measure/values/attention/attention_inputs.h"
#include "measure/values/attention/host_threads.h"
#include "measure/values/stored_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace deepgen {

BiasLayout::BiasLayout(const Attention& p, const AttentionShape& s) {
  if (!p.bias) return;
  const auto of = [](bool one, int64_t count) { return one ? 1 : std::max<int64_t>(1, count); };
  entries_ = of(s.one_bias_of_entries, s.batch), heads_ = of(s.one_bias_of_heads, p.heads);
  queries_ = of(s.one_bias_of_queries, s.queries), columns_ = std::max<int64_t>(1, s.keys), gap_ = s.gap;
}

PageBuffer random_bias(const Attention& p, const BiasLayout& layout, uint64_t seed, bool hide) {
  if (!p.bias) return {};
  constexpr double one_of_16 = -7.0 / 8; ///< of numbers in [-1, 1), so many are below
  const int64_t columns = layout.columns();
  PageBuffer buffer(size_t(layout.rows() * columns * size_of(*p.bias)), 7, Begins::as_malloc);
  on_host_threads(layout.rows(), [&](int64_t r) {
    const double hides = r % 2 && *p.bias != Type::f16 ? -0x1.fep127 : -INFINITY;
    const bool hidden = uniform(seed + 1, uint64_t(r)) < one_of_16;
    for (int64_t j = 0; j < columns; ++j) {
      const double x = uniform(seed, uint64_t(r * columns + j));
      encode(*p.bias, hide && (hidden || x < one_of_16) ? hides : 4 * x, buffer.data(), r * columns + j);
    }
  });
  return buffer;
}

std::vector<bool> used_bias(const Attention& p, const BiasLayout& layout, const AttentionShape& s) {
  std::vector<bool> used(size_t(layout.rows() ? (layout.rows() - 1) * layout.ld() + layout.columns() : 0));
  for (int64_t b = 0; layout.rows() && b < s.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t t = 0; t < s.queries_of(b); ++t)
        std::fill_n(used.begin() + layout.row(b, h, t) * layout.ld(), s.keys_of(b), true);
  return used;
}

std::vector<char> stored_bias(const Attention& p, const BiasLayout& layout, const AttentionShape& s,
                              const PageBuffer& dense) {
  const std::vector<bool> used = used_bias(p, layout, s);
  const auto size = p.bias ? size_t(size_of(*p.bias)) : 1;
  std::vector<char> out(used.size() * size, char(0xff));
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) {
      const auto ld = size_t(layout.ld()), from = i / ld * size_t(layout.columns()) + i % ld;
      std::memcpy(out.data() + i * size, dense.data() + from * size, size);
    }
  return out;
}

} // namespace deepgen
