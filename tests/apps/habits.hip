// Habits of programs outside HIP that can disturb a tool, one per run. Each submits work, checks the copied bytes and prints its
// findings. The output is the same with and without a collector.
//
//   habits HABIT [NUMBER]
//
// small_stacks KIB       threads with stacks of KIB KiB
// alarm_clock US         two timers whose signals interrupt everything, each after US microseconds
// few_files N            at most N descriptors
// no_files               closes every descriptor at the start; the output lists those open at the end
// no_streams             closes the standard streams, and opens them again after HIP starts; the output names the descriptors
// spawns                 children by posix_spawn, vfork and popen between the work
// no_opening             a seccomp filter refuses to open or create files after HIP starts; calls are printed instead of written
// elsewhere              another directory, and a umask of 0777
// locked                 mlockall for future memory
// secret                 not dumpable (PR_SET_DUMPABLE)
// contexts               calls from stacks that the program allocates, switched by swapcontext
// forks_in_threads       several threads fork at once, with work before and after
// address_space MIB      at most MIB MiB of address space beyond the current use
// replaced               execs another program (secret) while its first kernels run
// no_environment         clears its environment, as services do, before the first HIP call
// small_files            no file larger than 1 MiB; hundreds of threads
#include "count.hpp"

#include <csignal>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <set>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <vector>

__global__ void step(int* p, int n) {
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += 0;
}

static void work(int launches) {
  hipStream_t s;
  int* p;
  std::vector<int> in(2048), out(2048);
  for (size_t i = 0; i < in.size(); i++) in[i] = (int)i * launches;
  OK(hipStreamCreate, &s);
  OK(hipMalloc, (void**)&p, 8192);
  OK(hipMemcpyAsync, p, in.data(), 8192, hipMemcpyHostToDevice, s);
  for (int i = 0; i < launches; i++) LAUNCH(step, 1 + i % 5, 64, 0, s, p, 64);
  OK(hipMemcpyAsync, out.data(), p, 8192, hipMemcpyDeviceToHost, s);
  OK(hipStreamSynchronize, s);
  if (in != out) app::fail("bytes");
  OK(hipFree, p);
  OK(hipStreamDestroy, s);
}

static void in_threads(int threads, int launches) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; i++) all.emplace_back(work, launches);
  for (auto& t : all) t.join();
}

static void* small(void*) {
  work(20);
  return nullptr;
}

static void small_stacks(long kib) {
  work(5);
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, kib << 10);
  pthread_t t[4];
  for (auto& each : t)
    if (pthread_create(&each, &attr, small, nullptr)) app::fail("pthread_create");
  for (auto& each : t) pthread_join(each, nullptr);
}

static volatile sig_atomic_t alarms = 0;
static void alarm_clock(long microseconds) {
  struct sigaction action = {};
  action.sa_handler = [](int) { alarms = alarms + 1; };
  sigaction(SIGALRM, &action, nullptr);
  sigaction(SIGPROF, &action, nullptr);
  itimerval every = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &every, nullptr);
  setitimer(ITIMER_PROF, &every, nullptr);
  in_threads(3, 300);
  itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  setitimer(ITIMER_PROF, &never, nullptr);
  if (alarms < 3) app::fail("alarms");
}

static void few_files(long files) {
  rlimit limit = {(rlim_t)files, (rlim_t)files};
  setrlimit(RLIMIT_NOFILE, &limit);
  in_threads(8, 20);
}

static void no_files(long) {
  for (int i = 3; i < 1024; i++) close(i);
  int fd = open("/dev/null", O_RDONLY);
  std::printf("first file: %d\n", fd);
  in_threads(3, 20);
  for (int i = 0; i < 1024; i++)
    if (fcntl(i, F_GETFD) >= 0) std::printf("file %d is open\n", i);
}

static void no_streams(long) {
  // As services do: standard streams closed first, opened again later.
  std::fflush(stdout);
  int out = fcntl(1, F_DUPFD, 100), err = fcntl(2, F_DUPFD, 101);
  close(0);
  close(1);
  close(2);
  work(20);
  int a = open("/dev/null", O_RDWR), b = open("/dev/null", O_RDWR), c = open("/dev/null", O_RDWR);
  in_threads(2, 20);
  dup2(out, 1);
  dup2(err, 2);
  std::printf("opened as %d %d %d\n", a, b, c);
}

extern char** environ;
static void spawns(long) {
  work(5);
  char* words[] = {(char*)"true", nullptr};
  for (int i = 0; i < 5; i++) {
    pid_t child = 0;
    int status = -1;
    if (posix_spawnp(&child, "true", nullptr, nullptr, words, environ)) app::fail("posix_spawnp");
    waitpid(child, &status, 0);
    std::printf("spawned: %d\n", status);
    child = vfork();
    if (child == 0) {
      execvp("true", words);
      _exit(127);
    }
    waitpid(child, &status, 0);
    std::printf("vforked: %d\n", status);
    work(5);
  }
  FILE* pipe = popen("echo from a pipe", "r");
  char line[64] = "";
  if (!pipe || !fgets(line, sizeof line, pipe)) app::fail("popen");
  std::printf("%s%d\n", line, pclose(pipe));
}

static void filter(std::vector<int> calls) {
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (int call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog whole = {(unsigned short)program.size(), program.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0)) app::fail("seccomp");
}

static void no_opening(long) {
  work(5);
  int d;
  OK(hipGetDevice, &d);
  filter({SYS_open, SYS_openat, SYS_memfd_create, SYS_ftruncate, SYS_fallocate, SYS_socket, SYS_unlink, SYS_rename});
  in_threads(40, 20);
}

static void elsewhere(long) {
  umask(0777);
  if (chdir("/")) app::fail("chdir");
  in_threads(20, 20);
}

static void locked(long) {
  // What is allocated from now on is in memory.
  std::printf("mlockall: %d\n", mlockall(MCL_FUTURE | MCL_ONFAULT));
  in_threads(4, 20);
}

static void secret(long) {
  prctl(PR_SET_DUMPABLE, 0);
  in_threads(20, 20);
}

static ucontext_t main_context, other_context;
static void contexts(long) {
  work(2);
  std::vector<char> stack(256 << 10);
  for (int i = 0; i < 5; i++) {
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = stack.data();
    other_context.uc_stack.ss_size = stack.size();
    other_context.uc_link = &main_context;
    makecontext(&other_context, +[] { work(7); }, 0);
    swapcontext(&main_context, &other_context);
  }
}

static void forks_in_threads(long) {
  work(5);
  std::vector<std::thread> all;
  for (int i = 0; i < 4; i++)
    all.emplace_back([] {
      for (int k = 0; k < 10; k++) {
        work(2);
        pid_t child = fork();
        if (child == 0) _exit(3);
        int status = 0;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 3) app::fail("fork in a thread");
      }
    });
  for (auto& t : all) t.join();
}

static void address_space(long mib) {
  work(5);
  unsigned long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%lu", &pages) != 1) app::fail("statm");
  fclose(f);
  rlimit limit = {pages * 4096 + (mib << 20), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  in_threads(3, 50);
}

static void small_files(long) {
  work(5);
  rlimit limit = {1 << 20, 1 << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 10; i++) in_threads(20, 10);
}

static void no_environment(long) {
  // The emulated GPU is the machine, and the counts of calls are the test's: these stay.
  std::vector<std::string> names;
  for (char** each = environ; *each; each++)
    if (std::strncmp(*each, "EMULATED_GPU", 12) && std::strncmp(*each, "APP_", 4)) names.emplace_back(*each, std::strcspn(*each, "="));
  for (auto& name : names) unsetenv(name.c_str());
  in_threads(3, 50);
  // The variables left at the end are printed, in order of name.
  std::set<std::string> left;
  for (char** each = environ; *each; each++) left.emplace(*each, std::strcspn(*each, "="));
  for (auto& name : left) std::printf("%s\n", name.c_str());
}

static void replaced(long) {
  int* p;
  OK(hipMalloc, (void**)&p, 4096);
  for (int i = 0; i < 50; i++) LAUNCH(step, 1, 64, 0, 0, p, 64);
  std::fflush(stdout);
  execl("/proc/self/exe", "habits", "secret", (char*)nullptr);
  app::fail("exec");
}

int main(int argc, char** argv) {
  std::string habit = argc > 1 ? argv[1] : "";
  long number = app::arg(argc, argv, 2, 0);
  struct {
    const char* name;
    void (*run)(long);
  } all[] = {
      {"small_stacks", small_stacks}, {"alarm_clock", alarm_clock}, {"few_files", few_files},
      {"no_files", no_files},         {"no_streams", no_streams},   {"spawns", spawns},
      {"no_opening", no_opening},     {"elsewhere", elsewhere},     {"locked", locked},
      {"secret", secret},             {"contexts", contexts},       {"forks_in_threads", forks_in_threads},
      {"address_space", address_space}, {"small_files", small_files},   {"replaced", replaced},
      {"no_environment", no_environment},
  };
  for (auto& each : all)
    if (habit == each.name) {
      each.run(number);
      OK(hipDeviceSynchronize);
      umask(022);
      std::printf("habits: %s\n", each.name);
      if (each.run == no_opening) {
        // No file can be made any more.
        uint64_t calls = 0;
        for (app::Site* s = app::sites; s; s = s->next) calls += s->hits;
        std::printf("calls: %llu\n", (unsigned long long)calls);
        return 0;
      }
      app::finish();
      return 0;
    }
  return 2;
}
