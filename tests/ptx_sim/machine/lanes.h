// Lanes: instructions that compute each lane's result from its operands alone.
#pragma once

#include "tests/ptx_sim/machine/warp.h"

namespace deepgen::ptx_sim {

template <auto F>
void unary(Warp& w, const Instruction& in) {
  const uint64_t* x = w.in(in.operands[1]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l) out[l] = F(x[l]);
  w.put(in.operands[0], out);
}

template <auto F>
void binary(Warp& w, const Instruction& in) {
  const uint64_t *x = w.in(in.operands[1]), *y = w.in(in.operands[2]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l) out[l] = F(x[l], y[l]);
  w.put(in.operands[0], out);
}

template <auto F>
void ternary(Warp& w, const Instruction& in) {
  const uint64_t *x = w.in(in.operands[1]), *y = w.in(in.operands[2]), *z = w.in(in.operands[3]);
  uint64_t out[32];
  for (int l = 0; l < 32; ++l) out[l] = F(x[l], y[l], z[l]);
  w.put(in.operands[0], out);
}

/// An opcode and what runs it.
struct Entry {
  const char* opcode;
  Run run;
};

template <size_t N>
bool find_entry(const Entry (&table)[N], const std::string& opcode, Instruction& in) {
  for (const Entry& e : table)
    if (opcode == e.opcode) {
      in.run = e.run;
      return true;
    }
  return false;
}

} // namespace deepgen::ptx_sim
