// A library through which tests/apps/replaced.c calls back: PASS is the name of its inner function.

__attribute__((noinline)) void PASS(void (*call)(void)) {
    call();
    __asm__ volatile("" ::: "memory");
}

void pass(void (*call)(void)) {
    PASS(call);
    __asm__ volatile("# end" ::: "memory");
}
