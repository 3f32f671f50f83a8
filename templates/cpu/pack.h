// Packing: copies a block of A or B into panels that a micro-kernel reads with unit stride.
#pragma once

#include "templates/ir/ir_builder.h"

namespace deepgen {

/// A panel holds, for every k of a block, `width` consecutive values of one operand (rows of A or columns of
/// B), of which the first `valid` exist; the rest is zero. Panel element (k, w) lies at k * pitch() + w. The
/// source holds the operand with k along rows (`k_major`: element (k, w) at k * ld + w) or along columns
/// (element (k, w) at w * ld + k, transposed in registers on the way).
///
/// Panels `of_vectors` are for vectors along k: element (k, w) lies at (k / lanes * width + w) * lanes + k %
/// lanes of a source with k along columns. Behind the last k are zeros, and nothing is written of what does
/// not exist.
struct PanelShape {
  int64_t width, valid;
  bool k_major;
  int64_t row = 0; ///< from one k to the next; 0: width. More where the panel is one of several side by side
  /// How many exist is known at run time, at least one: the function takes that as a further argument. What
  /// does not exist is any of what does, or zero.
  bool ragged = false;
  bool of_vectors = false;

  int64_t pitch() const { return row ? row : width; }
};

/// Defines (once) and names a function (source, ld, destination, kc[, valid]) that packs one panel of kc
/// values of k.
std::string pack_function(Ir&, const PanelShape&);

/// Transposes a square of `lanes` vectors in log2(lanes) steps of shuffles.
Values transpose(Ir&, Values rows);

} // namespace deepgen
