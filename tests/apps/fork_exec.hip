// Stresses processes: a fork before the first HIP call, a child that execs a HIP program (itself), a child that leaves
// by _exit with work in flight, and system().
//
//   fork_exec [--background]
//
// Each process that uses HIP makes its own number of launches: the first fork 10, the exec'd one 20, the _exit one 30,
// the parent 40. A child's counts go to APP_CALL_COUNTS.PID.
// --background: becomes a daemon, and makes 50 launches long after its parent has ended.
#include "count.hpp"

#include <sys/wait.h>
#include <vector>

__global__ void tick(int* p) { p[threadIdx.x] += 1; }

static void work(int launches, bool wait) {
  std::vector<int> in(256), out(256);
  for (int i = 0; i < 256; i++) in[i] = i * launches;
  int *a, *b;
  OK(hipMalloc, &a, 1024);
  OK(hipMalloc, &b, 1024);
  OK(hipMemcpy, a, in.data(), 1024, hipMemcpyHostToDevice);
  OK(hipMemcpy, out.data(), a, 1024, hipMemcpyDeviceToHost);
  if (in != out) app::fail("copy");
  for (int i = 0; i < launches; i++) LAUNCH(tick, 1, 256, 0, 0, b);
  if (!wait) return;
  OK(hipDeviceSynchronize);
  OK(hipFree, a);
  OK(hipFree, b);
}

static int wait_for(pid_t pid) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) app::fail("fork or waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  if (argc > 1 && !std::strcmp(argv[1], "--execed")) {
    app::is_child = true;
    work(20, true);
    app::finish();
    return 7;
  }

  pid_t pid = fork();
  if (pid > 0 && argc > 1 && !std::strcmp(argv[1], "--background")) return 0;
  if (pid == 0 && argc > 1) {
    setsid();
    usleep(500000);
    app::in_child();
    work(50, true);
    app::finish();
    return 0;
  }
  if (pid == 0) {
    app::in_child();
    work(10, true);
    app::finish();
    std::exit(6);
  }
  std::printf("forked before HIP: %d\n", wait_for(pid));

  std::fflush(stdout);
  pid = fork();
  if (pid == 0) {
    execl(argv[0], argv[0], "--execed", (char*)nullptr);
    _exit(127);
  }
  std::printf("exec of a HIP program: %d\n", wait_for(pid));

  std::fflush(stdout);
  pid = fork();
  if (pid == 0) {
    app::in_child();
    work(30, false);
    app::finish();
    _exit(8);
  }
  std::printf("left by _exit: %d\n", wait_for(pid));

  work(40, true);
  // The run-time is initialised: children that do not use it must not disturb it.
  std::printf("system: %d\n", std::system("true"));
  std::fflush(stdout);
  pid = fork();
  if (pid == 0) _exit(9);
  std::printf("fork after HIP: %d\n", wait_for(pid));
  OK(hipDeviceSynchronize);
  std::puts("fork_exec: done");
  app::finish();
}
