// dwarf-4 and dwarf-5 are this program, with N = 4 and 5:
// g++ -Os -gdwarf-N -gno-record-gcc-switches -nostdlib -static -fno-exceptions -fcf-protection=none -Wl,--build-id -Wl,-z,noseparate-code
// -Wl,-n -Wl,--eh-frame-hdr
struct S { template <class T> __attribute__((noinline)) T scale(T a) { volatile T b = a; return b * 3; } };
static inline __attribute__((always_inline)) int inner(int n) { S s; return s.scale(n) + 1; }
__attribute__((noinline)) int outer(int n) { volatile char space[n + 1]; space[n] = 1; return inner(n) + space[n]; }
extern "C" void _start() { outer(3); for (;;) {} }
