#define PASS pass_b
#include "pass.h"
