// What the words of cpu_dot hold, and which instruction multiplies them.
#pragma once

#include "base/problem/types.h"

#include <cstdint>

namespace deepgen {

/// What a word holds. Their numbers are in configs.
enum class DotKind : int64_t {
  f32,   ///< one number, converted; a multiply-add
  pairs, ///< two i16, converted; pmaddwd, which every level has
  bf16,  ///< two bf16 as they are; vdpbf16ps
  bytes, ///< four bytes as they are; vpdpbusd. It takes A as u8, so 128 more is packed of an i8 A
  tiles  ///< as bf16 or bytes; AMX
};

/// How a kernel of A and B multiplies.
struct Dot {
  DotKind kind;
  Type a, b;
  /// B is packed ahead of calls, in one layout for all kinds: words have bf16 and bytes as they are in
  /// memory, and each product takes them apart.
  bool packed_b = false;

  /// A is f32, and a product widens one part of B's words after the other.
  bool mixed() const { return a == Type::f32; }
  bool integer() const {
    return kind == DotKind::pairs || kind == DotKind::bytes || (tiles() && size_of(a) == 1);
  }
  bool tiles() const { return kind == DotKind::tiles; }
  int64_t group() const { ///< of K in a word
    if (mixed()) return packed_b ? 4 / size_of(b) : 1;
    if (raw()) return 4 / size_of(a);
    return kind == DotKind::f32 ? 1 : 2;
  }
  /// Words hold elements as they are in memory.
  bool raw() const { return (kind != DotKind::f32 && kind != DotKind::pairs) || splits() || mixed(); }
  /// As words of A are packed.
  Dot of_a() const { return mixed() ? Dot{kind, a, a} : *this; }
  /// A product takes words apart, of which the instruction multiplies less.
  bool splits() const {
    return packed_b && size_of(a) < 4 && a != Type::f16 && (kind == DotKind::f32 || kind == DotKind::pairs);
  }
  /// By the instruction of AVX512-BF16, which is there.
  bool rounds_bf16() const { return kind == DotKind::bf16 || (tiles() && a == Type::bf16); }
  bool shifts_a() const { return kind == DotKind::bytes && a == Type::i8; }
};

} // namespace deepgen
