// Fault: what a kernel did wrong. The launch adds the place.
#pragma once

#include <stdexcept>
#include <string>

namespace deepgen::ptx_sim {

class Fault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace deepgen::ptx_sim
