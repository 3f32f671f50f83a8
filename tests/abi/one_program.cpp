// Two runtimes of different versions, and objects of DeepGen 0.1, linked into one program.
#include <cstdio>
#include <cstring>
#include <initializer_list>

extern "C" {
int library_run_1(const float*, float*);
int library_run_2(const float*, float*);
int library_run_3(const float*, float*);
int library_threads_2(int);
int library_threads_3(int);
const char* library_words_1(int);
}

static bool computes(int (*run)(const float*, float*), float factor) {
  float a[64], d[64];
  for (int i = 0; i < 64; ++i) a[i] = float(i);
  if (run(a, d) != 0) return false;
  for (int i = 0; i < 64; ++i)
    if (d[i] != factor * float(i)) return false;
  return true;
}

int main() {
  for (int threads : {1, 4})
    if (library_threads_2(threads) || library_threads_3(threads) || !computes(library_run_2, 2) ||
        !computes(library_run_3, 3))
      return std::puts("wrong"), 1;
  float a[64] = {}, d[64];
  const int status = library_run_1(a, d);
  std::puts(library_words_1(status));
  return status != 0 && std::strstr(library_words_1(status), "different versions") ? 0 : 2;
}
