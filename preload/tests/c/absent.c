// Looks whether HIP is loaded, as some libraries do, and asks it for devices.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  int (*count)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "hipGetDeviceCount");
  const char *(*text)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "hipGetErrorString");
  int n = -1;
  printf("%d %s\n", count ? count(&n) : 100, text && text(1) ? "text" : "none");
  return 0;
}
