// A program that copies its own stack at marked places, and prints the calls that it notes itself.
//
// Output, on standard output: "stack IP SP BP BYTES" in hexadecimal, then "call FUNCTION LINE" from the innermost outward,
// then "end NAME"; at last the lines of /proc/self/maps.
#include <coroutine>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>

struct Noted { const char *function; int line; };
static thread_local Noted noted[512];
static thread_local int depth;

struct Note {
    __attribute__((always_inline)) Note(const char *function, int line) { noted[depth++] = {function, line}; }
    __attribute__((always_inline)) ~Note() { --depth; }
};

// The end of the mapping with this address.
static uintptr_t end_of(uintptr_t address) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    uintptr_t from, to, found = 0;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= address && address < to) found = to;
    fclose(maps);
    return found;
}

static const char *scenario = "";

extern "C" __attribute__((used)) void save(uintptr_t ip, uintptr_t sp, uintptr_t bp) {
    printf("stack %lx %lx %lx ", ip, sp, bp);
    uintptr_t end = end_of(sp);
    if (end > sp + 65536) end = sp + 65536;
    for (uintptr_t at = sp; at < end; ++at) printf("%02x", *(unsigned char *)at);
    printf("\n");
    for (int i = depth; i-- > 0;) printf("call %s %d\n", noted[i].function, noted[i].line);
    printf("end %s\n", scenario);
}

// Passes the registers as they are after its return.
asm(".text\n.type mark, @function\nmark: .cfi_startproc\n movq (%rsp), %rdi\n leaq 8(%rsp), %rsi\n movq %rbp, %rdx\n"
    " subq $8, %rsp\n .cfi_adjust_cfa_offset 8\n call save\n addq $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret\n"
    " .cfi_endproc\n.size mark, .-mark\n");
extern "C" void mark();

#define AT(call) do { Note note(__func__, __LINE__); call; asm volatile("" ::: "memory"); } while (0)
#define NOINLINE __attribute__((noinline))
static inline __attribute__((always_inline)) void launch(int) { AT(mark()); }

NOINLINE static void direct() { AT(mark()); }
NOINLINE static int plain(int n) { AT(direct()); return n + 1; }

template <typename T, int N> NOINLINE void nested(T value) {
    if constexpr (N == 0) AT(launch(1));
    else AT((nested<T, N - 1>(value)));
}

static inline __attribute__((always_inline)) void outer_wrapper(int n) { AT(launch(n)); }
NOINLINE static void wrapped(int n) { AT(outer_wrapper(n)); }

NOINLINE static int recursive(int n) {
    if (n == 0) AT(launch(n));
    else AT(n += recursive(n - 1));
    return n;
}

NOINLINE static void lambdas() {
    int seven = 7;
    auto one = [&](int n) NOINLINE { AT(launch(n + seven)); };
    std::function<void(int)> two = [&](int n) { AT(one(n)); };
    AT(two(2));
}

struct AtExit { int n; NOINLINE ~AtExit() { AT(launch(n)); } };
NOINLINE static void throws(int n) { Note note(__func__, __LINE__); AtExit guard{n}; if (n) throw std::runtime_error("x"); }
NOINLINE static void exceptions() {
    try { Note note(__func__, __LINE__); throws(1); }
    catch (const std::exception &) { AT(launch(2)); }
}

NOINLINE static void aligned(int n) {
    alignas(64) volatile char space[256];
    space[n] = 1;
    AT(launch(space[n]));
    space[0] = 2;
}

NOINLINE static void variable(int n) {
    volatile char *space = (volatile char *)__builtin_alloca(n);
    space[n - 1] = 1;
    AT(launch(space[n - 1]));
    alignas(64) volatile char more[64];
    more[0] = space[n - 1];
}

NOINLINE static int compare(const void *, const void *) { static int once; if (!once++) AT(launch(0)); return 0; }
NOINLINE static void through_libc() { int all[] = {2, 1}; AT(qsort(all, 2, sizeof *all, compare)); }

static void *on_thread(void *) { AT(launch(0)); return nullptr; }
NOINLINE static void threads() {
    pthread_t thread;
    pthread_create(&thread, nullptr, on_thread, nullptr);
    pthread_join(thread, nullptr);
}

static void on_signal(int) { AT(launch(0)); }
NOINLINE static void signals() { signal(SIGUSR1, on_signal); AT(raise(SIGUSR1)); }

static ucontext_t back, fibre;
static char fibre_stack[65536];
static void in_fibre() { depth = 0; AT(launch(0)); }
NOINLINE static void fibres() {
    int before = depth;
    getcontext(&fibre);
    fibre.uc_stack.ss_sp = fibre_stack;
    fibre.uc_stack.ss_size = sizeof fibre_stack;
    fibre.uc_link = &back;
    makecontext(&fibre, in_fibre, 0);
    swapcontext(&back, &fibre);
    depth = before;
}

struct Task {
    struct promise_type {
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};
NOINLINE static void leaf() { AT(launch(0)); }
static Task coroutine(int n) { AT(leaf()); co_await std::suspend_always{}; if (n) AT(leaf()); }
NOINLINE static void coroutines() {
    Task task = coroutine(1);
    AT(task.handle.resume());
    AT(task.handle.resume());
    task.handle.destroy();
}

// push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
NOINLINE static void generated() {
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    AT(((void (*)(void (*)()))page)(leaf));
}

#ifdef WITH_LIBRARY
void call_back(void (*function)(int), int n);
NOINLINE static void called_back(int n) { AT(launch(n)); }
NOINLINE static void library() { AT(call_back(called_back, 3)); }
#endif

#define RUN(name, call) do { scenario = name; AT(call); } while (0)

int main(int count, char **arguments) {
    bool has_exceptions = count < 2;
    (void)arguments;
    RUN("plain", plain(count));
    RUN("templates", (nested<std::string, 4>("x")));
    RUN("inlined", wrapped(2));
    RUN("recursion", recursive(40));
    RUN("lambdas", lambdas());
    if (has_exceptions) RUN("exceptions", exceptions());
    RUN("aligned", aligned(3));
    RUN("variable", variable(100 * count));
    RUN("libc", through_libc());
    RUN("threads", threads());
    RUN("signals", signals());
    RUN("fibres", fibres());
    RUN("coroutines", coroutines());
    RUN("generated", generated());
#ifdef WITH_LIBRARY
    RUN("library", library());
#endif
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (fgets(line, sizeof line, maps)) fputs(line, stdout);
    fclose(maps);
}
