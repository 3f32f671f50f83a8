// What a fake driver recorded of a launch, read as values; and addresses that nothing lies at.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

template <typename T>
T as(const std::string& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

inline void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }
