// What a block of attention works on: a batch entry, its lengths, the block's rows of Q, and which keys
// these see. Of numbers of tokens all are i32.
#pragma once

#include "base/problem/attention.h"
#include "templates/gpu/attention/attention_tile.h"
#include "templates/ir/gpu_ir.h"

namespace deepgen {

class AttentionBlock {
public:
  AttentionBlock(GpuIr&, const Attention&, const AttentionTile&, const GpuIr::Arguments&);

  /// Tells where the block is by its place in the grid, and calls `body` unless there is no row for it.
  void enter(const std::function<void()>& body);
  /// Of a block of the second launch: whose row it has, where the call is split.
  void enter_row(const std::function<void(Value token, Value head)>& body);

  /// What blocks of rows are numbered by, whatever block of the grid works on them.
  struct Place {
    Value number; ///< of rows of the entry; of causal masks from the last ones on
    Value head;   ///< of Q; packed: of K
    Value entry;
    Value split = nullptr; ///< with splits: which part of the keys
  };
  /// Tells where it is; i1: whether there is a row for it.
  Value locate(const Place&);

  struct Bounds {
    Value from, to; ///< of the keys that a row sees
  };
  Bounds bounds(Value token) const;
  Bounds first() const { return first_; } ///< of the block's first row, whose bounds are the least
  Bounds last() const { return last_; }
  /// Of the keys that the block goes over: from a whole number of blocks of keys, to an end that is one too,
  /// or the last key.
  Bounds seen_keys() const;
  /// Scores of the block of keys that begins with `first`; by `mask`, where some row does not see all of
  /// them.
  Values masked(Values scores, Value first, llvm::function_ref<void(Values&)> mask) const;
  /// With splits: finds out whether blocks share out the keys of this call, which is_split() and splits() are
  /// of. Each entry and enter_row() do so; who calls locate() does it ahead.
  void find_split();
  Value is_split() const { return is_split_; } ///< i1
  Value splits() const;                        ///< i32; 1: the call is not split

  /// A row of the block: its token in the entry, and its head of Q.
  struct Row {
    Value packed; ///< number of the row in the entry
    Value token, head;
  };
  Row row(Value in_block) const;
  Row nearest_row(Value in_block) const;                   ///< where there is none, the block's last one
  Value rows_left() const { return ir.sub(all_, begin_); } ///< of the entry, from the block's first on
  Value exists(const Row& r) const { return ir.less(r.packed, all_); }

  /// Where a row's part of the sums is in the workspace, of the block's split, or of the first.
  Value record(Value token, Value head) const;
  /// Where elements of a head and token are.
  Value address(const std::string& name, Type, Value token, Value head) const;
  /// i1: whether all rows of the bias begin at multiples of so many bytes, a power of two.
  Value bias_aligned(int64_t bytes) const;
  Value bias_row(const Row&) const;                  ///< of the bias of the entry's first key
  Value keys_address(const std::string& name) const; ///< of the entry's first key, or value
  Value head() const { return head_ ? head_ : ir.block_y(); }
  Value key_head() const; ///< of K
  Value entry() const { return entry_; }
  Value first_query() const { return first_query_; } ///< of the entry, in Q
  Value first_key() const { return first_key_; }
  Value begin() const { return begin_; } ///< the first row in the entry
  Value keys() const { return keys_; }   ///< of the entry
  Value is_passed(const char* table) const;
  Value pitch(const std::string& name, Type) const; ///< bytes from token to token, i64

  /// Of keys or values in pages: where they are, as far as all tokens have it in common.
  struct Pages {
    Value base;        ///< of the head, in the first page
    Value pitch, page; ///< bytes from token to token, and from page to page: i64
    Value table;       ///< of the entry
  };
  Value page_of(Value token) const; ///< its number, of a key that the entry has
  Pages pages(const std::string& name) const;
  /// Where a token of the entry is; of those beside what the block's rows see, where the nearest of these is.
  Value in_page(const Pages&, Value token) const;

  GpuIr& ir;
  const Attention& p;
  const AttentionTile& t;
  const GpuIr::Arguments& arguments;

private:
  void read_lengths();
  Value find_rows();
  void take_rows(Value blocks, Value number);
  Value entry_of(Value table, Value index) const;
  std::pair<Value, Value> span(const char* offsets, Value count) const;
  Value side(const char* name) const;
  Value start(const std::string& name, Type, Value first) const;

  Value head_; ///< null: the grid's
  Value entry_, queries_, keys_, first_query_, first_key_;
  Value shift_;            ///< of the mask
  Value all_;              ///< rows of the entry that this block's heads have
  Value begin_;            ///< the block's first of them
  Value is_split_, split_; ///< with splits: whether this call has them, and the block's
  Bounds first_, last_;
};

} // namespace deepgen
