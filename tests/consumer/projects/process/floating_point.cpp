// Equal bits for every number of threads, whatever the caller's rounding and handling of subnormals.
#include "process.h"

#include <xmmintrin.h>

void process::floating_point() {
  constexpr unsigned modes[] = {0,      0x8000, 0x40,  0x8040,
                                0x2000, 0x4000, 0x6000}; // FTZ, DAZ, both, three ways to round
  Product product(1.1e-39f);                             // products and sums are subnormal
  std::vector<std::vector<float>> results;
  const unsigned before = _mm_getcsr();
  for (unsigned mode : modes) {
    _mm_setcsr(0x1f80 | mode);
    REQUIRE(deepgen_set_num_threads(1) == DEEPGEN_OK);
    product.run();
    results.push_back(product.d);
    REQUIRE(deepgen_set_num_threads(4) == DEEPGEN_OK);
    for (int i = 0; i < 200; ++i) {
      product.run();
      REQUIRE(equal_bits(product.d, results.back()));
    }
    REQUIRE((_mm_getcsr() & ~0x3fu) == (0x1f80 | mode));
  }
  _mm_setcsr(before);
  REQUIRE(!equal_bits(results[0], results[2])); // the data do tell the modes apart
}
