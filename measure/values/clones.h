// DEEPGEN_CLONES before a function: one object file serves every x86-64, and the loader picks the clone for
// the CPU.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define DEEPGEN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DEEPGEN_CLONES
#endif
