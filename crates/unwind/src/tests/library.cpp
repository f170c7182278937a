// A library without debug information, whose local functions have no symbols either.
__attribute__((noinline)) static void local(void (*function)(int), int n) { function(n); asm volatile("" ::: "memory"); }
void call_back(void (*function)(int), int n) { local(function, n + 1); asm volatile("" ::: "memory"); }
