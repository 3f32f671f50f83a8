#include "measure/process/seccomp_filter.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace deepgen::sandbox {
namespace {

// Whatever the arguments. The clocks and pread(2) of the stopwatch come first.
constexpr int kAllowed[] = {SYS_pread64, SYS_clock_gettime, SYS_getrusage, SYS_futex, SYS_sched_yield,
                            SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_time, SYS_clock_getres,
                            SYS_getcpu, SYS_sched_getaffinity, SYS_sched_setaffinity,
                            // memory
                            SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_membarrier,
                            // files that are open
                            SYS_read, SYS_close, SYS_lseek,
                            // signals to itself
                            SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
                            SYS_restart_syscall,
                            // threads
                            SYS_set_robust_list, SYS_rseq, SYS_gettid, SYS_getpid, SYS_exit, SYS_exit_group,
                            SYS_getrandom, SYS_sysinfo};

constexpr uint32_t low_word(int argument) {
  return uint32_t(offsetof(seccomp_data, args)) + 8 * uint32_t(argument);
}

class Filter {
public:
  explicit Filter(int answers) {
    load(offsetof(seccomp_data, arch));
    unless_equal(AUDIT_ARCH_X86_64, {refuse(EPERM)}); // int 0x80 has other numbers
    for (int number : kAllowed) on(number, {allow()});
    for (int number : {SYS_write, SYS_writev})
      on(number,
         {word(0), equal(uint32_t(answers), 1, 0), equal(STDERR_FILENO, 0, 1), allow(), refuse(EPERM)});
    on(SYS_mmap, {word(3), any_of(MAP_ANONYMOUS, 0, 1), allow(), refuse(EPERM)}); // no file's memory
    on(SYS_clone, {word(0), any_of(CLONE_THREAD, 0, 1), allow(), refuse(EPERM)}); // threads, no processes
    on(SYS_clone3, {refuse(ENOSYS)}); // its flags cannot be seen; libraries turn to clone then
    on(SYS_tgkill, {word(0), equal(uint32_t(getpid()), 0, 1), allow(), refuse(EPERM)});
    // Asking for a limit, not setting one.
    on(SYS_prlimit64, {word(2), equal(0, 0, 3), high_word(2), equal(0, 0, 1), allow(), refuse(EPERM)});
    code_.push_back(refuse(EPERM));
  }

  bool enter() const {
    sock_fprog program = {static_cast<unsigned short>(code_.size()), const_cast<sock_filter*>(code_.data())};
    // Without the flag, older kernels slow down all code of the process against speculation
    // (spec_store_bypass_disable).
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

private:
  using Part = std::vector<sock_filter>;

  static sock_filter word(int argument) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_word(argument)); }
  static sock_filter high_word(int argument) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_word(argument) + 4);
  }
  static sock_filter allow() { return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  static sock_filter refuse(int error) {
    return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | uint32_t(error));
  }
  /// How many instructions are left out then, and otherwise.
  static sock_filter equal(uint32_t value, uint8_t then, uint8_t otherwise) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise);
  }
  static sock_filter any_of(uint32_t bits, uint8_t then, uint8_t otherwise) {
    return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, then, otherwise);
  }

  void load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void unless_equal(uint32_t value, const Part& part) {
    code_.push_back(equal(value, uint8_t(part.size()), 0));
    code_.insert(code_.end(), part.begin(), part.end());
  }
  void on(int number, const Part& part) {
    load(offsetof(seccomp_data, nr));
    code_.push_back(equal(uint32_t(number), 0, uint8_t(part.size())));
    code_.insert(code_.end(), part.begin(), part.end());
  }

  std::vector<sock_filter> code_;
};

} // namespace

bool enter_seccomp(int answers) { return Filter(answers).enter(); }

} // namespace deepgen::sandbox
