/* Start and stop of tracing, and the program's external ids on records. */
#ifndef ROCTRACER_EXT_H_
#define ROCTRACER_EXT_H_

#include "roctracer.h"

/* Operations of EXT_API. */
typedef enum {
  ACTIVITY_EXT_OP_MARK = 0,
  ACTIVITY_EXT_OP_EXTERN_ID = 1
} activity_ext_op_t;

#ifdef __cplusplus
extern "C" {
typedef void (*roctracer_start_cb_t)();
typedef void (*roctracer_stop_cb_t)();
#else
typedef void (*roctracer_start_cb_t)(void);
typedef void (*roctracer_stop_cb_t)(void);
#endif

/* Called when tracing starts after a stop, and when it stops. */
typedef struct {
  roctracer_start_cb_t start_cb;
  roctracer_stop_cb_t stop_cb;
} roctracer_ext_properties_t;

/* Tracing is on at first. While it is stopped, only ROCTX has callbacks and records. */
#ifdef __cplusplus
ROCTRACER_API void roctracer_start();
ROCTRACER_API void roctracer_stop();
#else
ROCTRACER_API void roctracer_start(void);
ROCTRACER_API void roctracer_stop(void);
#endif

/* Pushes an external id for this thread's further calls: the record of each is preceded by one of domain EXT_API,
 * operation ACTIVITY_EXT_OP_EXTERN_ID, with both ids. */
ROCTRACER_API roctracer_status_t roctracer_activity_push_external_correlation_id(activity_correlation_id_t id);

/* Pops the thread's last external id, and stores it unless `last_id` is NULL.
 * MISMATCHED_EXTERNAL_CORRELATION_ID: there was none; then 0 is stored. */
ROCTRACER_API roctracer_status_t
roctracer_activity_pop_external_correlation_id(activity_correlation_id_t* last_id);

#ifdef __cplusplus
}
#endif

#endif
