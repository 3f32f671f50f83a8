// The tile of scores of a block, and of its warps, whatever makes them.
#pragma once

#include "templates/core/template.h"

#include <utility>

namespace deepgen {

inline constexpr double kLog2OfE = 1.44269504088896340736, kLogOf2 = 0.69314718055994530942;

/// Packed, of an entry: calls with so few rows may leave a GPU idle.
inline constexpr int64_t few_attention_rows = 128;
inline constexpr int64_t attention_record_head = 16; ///< bytes of a part's maximum and sum

struct AttentionTile {
  int64_t rows;      ///< of Q that a block has
  int64_t keys;      ///< of a block of keys
  int64_t group;     ///< rows of one token: heads of Q in a block
  int64_t warp_rows; ///< a multiple of 16
  bool pack;         ///< a block has the rows of all heads that share a head of K
  int64_t chains;    ///< of maxima, and of sums, of a row: what each adds up waits for itself alone

  /// Blocks that share out an entry's keys; each has a part of the sums in the workspace, which a second
  /// launch adds up. Only of calls with at most `split_tokens` queries of all entries together.
  int64_t splits = 1;
  int64_t split_tokens = 0, record = 0; ///< record: bytes of a part of one row

  /// Maxima stay as they are until a score exceeds one by `rise` powers of two: till then sums keep their
  /// scale. Where there are chains.
  bool lazy = false;
  double rise = 8;  ///< 2^8 fits into f16, too
  int64_t soft = 0; ///< of each 8 exponentials, those that are computed by multiplications; with chains

  /// Exponentials are 2^lift times what they stand for, and at most 2^lift: where they are rounded to 8 bits,
  /// so that small ones are more than zeros. Where there are chains.
  int64_t lift = 0;

  int64_t row_tiles() const { return warp_rows / 16; }
  int64_t key_tiles() const { return keys / 8; }

  // Where blocks of the grid have rows each, and splits share out keys.

  int64_t heads(const Attention&) const; ///< of Q, or packed of K: each has blocks of rows of its own

  /// Blocks along x: `first` of them for each `second` tokens.
  std::pair<int64_t, int64_t> blocks() const;
  int64_t
  tuned_blocks(const Attention&) const; ///< of all entries and heads of the tuned call, without splits
  /// Keys that a block of the tuned call sees at most.
  int64_t tuned_keys(const Attention&) const;
  /// Keys of blocks of keys that it goes over at most: a window may begin, and end, anywhere in one.
  int64_t tuned_span(const Attention&) const;
  /// Blocks of keys that a block of the tuned call goes over, on average.
  double tuned_key_blocks(const Attention&) const;
  int64_t workspace(const Attention&) const; ///< bytes
  double part_bytes(const Attention&) const; ///< of parts of rows, written and read, of the tuned call
  Launch launch(const Attention&, int64_t threads) const;
  /// A call that ends within its blocks, `stages` of keys more than one.
  Attention awkward(const Attention&, int64_t stages) const;
};

/// Only problems with few rows, in some call that they are tuned for, have the parameter `splits`, or those
/// that fix it.
bool has_attention_splits(const Attention&);
/// Queries, of all entries together, up to which calls are split: some times those of the tuned call; of
/// several, of the largest with few rows.
int64_t most_tokens_split(const Attention&);
/// Of all calls that it is tuned for.
int64_t most_tuned_batch(const Attention&);
Parameter attention_splits(const Attention&);

} // namespace deepgen
