// Counts the allocations of a test program. For one source of it: it defines malloc.
#pragma once

#include <atomic>
#include <cstddef>

namespace {
std::atomic<long> allocations{0};
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which have their own malloc
#define COUNTS_ALLOCATIONS 1
// Every allocation of this binary passes here: operator new and C alike.
extern "C" void* __libc_malloc(size_t);
extern "C" void* malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
extern "C" void* __libc_calloc(size_t, size_t);
extern "C" void* calloc(size_t count, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif
