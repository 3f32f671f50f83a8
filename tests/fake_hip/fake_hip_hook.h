/* Who runs the kernels that are launched on the fake HIP. A library that FAKE_HIP_HOOK names exports
   fake_hip_run; a program that links the fake one may set fake_hip::state().hook instead. What the
   description points to lasts as long as the call. C ABI. */
#ifndef FAKE_HIP_HOOK_H
#define FAKE_HIP_HOOK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fake_hip_launch {
  const char* device; /* target id of the device: "gfx942:sramecc+:xnack-" */
  const void* code;   /* the code object, as it was loaded */
  size_t code_bytes;
  const char* kernel;      /* name of the entry, without ".kd" */
  uint32_t grid[3];        /* in workgroups */
  uint32_t block[3];       /* in threads */
  uint32_t dynamic_shared; /* bytes of LDS behind those that the code object asks for */
  const void* kernarg;     /* the argument segment, laid out as the code object's metadata says */
  size_t kernarg_bytes;
  /* The allocation in which an address of device memory lies, which is host memory: its first byte and its
     size. 0 when it is in none. */
  int (*allocation_of)(const void* address, void** begin, size_t* bytes);
} fake_hip_launch;

/* Runs the kernel to its end. Returns a hipError_t: 0, or what the launch, or the synchronisation behind it,
 * is to return. */
typedef int (*fake_hip_run_function)(const fake_hip_launch* launch);
int fake_hip_run(const fake_hip_launch* launch);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
