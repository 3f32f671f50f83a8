// A limit on waiting for another process.
#pragma once

namespace deepgen {

/// Counts only time in which this process itself was running or asleep of its own will. Whoever stops a whole
/// build (Ctrl-Z) stops the waiting process as well as the one that is waited for, and the latter is not to
/// blame for it.
class Patience {
public:
  /// Waits are cut into pieces of this; a longer gap between two looks is time in which this process was
  /// stopped.
  static constexpr double slice = 0.1;

  explicit Patience(double seconds);
  void restart(double seconds);
  /// Looks at the clock: call it at least once a slice.
  double left();
  /// For poll(2): left(), but no longer than a slice; at least 1.
  int milliseconds();

private:
  double left_, last_;
};

} // namespace deepgen
