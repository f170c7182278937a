// A library without symbols beside its two exported functions, through which tests/apps/sites.hip calls back.

static __attribute__((noinline)) void inner(void (*call)(void), int times) {
  for (int i = 0; i < times; i++) {
    call();
    __asm__ volatile("" ::: "memory");
  }
}

void through_one(void (*call)(void)) {
  inner(call, 1);
  __asm__ volatile("" ::: "memory");
}

void through_two(void (*call)(void)) {
  inner(call, 2);
  __asm__ volatile("# two" ::: "memory");
}
