// One event of a PyTorch profiler's trace: what products and kernels need of it, and nothing else in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deepgen {

/// A list of lists of sizes, as "Input Dims" is, in one piece.
struct SizeLists {
  struct Item {
    size_t begin, count;
    bool good; ///< a list of at most 8 numbers from 0 to 2^50
  };
  std::vector<int64_t> sizes;
  std::vector<Item> items;
  bool there = false;

  std::span<const int64_t> of(const Item& item) const { return {sizes.data() + item.begin, item.count}; }
};

struct TorchEvent {
  std::string category, name;
  double duration = 0; ///< microseconds
  int64_t id = 0;      ///< its "External id"; 0: none
  bool has_args = false;
  SizeLists dims, strides;
  std::vector<std::string> types, concrete; ///< an item that is no text is empty

  /// Takes the place of what was there. Returns why the text is no valid JSON; empty: it is.
  std::string read(std::string_view text);
};

} // namespace deepgen
