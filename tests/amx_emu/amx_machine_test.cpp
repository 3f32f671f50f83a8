// The model of AMX by itself: what it decodes, what it refuses, and its bits beside those of a CPU that has
// AMX.
#include "tests/amx_emu/amx_emu.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/mman.h>

namespace deepgen::amx::amx_machine_test {
namespace {

/// Registers point to `memory`: rax to its beginning, rcx is a row of 64 bytes.
struct Bench {
  alignas(64) uint8_t config[64] = {1};
  std::array<uint8_t, 4096> memory{};
  Machine machine;
  Registers registers;

  Bench() {
    for (int i = 0; i < tile_count; ++i) set_tile(i, most_rows, most_bytes);
    registers.general[0] = uint64_t(memory.data()), registers.general[1] = 64;
    registers.general[2] = uint64_t(config);
  }
  void set_tile(int i, int rows, int bytes) {
    config[16 + 2 * i] = uint8_t(bytes), config[48 + i] = uint8_t(rows);
  }
  const char* configure() {
    Instruction x;
    x.op = Op::ldtilecfg, x.base = 2;
    return machine.step(x, registers);
  }
  const char* load(int tile) {
    Instruction x;
    x.op = Op::tileload, x.base = 0, x.index = 1, x.destination = tile;
    return machine.step(x, registers);
  }
  const char* store(int tile) {
    Instruction x;
    x.op = Op::tilestore, x.base = 0, x.index = 1, x.destination = tile;
    return machine.step(x, registers);
  }
  const char* multiply(Op op, int sums, int left, int right) {
    Instruction x;
    x.op = op, x.destination = sums, x.left = left, x.right = right;
    return machine.step(x, registers);
  }
};

TEST(AmxDecode, KnowsEveryInstruction) {
  struct Known {
    std::vector<uint8_t> bytes; // as llvm-mc writes them
    Op op;
    int length, destination, left, right, base, index, shift;
    int64_t displacement;
  };
  const Known all[] = {
      {{0xc4, 0xe2, 0x78, 0x49, 0x07}, Op::ldtilecfg, 5, -1, -1, -1, 7, -1, 0, 0},
      {{0xc4, 0xe2, 0x78, 0x49, 0x44, 0x24, 0xc0}, Op::ldtilecfg, 7, -1, -1, -1, 4, -1, 0, -64},
      {{0xc4, 0xc2, 0x79, 0x49, 0x45, 0x08}, Op::sttilecfg, 6, -1, -1, -1, 13, -1, 0, 8},
      {{0xc4, 0xe2, 0x78, 0x49, 0xc0}, Op::tilerelease, 5, -1, -1, -1, -1, -1, 0, 0},
      {{0xc4, 0xe2, 0x7b, 0x49, 0xe8}, Op::tilezero, 5, 5, -1, -1, -1, -1, 0, 0},
      {{0xc4, 0xe2, 0x7b, 0x4b, 0x34, 0x0f}, Op::tileload, 6, 6, -1, -1, 7, 1, 0, 0},
      {{0xc4, 0x82, 0x7b, 0x4b, 0x4c, 0x77, 0x40}, Op::tileload, 7, 1, -1, -1, 15, 14, 1, 64},
      {{0xc4, 0xe2, 0x79, 0x4b, 0xbc, 0x08, 0, 4, 0, 0}, Op::tileload_t1, 10, 7, -1, -1, 0, 1, 0, 1024},
      {{0xc4, 0xe2, 0x7a, 0x4b, 0x14, 0x0f}, Op::tilestore, 6, 2, -1, -1, 7, 1, 0, 0},
      {{0xc4, 0xe2, 0x4a, 0x5c, 0xcc}, Op::bf16, 5, 1, 4, 6, -1, -1, 0, 0},
      {{0xc4, 0xe2, 0x43, 0x5e, 0xdd}, Op::bytes_ss, 5, 3, 5, 7, -1, -1, 0, 0},
      {{0xc4, 0xe2, 0x42, 0x5e, 0xdd}, Op::bytes_su, 5, 3, 5, 7, -1, -1, 0, 0},
      {{0xc4, 0xe2, 0x41, 0x5e, 0xdd}, Op::bytes_us, 5, 3, 5, 7, -1, -1, 0, 0},
      {{0xc4, 0xe2, 0x40, 0x5e, 0xdd}, Op::bytes_uu, 5, 3, 5, 7, -1, -1, 0, 0},
  };
  for (const Known& known : all) {
    std::vector<uint8_t> bytes = known.bytes;
    bytes.resize(16);
    const std::optional<Instruction> x = decode(bytes.data());
    ASSERT_TRUE(x) << int(known.op);
    EXPECT_EQ(x->op, known.op);
    EXPECT_EQ(x->length, known.length) << int(known.op);
    EXPECT_EQ(x->destination, known.destination) << int(known.op);
    EXPECT_EQ(x->left, known.left);
    EXPECT_EQ(x->right, known.right);
    EXPECT_EQ(x->base, known.base);
    EXPECT_EQ(x->index, known.index);
    EXPECT_EQ(x->shift, known.shift);
    EXPECT_EQ(x->displacement, known.displacement);
    const bool configures = known.op <= Op::tilerelease;
    EXPECT_EQ(mark(bytes.data()), configures);
    EXPECT_EQ(decode(bytes.data()).has_value(), true) << "marked, it is what it was";
  }
}

TEST(AmxDecode, RefusesOthers) {
  const std::vector<uint8_t> others[] = {
      {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x00}, // EVEX
      {0xc4, 0xe2, 0xfb, 0x4b, 0x34, 0x0f}, // VEX.W
      {0xc4, 0xe2, 0x7f, 0x4b, 0x34, 0x0f}, // VEX.L, of a load
      {0xc4, 0xe2, 0x7b, 0x4b, 0x37},       // a load without SIB
      {0xc4, 0xe1, 0x7b, 0x4b, 0x34, 0x0f}, // another map
      {0xc4, 0xe2, 0x78, 0x49, 0x0f},       // a field that must be 0
      {0xc4, 0xe2, 0x4b, 0x4b, 0x34, 0x0f}, // a third operand of a load
  };
  for (std::vector<uint8_t> bytes : others) {
    bytes.resize(16);
    EXPECT_FALSE(decode(bytes.data())) << int(bytes[2]) << ' ' << int(bytes[4]);
  }
}

TEST(AmxMachine, RefusesWrongPalettes) {
  Bench good;
  EXPECT_EQ(good.configure(), nullptr);
  const auto refused = [](auto change) {
    Bench x;
    change(x);
    EXPECT_NE(x.configure(), nullptr);
    EXPECT_FALSE(x.machine.configured());
    EXPECT_EQ(x.machine.count(Op::ldtilecfg), 0);
  };
  refused([](Bench& x) { x.config[0] = 2; });
  refused([](Bench& x) { x.config[9] = 1; });
  refused([](Bench& x) { x.config[40] = 1; });
  refused([](Bench& x) { x.config[60] = 1; });
  refused([](Bench& x) { x.set_tile(3, 17, 64); });
  refused([](Bench& x) { x.set_tile(3, 16, 68); });
  refused([](Bench& x) { x.set_tile(3, 0, 64); });
  refused([](Bench& x) { x.set_tile(3, 16, 0); });
}

TEST(AmxMachine, RefusesWrongProducts) {
  const auto refused = [](auto change, int sums, int left, int right) {
    Bench x;
    change(x);
    ASSERT_EQ(x.configure(), nullptr);
    EXPECT_NE(x.multiply(Op::bf16, sums, left, right), nullptr);
    EXPECT_EQ(x.machine.products(), 0);
  };
  const auto nothing = [](Bench&) {};
  refused(nothing, 0, 0, 6);
  refused(nothing, 0, 4, 0);
  refused(nothing, 0, 4, 4);
  refused([](Bench& x) { x.set_tile(4, 0, 0); }, 0, 4, 6);   // not configured
  refused([](Bench& x) { x.set_tile(6, 8, 64); }, 0, 4, 6);  // fewer rows than the left one has words
  refused([](Bench& x) { x.set_tile(4, 8, 64); }, 0, 4, 6);  // fewer rows than the sums
  refused([](Bench& x) { x.set_tile(6, 16, 32); }, 0, 4, 6); // narrower than the sums
  refused([](Bench& x) { x.set_tile(0, 16, 62), x.set_tile(6, 16, 62); }, 0, 4, 6);
  Bench unconfigured;
  EXPECT_NE(unconfigured.multiply(Op::bf16, 0, 4, 6), nullptr);
}

TEST(AmxMachine, RefusesMemoryThatIsNotThere) {
  Bench x;
  ASSERT_EQ(x.configure(), nullptr);
  EXPECT_EQ(x.load(0), nullptr);
  EXPECT_EQ(x.store(0), nullptr);
  char* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(munmap(pages + 4096, 4096), 0);
  x.registers.general[0] = uint64_t(pages) + 4096 - 15 * 64 - 63; // its last byte is beyond
  EXPECT_NE(x.load(0), nullptr);
  x.registers.general[0] -= 1;
  EXPECT_EQ(x.load(0), nullptr);
  EXPECT_NE(x.store(0), nullptr) << "the page may only be read";
  munmap(pages, 4096);
}

TEST(AmxMachine, TilesOfPartRowsReadNothingElse) {
  Bench x;
  x.set_tile(0, 3, 20);
  ASSERT_EQ(x.configure(), nullptr);
  x.memory.fill(7);
  ASSERT_EQ(x.load(0), nullptr);
  for (size_t r = 0; r < most_rows; ++r)
    for (size_t i = 0; i < most_bytes; ++i) EXPECT_EQ(x.machine.tile(0)[r][i], r < 3 && i < 20 ? 7 : 0);
}

TEST(AmxMachine, SumsBytesExactly) {
  Bench x;
  ASSERT_EQ(x.configure(), nullptr);
  x.memory.fill(0x80);
  ASSERT_EQ(x.load(4), nullptr);
  ASSERT_EQ(x.load(6), nullptr);
  const auto first = [&] {
    int32_t sum;
    std::memcpy(&sum, x.machine.tile(0)[0].data(), 4);
    return sum;
  };
  ASSERT_EQ(x.multiply(Op::bytes_ss, 0, 4, 6), nullptr);
  EXPECT_EQ(first(), 64 * 128 * 128);
  ASSERT_EQ(x.multiply(Op::bytes_us, 0, 4, 6), nullptr);
  EXPECT_EQ(first(), 0);
  ASSERT_EQ(x.multiply(Op::bytes_su, 0, 4, 6), nullptr);
  EXPECT_EQ(first(), -64 * 128 * 128);
  ASSERT_EQ(x.multiply(Op::bytes_uu, 0, 4, 6), nullptr);
  EXPECT_EQ(first(), 0);
  EXPECT_EQ(x.machine.products(), 4);
}

} // namespace
} // namespace deepgen::amx::amx_machine_test
