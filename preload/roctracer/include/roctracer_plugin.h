/* Interface between a tool and a plug-in that writes its files: four functions of the plug-in, called one at a time.
 * No library here calls them; programs that were written for the shipped header compile with this one. */
#ifndef ROCTRACER_PLUGIN_H_
#define ROCTRACER_PLUGIN_H_

#include "roctracer.h"

#ifdef __cplusplus
extern "C" {
#define ROCTRACER_NO_ARGUMENTS
#else
#define ROCTRACER_NO_ARGUMENTS void
#endif

/* Called first, with the version that the tool was built with. 0, or -1 if the plug-in does not support it. */
ROCTRACER_EXPORT int roctracer_plugin_initialize(uint32_t roctracer_major_version, uint32_t roctracer_minor_version);
/* Called last. */
ROCTRACER_EXPORT void roctracer_plugin_finalize(ROCTRACER_NO_ARGUMENTS);

/* An event of a callback: the common part, and the domain's structure. 0, or -1. */
ROCTRACER_EXPORT int roctracer_plugin_write_callback_record(const roctracer_record_t* record,
                                                            const void* callback_data);
/* Records of a buffer, from `begin` to before `end`. 0, or -1. */
ROCTRACER_EXPORT int roctracer_plugin_write_activity_records(const roctracer_record_t* begin,
                                                             const roctracer_record_t* end);

#ifdef __cplusplus
}
#endif
#undef ROCTRACER_NO_ARGUMENTS

#endif
