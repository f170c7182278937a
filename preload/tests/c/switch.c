// Calls while the viewer and the program switch the recording on and off.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int hipGetDevice(int *);
int hipProfilerStart(void);
int hipProfilerStop(void);

static void calls(int count) {
  for (int device; count > 0; count--)
    if (hipGetDevice(&device) || device != 7) exit(1);
}

int main(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/control", getenv("ROCTOP_SESSION"));
  int fd = open(path, O_RDWR);
  volatile uint64_t *control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || control == MAP_FAILED) return 2;
  control[0] = 0, calls(3);
  control[0] = 1, calls(5);
  control[0] = 0, calls(7);
  control[0] = 1, calls(11);
  hipProfilerStop(), calls(13);
  hipProfilerStart(), calls(17);
  return 0;
}
