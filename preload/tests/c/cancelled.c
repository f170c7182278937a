// Threads that are cancelled in the middle of a call of HIP and, as a library with -DLIBRARY, the HIP that waits there:
// a stand-in for a call that blocks in the driver.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
#ifdef LIBRARY
sem_t inside;
int hipGetDevice(int *device) { return *device = 0; }
int hipStreamSynchronize(void *stream) {
  sem_post(&inside);
  for (;;) pause();
  return stream != 0;
}
#else
extern sem_t inside;
int hipGetDevice(int *), hipStreamSynchronize(void *);

static int cleaned;
static void clean(void *nothing) { (void)nothing, cleaned++; }

static void *thread(void *nothing) {
  int device;
  hipGetDevice(&device);
  pthread_cleanup_push(clean, 0);
  hipStreamSynchronize(0);
  pthread_cleanup_pop(0);
  return nothing;
}

int main(void) {
  int cancelled = 0, device;
  sem_init(&inside, 0, 0);
  for (int i = 0; i < 30; i++) {
    pthread_t one;
    void *result;
    pthread_create(&one, 0, thread, 0);
    while (sem_wait(&inside));
    pthread_cancel(one);
    pthread_join(one, &result);
    cancelled += result == PTHREAD_CANCELED;
    hipGetDevice(&device);
  }
  printf("%d cancelled, %d cleaned\n", cancelled, cleaned);
  return 0;
}
#endif
