// Launches, copies and allocates by many call paths, and notes by which one.
//
//   sites [ROUNDS=50] [THREADS=3]
//
// Before each call the path is noted: a number made of the places through which the call came. APP_SITES names the file
// that gets a line `thread-id path` per call, in order within a thread. Paths go through templates, lambdas, one wrapper
// from several lines of a function, recursion, function pointers, virtual functions, tail calls, exceptions, a library
// without symbols, contexts with their own stacks, a signal handler on an alternate stack, and over remains of earlier
// calls on the stack.
#include "count.hpp"

#include <csignal>
#include <dlfcn.h>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <sys/syscall.h>
#include <thread>
#include <ucontext.h>
#include <vector>

__global__ void empty() {}
template <int N>
__global__ void numbered(int* p) {
  if (p) p[threadIdx.x] = N;
}

namespace {

thread_local uint64_t path = 1;
thread_local std::vector<uint64_t>* noted = nullptr;
std::mutex all_noted_lock;
std::vector<std::pair<long, std::vector<uint64_t>>> all_noted;

int* device = nullptr;
char pinned[256];

struct Step {
  uint64_t before = path;
  explicit Step(uint64_t place) { path = (path ^ place) * 0x9e3779b97f4a7c15ull + place; }
  ~Step() { path = before; }
};

}  // namespace

// Different code before and behind, so that the compiler cannot join two calls.
#define APART asm volatile("" ::"i"(__COUNTER__) : "memory")
#define STEP(...) \
  do { \
    Step step_(__COUNTER__ + 1); \
    APART; \
    __VA_ARGS__; \
    APART; \
  } while (0)
#define NOINLINE __attribute__((noinline))

static NOINLINE void note() {
  if (!noted) app::fail("a thread without a list");
  noted->push_back(path);
}

// The nearest return address and the height are the same for all callers of one function.
static NOINLINE void launch() {
  // Text that is on the stack alone: tests search for it in what is written.
  volatile char canary[32];
  for (int i = 0; i < 32; i++) canary[i] = 'A' + (i * 7 + 3) % 26;
  note();
  LAUNCH(empty, 1, 64, 0, 0);
  asm volatile("" ::"r"(canary) : "memory");
}

static NOINLINE void copy() {
  note();
  OK(hipMemcpyAsync, pinned, device, 64, hipMemcpyDeviceToHost, nullptr);
}

static NOINLINE void fill() {
  note();
  OK(hipMemsetAsync, device, 1, 64, nullptr);
}

static NOINLINE void allocate() {
  void* p = nullptr;
  note();
  OK(hipMalloc, &p, 256);
  OK(hipFree, p);
}

static NOINLINE void two_lines() {
  STEP(launch());
  STEP(launch());
  STEP(copy());
  STEP(copy());
  STEP(fill());
  STEP(allocate());
  STEP(allocate());
}

static NOINLINE void in_a_loop(int times) {
  for (int i = 0; i < times; i++) STEP(launch());
}

template <int N>
static NOINLINE void of_template() {
  Step step(__COUNTER__ + 1000 * (N + 1));
  note();
  LAUNCH(numbered<N>, 1, 64, 0, 0, device);
  if constexpr (N > 0) STEP(of_template<N - 1>());
}

static NOINLINE void recursive(int depth) {
  if (depth == 0) {
    STEP(launch());
    return;
  }
  STEP(recursive(depth - 1));
  APART;
}

static NOINLINE int deep(int depth) {
  if (depth == 0) {
    STEP(two_lines());
    return 1;
  }
  int sum = 0;
  STEP(sum = deep(depth - 1));
  return sum + depth;
}

using Function = void (*)();
static NOINLINE void by_pointer(Function function) {
  STEP(function());
  APART;
}

struct Layer {
  virtual ~Layer() = default;
  virtual void forward() = 0;
};
struct Dense : Layer {
  NOINLINE void forward() override { STEP(launch()); }
};
struct Pool : Layer {
  NOINLINE void forward() override {
    STEP(launch());
    STEP(launch());
  }
};

static NOINLINE void layers(Layer& one, Layer& other) {
  STEP(one.forward());
  STEP(other.forward());
}

// A jump at the end: this function has no frame below the launch.
static NOINLINE void tail(int which) {
  if (which) return launch();
  return copy();
}

static NOINLINE void tails() {
  STEP(tail(0));
  STEP(tail(1));
  STEP(tail(1));
}

static NOINLINE void throwing(int depth) {
  if (depth == 0) {
    STEP(launch());
    throw std::runtime_error("as intended");
  }
  STEP(throwing(depth - 1));
  APART;
}

static NOINLINE void catching() {
  for (int depth : {1, 4}) {
    Step step(depth + (__COUNTER__ << 8));
    try {
      STEP(throwing(depth));
    } catch (const std::exception&) {
      STEP(launch());
    }
  }
}

// Fills the stack below its caller with addresses of code, as any earlier call does.
static NOINLINE int churn(uint64_t& random, int depth) {
  random = random * 6364136223846793005ull + 1442695040888963407ull;
  volatile char hole[40];
  hole[random % sizeof hole] = char(depth);
  if (depth <= 0) return hole[0];
  switch (random >> 61) {
    case 0: return churn(random, depth - 1) + 1;
    case 1: return churn(random, depth - 1) + 2;
    case 2: return churn(random, depth - 2) + 3;
    case 3: return churn(random, depth - 3) + 5;
    default: return churn(random, depth - 1) + 4;
  }
}

static NOINLINE void over_remains(uint64_t& random) {
  churn(random, 24);
  // A frame with a hole, in which the remains stay.
  volatile char hole[2048];
  hole[0] = 1;
  STEP(launch());
  hole[1023] = hole[0];
}

static NOINLINE void lambdas() {
  auto one = [] { STEP(launch()); };
  std::function<void()> other = [&] {
    STEP(one());
    STEP(copy());
  };
  STEP(one());
  STEP(other());
  STEP(other());
}

// A frame of variable size.
static NOINLINE void variable(int bytes) {
  char* room = static_cast<char*>(__builtin_alloca(bytes));
  asm volatile("" ::"r"(room) : "memory");
  STEP(launch());
  asm volatile("" ::"r"(room) : "memory");
}

// Contexts with their own stacks.
static thread_local ucontext_t main_context, other_context;
static thread_local int how;
static void in_context() {
  for (;;) {
    switch (how) {
      case 0: STEP(launch()); break;
      case 1: STEP(two_lines()); break;
      case 2: STEP(recursive(3)); break;
      default: STEP(deep(30)); break;
    }
    swapcontext(&other_context, &main_context);
  }
}

static NOINLINE void contexts(char* stack, size_t bytes) {
  getcontext(&other_context);
  other_context.uc_stack.ss_sp = stack;
  other_context.uc_stack.ss_size = bytes;
  makecontext(&other_context, in_context, 0);
  for (int i = 0; i < 4; i++) {
    how = i;
    // The context sees the path of its first entry only; it has no frames of its callers.
    uint64_t before = path;
    path = 7;
    swapcontext(&main_context, &other_context);
    path = before;
  }
}

static void handler(int) {
  uint64_t before = path;
  path = 11;
  STEP(launch());
  path = before;
}

static NOINLINE void signals() {
  // Raised here, so that no call of HIP is interrupted.
  STEP(raise(SIGUSR1));
}

// From libunnamed.so, which has no symbols but these.
static void (*through_one)(void (*)());
static void (*through_two)(void (*)());

static NOINLINE void library() {
  STEP(through_one(launch));
  STEP(through_two(launch));
  STEP(through_two(two_lines));
}

static void all(long rounds, uint64_t random, char* stack, size_t bytes) {
  Dense dense;
  Pool pool;
  for (long round = 0; round < rounds; round++) {
    STEP(two_lines());
    STEP(two_lines());
    STEP(in_a_loop(3));
    STEP(of_template<4>());
    for (int depth : {1, 2, 3, 5, 8, 13}) {
      Step step(depth + (__COUNTER__ << 8));
      STEP(recursive(depth));
    }
    STEP(deep(40));
    STEP(by_pointer(launch));
    STEP(by_pointer(two_lines));
    STEP(by_pointer(launch));
    STEP(layers(dense, pool));
    STEP(layers(pool, dense));
    STEP(tails());
    STEP(catching());
    STEP(over_remains(random));
    STEP(over_remains(random));
    STEP(lambdas());
    for (int size : {64, 800, 3000}) {
      Step step(size + (__COUNTER__ << 16));
      STEP(variable(size));
    }
    STEP(contexts(stack, bytes));
    STEP(signals());
    STEP(library());
    OK(hipStreamSynchronize, nullptr);
  }
}

static void thread_main(long rounds, uint64_t random) {
  std::vector<uint64_t> list;
  list.reserve(1 << 16);
  noted = &list;
  stack_t alternate{};
  std::vector<char> alternate_stack(256 << 10), context_stack(256 << 10);
  alternate.ss_sp = alternate_stack.data();
  alternate.ss_size = alternate_stack.size();
  sigaltstack(&alternate, nullptr);
  STEP(all(rounds, random, context_stack.data(), context_stack.size()));
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  noted = nullptr;
  std::lock_guard<std::mutex> lock(all_noted_lock);
  all_noted.emplace_back(syscall(SYS_gettid), std::move(list));
}

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 50), threads = app::arg(argc, argv, 2, 3);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);

  std::vector<uint64_t> list;
  noted = &list;
  note();
  OK(hipMalloc, &device, 4096);
  // Loaded after the first site is known.
  std::string self = "/proc/self/exe";
  char where[4096];
  ssize_t length = readlink(self.c_str(), where, sizeof where - 1);
  if (length <= 0) app::fail("no /proc/self/exe");
  std::string folder(where, size_t(length));
  folder.resize(folder.rfind('/') + 1);
  void* unnamed = dlopen((folder + "libunnamed.so").c_str(), RTLD_NOW);
  if (!unnamed) app::fail("no libunnamed.so");
  through_one = reinterpret_cast<void (*)(void (*)())>(dlsym(unnamed, "through_one"));
  through_two = reinterpret_cast<void (*)(void (*)())>(dlsym(unnamed, "through_two"));
  note();
  OK(hipMemset, device, 0, 4096);
  all_noted.emplace_back(syscall(SYS_gettid), std::move(list));

  STEP(thread_main(rounds, 1));
  std::vector<std::thread> workers;
  for (long t = 0; t < threads; t++) workers.emplace_back([=] { STEP(thread_main(rounds, 100 + t)); });
  for (auto& worker : workers) worker.join();
  OK(hipFree, device);

  uint64_t calls = 0;
  const char* file = std::getenv("APP_SITES");
  FILE* out = file && *file ? std::fopen(file, "w") : nullptr;
  for (const auto& [thread, paths] : all_noted)
    for (uint64_t one : paths) {
      calls++;
      if (out) std::fprintf(out, "%ld %llu\n", thread, (unsigned long long)one);
    }
  if (out) std::fclose(out);
  std::printf("sites: rounds %ld, threads %ld, calls %llu\n", rounds, threads, (unsigned long long)calls);
  app::finish();
}
