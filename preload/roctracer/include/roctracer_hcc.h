/* An older name of roctracer_hip.h. */
#include "roctracer_hip.h"
