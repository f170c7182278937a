// LTTng-UST in the same process: an event at entry and one at return.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "peer.h"

int peer_is_on(void) { return lttng_ust_tracepoint_enabled(roctop_peer, enter); }

void peer_pair(uint64_t n) {
  lttng_ust_tracepoint(roctop_peer, enter, 7, n, n);
  lttng_ust_tracepoint(roctop_peer, leave, 7, n, 0);
}
