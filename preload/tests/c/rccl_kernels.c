// A program that launches kernels by HIP and reduces by RCCL and, as a library with -DLIBRARY, an RCCL that
// dispatches its kernels from a separate thread, outside any call of HIP: a stand-in for the real library's proxy thread.
#ifdef LIBRARY
#define hipMemcpy copy_of_rccl
#define hipLaunchKernel kernel_of_rccl
#include "hip_over_hsa.c"
#include <pthread.h>
#include <semaphore.h>

static sem_t asked, answered;
static int result;

static void *proxy(void *nothing) {
  for (;;) {
    while (sem_wait(&asked));
    result = kernel_of_rccl(0, 0, 0, 0, 0, 0, 0, 0);
    sem_post(&answered);
  }
  return nothing;
}

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm, void *stream) {
  static pthread_t thread;
  if (!thread) {
    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    pthread_create(&thread, 0, proxy, 0);
  }
  sem_post(&asked);
  while (sem_wait(&answered));
  return result;
}
#else
#include <stddef.h>
#include <stdio.h>
int hipLaunchKernel(const void *f, ...);
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm, void *stream);

int main(void) {
  int wrong = 0;
  for (int i = 0; i < 6; i++) {
    wrong += hipLaunchKernel(main, 1UL, 1UL, 1UL, 1UL, (void *)0, 0UL, (void *)0);
    wrong += ncclAllReduce(0, 0, 9, 7, 0, 0, 0);
  }
  printf("wrong %d\n", wrong);
  return 0;
}
#endif
