// DeviceError: a call to a device failed, whoever made it.
#pragma once

#include <stdexcept>

namespace deepgen {

class DeviceError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
  /// Throws HostFault where the cause is the host's, so that the error says nothing about a candidate.
  virtual void check_host() const = 0;
};

} // namespace deepgen
