// The symbols of DeepGen 0.1, for libraries and programs that were compiled with its headers: the linker
// warns, and a call is refused with words. Their structs are others, so that none of them is read.
#include "runtime/core/abi.h"

// GNU ld and gold print the text where an object refers to the symbol, and drop the section: no table of
// clang's AddressSanitizer may refer to it.
#ifdef __clang__
#define DEEPGEN_DROPPED __attribute__((no_sanitize("address")))
#else
#define DEEPGEN_DROPPED
#endif
#define DEEPGEN_OLD(result, name, parameters)                                                                \
  extern "C" result deepgen_old_##name parameters __asm__("deepgen_" #name);                                 \
  __attribute__((                                                                                            \
      used, section(".gnu.warning.deepgen_" #name))) DEEPGEN_DROPPED static const char warning_##name[] =    \
      "a library or object was made by DeepGen 0.1 and its calls will be refused: build it again";           \
  result deepgen_old_##name parameters

DEEPGEN_OLD(int, register, (const void*, uint32_t)) { return DEEPGEN_ERROR_VERSION; }
DEEPGEN_OLD(int, run_gemm, (const void*, const void*)) { return DEEPGEN_ERROR_VERSION; }
DEEPGEN_OLD(int, launch_gemm, (const void*, const void*, void*)) { return DEEPGEN_ERROR_VERSION; }
DEEPGEN_OLD(int, prepare, (const void*)) { return DEEPGEN_ERROR_VERSION; }
DEEPGEN_OLD(size_t, workspace_size, (const void*)) { return 0; }
DEEPGEN_OLD(size_t, launch_workspace_size, (const void*)) { return 0; }
DEEPGEN_OLD(const char*, selected_config, (const void*)) { return nullptr; }
DEEPGEN_OLD(const char*, launch_config, (const void*)) { return nullptr; }

// Without structs: as ever.
DEEPGEN_OLD(const char*, status_string, (int status)) {
  return deepgen_status_string(deepgen_status(status));
}
DEEPGEN_OLD(int, last_driver_error, (const char** text)) { return deepgen_last_driver_error(text); }
DEEPGEN_OLD(int, set_num_threads, (int count)) { return deepgen_set_num_threads(count); }
DEEPGEN_OLD(int, get_num_threads, (void)) { return deepgen_get_num_threads(); }
DEEPGEN_OLD(int, set_parallel_for, (deepgen_parallel_for function, void* user, int count)) {
  return deepgen_set_parallel_for(function, user, count);
}
DEEPGEN_OLD(uint32_t, cpu_level, (void)) { return deepgen_cpu_level(); }
