// Which calls tell whether the bits of a row depend on M, on its place or on other rows.
#pragma once

#include "base/problem/gemm.h"

#include <string>
#include <vector>

namespace deepgen {

/// Calls of one N, K and batch: they share all operands, of which a call of fewer rows has the first ones.
/// The rows at `places` are equal, and so must those of D be, in the first entry of the batch, bit by bit.
struct InvariantCalls {
  std::vector<Sizes> calls;    ///< ascending by M
  std::vector<int64_t> places; ///< ascending, from 0 on; a call has those below its M
};

/// None of a call has more operations than `most_flops`: empty where every call has. Not of K 0.
std::vector<InvariantCalls> invariant_calls(const Gemm&, double most_flops);

/// Copies the elements of row 0 to the rows at `places`, of a matrix of `bytes` an element whose rows and
/// columns are so many bytes apart.
void repeat_row(char* matrix, const std::vector<int64_t>& places, int64_t columns, int64_t bytes,
                int64_t row_pitch, int64_t column_pitch);

/// The rows of D that calls of one InvariantCalls gave: equal to the first that was added, or words for the
/// difference.
class EqualRows {
public:
  /// `what` names the call, and lives on. Empty when its bytes are those of the first.
  std::string add(const std::string& what, const Sizes& call, int64_t place, const char* row, int64_t bytes,
                  int64_t element);
  /// Begins with other calls, whose rows are compared with each other alone.
  void next();
  /// Of the first row of each: SHA-256, its first half.
  std::string hash() const;

private:
  std::string all_, first_, first_name_;
};

} // namespace deepgen
