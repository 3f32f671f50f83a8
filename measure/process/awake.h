// The clock of budgets and time limits: it stands still while this program is stopped.
#pragma once

namespace deepgen::awake {

/// In the process that starts workers: from here on workers' clocks go on. Call before fork(2).
void begin();
/// In that process, while a worker runs: at least once a Patience::slice. What a gap is longer than two of
/// them, the program was stopped (Ctrl-Z), and the worker with it.
void tick();
/// In a worker: its clock stands still when no tick comes.
void follow();

double seconds();

} // namespace deepgen::awake
