#include "templates/cpu/cpu_dot_pack.h"

#include "templates/core/sizes.h"
#include "templates/cpu/pack.h"

#include <bit>

namespace deepgen {
namespace {

class Packer {
public:
  Packer(Ir& builder, const Dot& d, const DotPanel& shape, mlir::ValueRange arguments)
      : ir(builder), words(builder, d), panel(shape), source(arguments[0]), ld(arguments[1]),
        destination(arguments[2]), k(arguments[3]), lanes(ir.isa.lanes()), group(d.group()) {}

  void emit() {
    // Neighbouring words of the panel are neighbours in memory, or come from a square that is turned around.
    const bool turned = panel.k_major == panel.by_rows;
    const int64_t step = turned || panel.by_rows ? lanes * group : group;
    Value whole = ir.sub(k, ir.remainder(k, step));
    ir.loop(ir.constant(0), whole, step, [&](Value at) { one_step(at, step, turned); });
    const int64_t rest = panel.rest % step;
    if (rest || panel.padding)
      ir.branch(last_block(), [&] {
        if (rest) one_step(whole, rest, turned);
        if (panel.padding) pad();
      });
  }

private:
  Ir& ir;
  Words words;
  const DotPanel& panel;
  Value source, ld, destination, k;
  const int64_t lanes, group;

  /// Other blocks are whole vectors of groups.
  Value last_block() { return ir.not_equal(ir.remainder(k, lanes * group), ir.constant(0)); }

  void one_step(Value at, int64_t elements, bool turned) {
    if (!turned) return panel.by_rows ? copy_rows(at, elements) : copy_group(at, elements);
    const int64_t whole = panel.valid / lanes * lanes;
    // A loop, not unrolled squares: shuffles are what compiling a kernel spends most time on.
    if (whole)
      ir.loop(ir.constant(0), ir.constant(whole), lanes,
              [&](Value w) { square(at, elements, w, lanes, lanes); });
    for (int64_t w = whole; w < panel.width; w += lanes)
      square(at, elements, ir.constant(w), std::clamp<int64_t>(panel.valid - w, 0, lanes),
             std::min(lanes, panel.width - w));
  }

  Value element(Value at_k, Value w) {
    Value row = ir.mul(panel.k_major ? at_k : w, ld);
    return words.at(panel.type, words.at(panel.type, source, row), panel.k_major ? w : at_k);
  }
  /// Where the group that begins at element `at` has its words.
  Value group_at(Value at) { return ir.at(destination, ir.mul(ir.shift_right(at, group), panel.row)); }
  Value shifted(Value x) { return panel.shifts ? words.shifted(x) : x; }

  /// `elements` rows of the source become one row of words.
  Value across(Value at, int64_t elements, Value w, int64_t valid) {
    if (valid == 0) return words.none();
    Values rows;
    for (int64_t i = 0; i < elements; ++i) rows.push_back(element(ir.add(at, i), w));
    return words.across_k(panel.type, rows, valid);
  }

  /// Vectors of columns from w on whose words are made together: a power of two; 0: none. Two of bytes take
  /// more shuffles than each by itself: 1.27 to 1.55 times the time of 33 x 77 x 129 with AMX (not kept).
  int64_t together(int64_t w, int64_t elements) const {
    if (!words.interleaves(panel.type) || elements < group) return 0;
    const int64_t whole = (panel.valid - w) / lanes;
    if (words.dot.tiles() && group == 4 && whole < group) return 0;
    return whole > 0 ? int64_t(std::bit_floor(uint64_t(std::min(whole, group)))) : 0;
  }

  void copy_group(Value at, int64_t elements) {
    Value to = group_at(at);
    for (int64_t w = 0; w < panel.width; w += lanes) {
      if (const int64_t count = together(w, elements)) {
        Values rows;
        for (int64_t i = 0; i < group; ++i) rows.push_back(element(ir.add(at, i), ir.constant(w)));
        const Values made = words.across_columns(panel.type, rows, count);
        for (int64_t i = 0; i < count; ++i)
          words.store(shifted(made[size_t(i)]), ir.at(to, w + i * lanes), lanes);
        w += (count - 1) * lanes;
        continue;
      }
      const int64_t valid = std::clamp<int64_t>(panel.valid - w, 0, lanes);
      words.store(shifted(across(at, elements, ir.constant(w), valid)), ir.at(to, w),
                  std::min(lanes, panel.width - w));
    }
  }

  void copy_rows(Value at, int64_t elements) {
    Value to = group_at(at);
    const auto row = [&](Value w, bool exists) {
      Value x = exists ? words.along_k(panel.type, element(at, w), elements) : words.none();
      words.store(shifted(x), ir.at(to, ir.mul(w, lanes)), lanes);
    };
    ir.loop(ir.constant(0), ir.constant(panel.valid), 1, [&](Value w) { row(w, true); });
    if (panel.valid < panel.width)
      ir.loop(ir.constant(panel.valid), ir.constant(panel.width), 1, [&](Value w) { row(w, false); });
  }

  /// `lanes` groups of as many rows or columns from w on, `valid` of which exist and `kept` are in the panel.
  void square(Value at, int64_t elements, Value w, int64_t valid, int64_t kept) {
    Values in;
    const int64_t groups = ceil_div(elements, group);
    for (int64_t i = 0; i < lanes; ++i) {
      if (panel.k_major)
        in.push_back(i < groups
                         ? across(ir.add(at, i * group), std::min(group, elements - i * group), w, valid)
                         : words.none());
      else
        in.push_back(i < valid ? words.along_k(panel.type, element(at, ir.add(w, i)), elements)
                               : words.none());
    }
    Values out = transpose(ir, in);
    Value to = group_at(at);
    if (panel.by_rows) {
      for (int64_t i = 0; i < kept; ++i)
        words.store(shifted(out[size_t(i)]), ir.at(to, ir.mul(ir.add(w, i), lanes)), lanes);
      return;
    }
    for (int64_t i = 0; i < groups; ++i)
      words.store(shifted(out[size_t(i)]), ir.at(ir.at(to, w), i * panel.row), kept);
  }

  void pad() {
    Value begin = ir.shift_right(ir.add(k, group - 1), group);
    ir.loop(begin, ir.add(begin, panel.padding), 1, [&](Value g) {
      Value to = ir.at(destination, ir.mul(g, panel.row));
      for (int64_t w = 0; w < panel.width; w += lanes)
        words.store(words.none(), ir.at(to, w), std::min(lanes, panel.width - w));
    });
  }
};

} // namespace

std::string DotPanel::name() const {
  return std::string("pack_") + to_string(type) + (k_major ? "_rows_" : "_columns_") + text(width) + "_" +
         text(valid) + "_of_" + text(row) + (by_rows ? "_by_rows" : "") + (shifts ? "_shifted" : "");
}

std::string dot_pack_function(Ir& ir, const Dot& dot, const DotPanel& panel) {
  const std::string name = panel.name();
  ir.function(name, {ir.pointer, ir.i64, ir.pointer, ir.i64}, true,
              [&](mlir::ValueRange arguments) { Packer(ir, dot, panel, arguments).emit(); });
  return name;
}

std::string dot_shift_function(Ir& ir, const Dot& dot, int64_t width) {
  const std::string name = "shift_" + text(width);
  ir.function(name, {ir.pointer, ir.i64, ir.pointer}, true, [&](mlir::ValueRange arguments) {
    Words words(ir, dot);
    const int64_t lanes = ir.isa.lanes();
    Values none(size_t(width / lanes), words.zero_sums());
    Values found = ir.loop(ir.constant(0), arguments[1], 1, none, [&](Value g, mlir::ValueRange carried) {
      Values next(carried);
      Value at = ir.at(arguments[0], ir.mul(g, width));
      for (size_t j = 0; j < next.size(); ++j)
        next[j] = words.multiply_add(next[j], words.constant(0x80808080),
                                     words.load(ir.at(at, int64_t(j) * lanes)));
      return next;
    });
    for (size_t j = 0; j < found.size(); ++j)
      words.store_sums(words.subtract(words.zero_sums(), found[j]), ir.at(arguments[2], int64_t(j) * lanes));
  });
  return name;
}

} // namespace deepgen
