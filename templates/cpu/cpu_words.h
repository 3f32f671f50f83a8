// Words: the 32 bits of a lane that hold a group of K, and the instructions that multiply groups and add them
// up.
#pragma once

#include "templates/cpu/dot_words.h"
#include "templates/ir/ir_builder.h"

namespace deepgen {

/// As many words as the level has lanes of 32 bits.
class Words {
public:
  Words(Ir&, const Dot&);

  const Dot dot;
  mlir::Type word, vector, sums; ///< i32; vectors of words; of sums: f32 or i32

  Value zero_sums();
  Value load(Value address);      ///< of a panel
  Value load_word(Value address); ///< of a panel, or of elements where they lie
  void store(Value, Value address, int64_t count);
  Value splat(Value word);
  Value constant(uint32_t word); ///< in all lanes
  Value none() { return constant(0); }
  Value shifted(Value words); ///< 128 more in every byte
  Value multiply_add(Value sums, Value a, Value b);
  /// f32 of one element of each word's group, of B's type.
  Value widened(Value words, int64_t element);
  /// f32 of as many bytes, signed, that follow each other.
  Value widened_bytes(Value address);
  /// A group of four f32 that follow each other, of which `elements` exist, again and again.
  Value repeated(Value address, int64_t elements);
  /// Sums of the four lanes of each group of four vectors of them, as one vector.
  Value joined(const Values& four);
  Value add(Value sums, Value more);
  Value subtract(Value sums, Value less);
  Value load_sums(Value address, int64_t count);
  void store_sums(Value, Value address);
  Value sum_lanes(Value sums, bool by_halves); ///< scalar; of floats, by_halves: in one order everywhere
  Value as_f32(Value sums);

  /// Words of elements that follow each other along K: `elements` exist, what is beyond is zero and not read.
  Value along_k(Type, Value address, int64_t elements);
  /// Words of `count` columns: element i of a group is at rows[i]; of missing rows it is zero.
  Value across_k(Type, const Values& rows, int64_t count);
  /// Whether panels of a type have across_columns().
  bool interleaves(Type type) const {
    return dot.raw() && dot.group() > 1 && size_of(type) * dot.group() == 4;
  }
  /// As across_k() of whole groups, for the columns of so many vectors (1, 2; of bytes 4), which all exist.
  Values across_columns(Type, const Values& rows, int64_t vectors);
  Value load_bytes(Value address, int64_t count); ///< i8 in lanes of i32
  /// The first `elements` of a group that lie where A is stored, as a word.
  Value part_of_word(Type, Value address, int64_t elements);
  /// Address of an element of a matrix of the type.
  Value at(Type, Value base, Value index);
  Value at(Type type, Value base, int64_t index) { return index ? at(type, base, ir.constant(index)) : base; }

private:
  Value split_multiply_add(Value sums, Value a, Value b);
  Value multiply_pairs(Value sums, Value a, Value b);
  Value bits_as(mlir::Type lane, int64_t lanes, Value);
  Value wide(Type,
             Value stored); ///< elements of 8 or 16 bits in lanes of 32, the upper bits zero; of i16: sign
  Value stored(Type, Value address, int64_t lanes, int64_t count);
  Value sum_pairs(Value x, Value y);
  Value interleaved(Value x, Value y, int64_t from, int64_t count);
  Ir& ir;
};

} // namespace deepgen
