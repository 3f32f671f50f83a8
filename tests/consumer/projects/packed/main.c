/* The same from C: packs, calls, and is refused. */
#include <kernels.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static float a[3 * 50], b[50 * 70], d[3 * 70];
  for (int i = 0; i < 3 * 50; ++i) a[i] = 1;
  for (int i = 0; i < 50 * 70; ++i) b[i] = 2;
  const size_t bytes = deepgen_packed_b_size(kernels_down_function());
  void* packed = aligned_alloc(64, bytes);
  if (bytes != KERNELS_DOWN_BYTES_PACKED_B || !packed ||
      deepgen_pack_b(kernels_down_function(), b, 0, 0, packed, bytes) != DEEPGEN_OK)
    return 1;
  const deepgen_status status = kernels_down(a, packed, d);
  free(packed);
  if (status != DEEPGEN_OK || d[0] != 100 || d[3 * 70 - 1] != 100) return 2;
  if (deepgen_packed_b_size(kernels_plain_function()) != 0) return 3;
  puts("C is right");
  return 0;
}
