// Operands at the edge of what may be touched, and operands that come when they are touched.
#include "process.h"

#include <atomic>
#include <csignal>
#include <sys/mman.h>

namespace {

constexpr size_t kPage = 4096;

/// `bytes` of memory with a page in front and one behind that no one may touch.
class Guarded {
public:
  Guarded(size_t bytes, bool at_the_end) : pages_((bytes + kPage - 1) / kPage * kPage) {
    map_ = static_cast<char*>(
        mmap(nullptr, pages_ + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(map_ != MAP_FAILED);
    REQUIRE(mprotect(map_, kPage, PROT_NONE) == 0 && mprotect(map_ + kPage + pages_, kPage, PROT_NONE) == 0);
    data_ = map_ + kPage + (at_the_end ? pages_ - bytes : 0);
  }
  ~Guarded() { munmap(map_, pages_ + 2 * kPage); }
  Guarded(const Guarded&) = delete;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

private:
  size_t pages_;
  char *map_, *data_;
};

template <typename Sizes, typename T, typename Run>
void run_guarded(bool at_the_end, size_t most_extra, Run run) {
  Guarded a(Sizes::bytes_a, at_the_end), b(Sizes::bytes_b, at_the_end), d(Sizes::bytes_d, at_the_end),
      extra(most_extra, at_the_end), residual(Sizes::bytes_d, at_the_end);
  for (size_t i = 0; i < Sizes::bytes_a / sizeof(T); ++i) a.template as<T>()[i] = T(i % 7);
  for (size_t i = 0; i < Sizes::bytes_b / sizeof(T); ++i) b.template as<T>()[i] = T(i % 5);
  for (int threads : {1, 2, 3, 4, 7}) {
    REQUIRE(deepgen_set_num_threads(threads) == DEEPGEN_OK);
    REQUIRE(run(a.template as<T>(), b.template as<T>(), extra.template as<T>(), residual.template as<T>(),
                d.template as<T>()) == DEEPGEN_OK);
  }
  REQUIRE(deepgen_set_num_threads(4) == DEEPGEN_OK);
}

char* lazy = nullptr;
size_t lazy_bytes = 0;
std::atomic<int> faults{0};

void bring(int signal, siginfo_t* info, void*) {
  const auto offset = size_t(static_cast<char*>(info->si_addr) - lazy);
  if (offset >= lazy_bytes || mprotect(lazy + offset / kPage * kPage, kPage, PROT_READ | PROT_WRITE) != 0)
    std::signal(signal, SIG_DFL);
  faults++;
}

} // namespace

void process::guard_pages() {
  for (bool at_the_end : {false, true}) {
    run_guarded<kernels::product_sizes, float>(
        at_the_end, 1,
        [](float* a, float* b, float*, float*, float* d) { return kernels::product(a, b, d); });
    run_guarded<kernels::wide_sizes, double>(
        at_the_end, 1,
        [](double* a, double* b, double*, double*, double* d) { return kernels::wide(a, b, d); });
    run_guarded<kernels::narrow_sizes, float>(at_the_end, kernels::narrow_sizes::bytes_bias,
                                              [](float* a, float* b, float* bias, float* residual, float* d) {
                                                return kernels::narrow(a, b, bias, residual, d);
                                              });
  }
}

/// A handler that resolves faults works with four threads as with one.
void process::lazy_operands() {
  struct sigaction action = {}, old;
  action.sa_sigaction = bring, action.sa_flags = SA_SIGINFO | SA_NODEFER;
  REQUIRE(sigaction(SIGSEGV, &action, &old) == 0);
  Product product;
  for (int i = 0; i < 20; ++i) {
    lazy_bytes = (Sizes::bytes_a + kPage - 1) / kPage * kPage;
    lazy = static_cast<char*>(
        mmap(nullptr, lazy_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(lazy != MAP_FAILED);
    std::memcpy(lazy, product.a.data(), Sizes::bytes_a);
    REQUIRE(mprotect(lazy, lazy_bytes, PROT_NONE) == 0);
    faults = 0;
    REQUIRE(kernels::product(reinterpret_cast<float*>(lazy), product.b.data(), product.d.data()) ==
            DEEPGEN_OK);
    REQUIRE(product.is_right());
    REQUIRE(faults >= int(lazy_bytes / kPage));
    munmap(lazy, lazy_bytes);
  }
  sigaction(SIGSEGV, &old, nullptr);
}
