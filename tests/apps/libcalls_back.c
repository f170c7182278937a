// A library whose constructor calls the function whose address is in APP_CONSTRUCTOR. The loader holds its lock meanwhile.
#include <stdlib.h>

__attribute__((constructor)) static void construct(void) {
    const char *text = getenv("APP_CONSTRUCTOR");
    if (text) ((void (*)(void))strtoull(text, NULL, 16))();
}
