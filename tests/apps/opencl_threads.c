// OpenCL by several threads, each with a separate queue: copies from pageable memory, kernels, or both in turn.
//
//   opencl_threads [THREADS=3] [TIMES=500] [w|k|wk=w] [BYTES=262144]
//
// Prints the milliseconds that the threads took on stderr, and checks what arrived. Exit code: 77 where there is no OpenCL.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// OpenCL's own declarations, as far as they are needed: no headers have to be installed.
typedef struct object *handle;
static int (*get_platforms)(uint32_t, handle *, uint32_t *);
static int (*get_devices)(handle, uint64_t, uint32_t, handle *, uint32_t *);
static handle (*create_context)(const intptr_t *, uint32_t, const handle *, void *, void *, int *);
static handle (*create_queue)(handle, handle, uint64_t, int *);
static handle (*create_buffer)(handle, uint64_t, size_t, void *, int *);
static handle (*create_program)(handle, uint32_t, const char **, const size_t *, int *);
static int (*build_program)(handle, uint32_t, const handle *, const char *, void *, void *);
static handle (*create_kernel)(handle, const char *, int *);
static int (*set_argument)(handle, uint32_t, size_t, const void *);
static int (*enqueue_kernel)(handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const handle *,
                             handle *);
static int (*enqueue_write)(handle, handle, uint32_t, size_t, size_t, const void *, uint32_t, const handle *, handle *);
static int (*enqueue_read)(handle, handle, uint32_t, size_t, size_t, void *, uint32_t, const handle *, handle *);
static int (*finish)(handle);
enum { GPU = 4, READ_WRITE = 1 };

static const char *SOURCE = "kernel void touch(global int *a) { a[get_global_id(0)] += 0; }";
static handle context, device, program;
static int times = 500;
static size_t bytes = 256 << 10;
static const char *what = "w";
static pthread_barrier_t ready;

static void check(int status, const char *call) {
  if (status == 0) return;
  fprintf(stderr, "opencl_threads: %s: error %d\n", call, status);
  exit(1);
}

static void load(void) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
  struct {
    void *to;
    const char *name;
  } all[] = {
      {&get_platforms, "clGetPlatformIDs"},   {&get_devices, "clGetDeviceIDs"},
      {&create_context, "clCreateContext"},   {&create_queue, "clCreateCommandQueue"},
      {&create_buffer, "clCreateBuffer"},     {&create_program, "clCreateProgramWithSource"},
      {&build_program, "clBuildProgram"},     {&create_kernel, "clCreateKernel"},
      {&set_argument, "clSetKernelArg"},      {&enqueue_kernel, "clEnqueueNDRangeKernel"},
      {&enqueue_write, "clEnqueueWriteBuffer"}, {&enqueue_read, "clEnqueueReadBuffer"},
      {&finish, "clFinish"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *function = library ? dlsym(library, all[i].name) : NULL;
    if (!function) {
      fprintf(stderr, "opencl_threads: no %s: %s\n", all[i].name, dlerror());
      exit(77);
    }
    *(void **)all[i].to = function;
  }
}

static void *run(void *argument) {
  char *from = malloc(bytes), *back = malloc(bytes);
  memset(from, 1 + (int)(intptr_t)argument, bytes);
  int status = 0;
  handle queue = create_queue(context, device, 0, &status);
  check(status, "clCreateCommandQueue");
  handle buffer = create_buffer(context, READ_WRITE, bytes, NULL, &status);
  check(status, "clCreateBuffer");
  handle kernel = NULL;
  if (program) {
    kernel = create_kernel(program, "touch", &status);
    check(status, "clCreateKernel");
    check(set_argument(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
  }
  size_t items = bytes / sizeof(int);
  // Making queues takes longer than the work: the clock starts when all are made.
  pthread_barrier_wait(&ready);
  for (int i = 0; i < times; i++) {
    if (strchr(what, 'w')) check(enqueue_write(queue, buffer, 0, 0, bytes, from, 0, NULL, NULL), "clEnqueueWriteBuffer");
    if (kernel) check(enqueue_kernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
  }
  check(finish(queue), "clFinish");
  if (strchr(what, 'w')) {
    check(enqueue_read(queue, buffer, 1, 0, bytes, back, 0, NULL, NULL), "clEnqueueReadBuffer");
    if (memcmp(from, back, bytes)) {
      fprintf(stderr, "opencl_threads: other bytes came back\n");
      exit(1);
    }
  }
  return NULL;
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1e3 + at.tv_nsec / 1e6;
}

int main(int count, char **arguments) {
  int threads = count > 1 ? atoi(arguments[1]) : 3;
  if (count > 2) times = atoi(arguments[2]);
  if (count > 3) what = arguments[3];
  if (count > 4) bytes = strtoul(arguments[4], NULL, 0);
  load();
  handle platform = NULL;
  if (get_platforms(1, &platform, NULL) || get_devices(platform, GPU, 1, &device, NULL)) {
    fprintf(stderr, "opencl_threads: no OpenCL device\n");
    return 77;
  }
  int status = 0;
  context = create_context(NULL, 1, &device, NULL, NULL, &status);
  check(status, "clCreateContext");
  if (strchr(what, 'k')) {
    program = create_program(context, 1, &SOURCE, NULL, &status);
    check(status, "clCreateProgramWithSource");
    check(build_program(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  }
  pthread_t all[threads];
  pthread_barrier_init(&ready, NULL, threads + 1);
  for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, run, (void *)(intptr_t)i);
  pthread_barrier_wait(&ready);
  double begin = now();
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  fprintf(stderr, "threads took %.1f ms\n", now() - begin);
}
