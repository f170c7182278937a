#define PASS pass_a
#include "pass.h"
