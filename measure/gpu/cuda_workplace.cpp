#include "measure/gpu/cuda_workplace.h"

#include "measure/devices/cuda_devices.h"
#include "measure/gpu/surroundings.h"
#include "measure/gpu/toolbox/cuda_parameters.h"

namespace deepgen::cuda {

OpenDevice::OpenDevice(const Device& device)
    : context(ordinal_of(device.uuid)), tools(Toolbox::make(context)), nvml(Nvml::open(device.uuid)),
      smi(open_smi(device)), reading(sizeof(ClockReading)) {
  check(driver()->cuEventCreate(&begin, 0), "creating an event");
  check(driver()->cuEventCreate(&end, 0), "creating an event");
}

} // namespace deepgen::cuda
