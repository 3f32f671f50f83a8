#include "measure/cpu/arms.h"

#include <memory>

namespace deepgen {

Arm kernel_arm(const std::string& name, const Kernel& kernel, const TimingOperands& operands) {
  return {name, [&kernel, &operands]() -> std::function<void()> {
            auto loaded = std::make_shared<LoadedKernel>(kernel);
            operands.touch();
            const SlotValues values = operands.values();
            return [loaded, block = loaded->arguments(values, loaded->full_range(values))] {
              loaded->call(block);
            };
          }};
}

} // namespace deepgen
