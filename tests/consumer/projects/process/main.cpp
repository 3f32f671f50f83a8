#include "process.h"

#include <thread>

namespace {

/// Before main(), and perhaps before the library's own initializers.
struct Early {
  process::Product product;
  Early() { product.run(); }
} early;

struct CallsAtTheEnd {
  process::Product product;
  ~CallsAtTheEnd() {
    product.run();
    REQUIRE(product.is_right());
  }
};
CallsAtTheEnd at_exit;

void on_own_threads(void*, int count, deepgen_task task, void* context) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([=]() CALLS_WHAT_CFI_DOES_NOT_KNOW { task(context, i); });
  for (std::thread& t : threads) t.join();
}

} // namespace

void process::static_constructors() { REQUIRE(early.product.is_right()); }

void process::thread_destructors() {
  for (int i = 0; i < 50; ++i)
    std::thread([] {
      thread_local CallsAtTheEnd object;
      object.product.run();
    }).join();
}

void process::hook() {
  REQUIRE(deepgen_set_parallel_for(on_own_threads, nullptr, 4) == DEEPGEN_OK);
  Product product;
  product.run();
  REQUIRE(product.is_right());
  REQUIRE(deepgen_set_parallel_for(nullptr, nullptr, 0) == DEEPGEN_OK);
}

int main() {
  REQUIRE(deepgen_set_num_threads(4) == DEEPGEN_OK);
  const struct {
    const char* name;
    void (*run)();
  } attacks[] = {{"static constructors", process::static_constructors},
                 {"thread destructors", process::thread_destructors},
                 {"forks", process::forks},
                 {"signal handlers", process::signal_handlers},
                 {"floating point", process::floating_point},
                 {"guard pages", process::guard_pages},
                 {"lazy operands", process::lazy_operands},
                 {"plugins", process::plugins},
                 {"hook", process::hook}};
  for (const auto& attack : attacks) {
    std::printf("%s\n", attack.name);
    std::fflush(stdout);
    attack.run();
  }
  std::printf("all held\n");
}
