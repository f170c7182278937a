// A library that defines `_exit`, as another preloaded tool does (-DLIBRARY), and a program that ends by it.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LIBRARY
static void report(const char *text, int code) {
  if (write(1, text, strlen(text))) {
  }
  for (;;) syscall(SYS_exit_group, code);
}
void _exit(int code) { report("next _exit\n", code); }
void _Exit(int code) { report("next _exit\n", code); }
#else
void roctxMarkA(const char *);
int main(int argc, char **argv) {
  if (roctxMarkA) roctxMarkA("before the end");
  if (argc > 1 && !strcmp(argv[1], "_Exit")) _Exit(9);
  _exit(8);
}
#pragma weak roctxMarkA
#endif
