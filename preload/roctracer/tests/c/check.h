/* Checks for the test programs. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
      fflush(stdout);                                                   \
      _Exit(1);                                                         \
    }                                                                   \
  } while (0)
#define GIVES(status, call) CHECK((call) == ROCTRACER_STATUS_##status)

struct test {
  const char* name;
  void (*body)(void);
};

/* Runs the named test. */
static inline int run(const struct test* tests, int count, int argc, char** argv) {
  for (int i = 0; i < count; i++) {
    if (argc == 2 && strcmp(argv[1], tests[i].name) == 0) {
      tests[i].body();
      printf("ok\n");
      return 0;
    }
  }
  printf("no such test\n");
  return 2;
}

#endif
