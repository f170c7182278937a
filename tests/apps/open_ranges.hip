// Ends inside ROC-TX ranges: two that it has pushed and one that it has started. A third pushed range is closed before.
//
//   open_ranges [return|exit|_exit|kill]
#include "count.hpp"

#include <csignal>
#include <unistd.h>

extern "C" {
__attribute__((weak)) int roctxRangePushA(const char*);
__attribute__((weak)) int roctxRangePop();
__attribute__((weak)) uint64_t roctxRangeStartA(const char*);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "return";
  int devices = 0;
  OK(hipGetDeviceCount, &devices);
  if (!roctxRangePushA) return 0;
  roctxRangePushA("training");
  roctxRangePushA("step 1");
  roctxRangePop();
  roctxRangePushA("step 2 of a program that ends here");
  roctxRangeStartA("loading");
  OK(hipDeviceSynchronize);
  app::finish();
  if (!std::strcmp(how, "kill")) ::kill(::getpid(), SIGKILL);
  if (!std::strcmp(how, "exit")) std::exit(3);
  if (!std::strcmp(how, "_exit")) ::_exit(4);
  return 0;
}
