/* Changes on their way to those who look at the page: server-sent events. SPDX-License-Identifier: Apache-2.0
 *
 * There is one queue for all of them, which is bounded; each listener has a place in it. One that reads too slowly
 * loses its place: its stream ends, and the page comes again and reads everything. */
#ifndef DV_SERVE_STREAM_H
#define DV_SERVE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct MHD_Connection;

enum { DV_SERVE_LISTENERS_MAX = 32, DV_SERVE_FRAMES_MAX = 256, DV_SERVE_FRAME_BYTES_MAX = 2 * 1024 * 1024 };

typedef struct dv_serve_stream dv_serve_stream;

/* Returns NULL when an allocation fails. */
dv_serve_stream *dv_serve_stream_new(void);
/* After the daemon has stopped. NULL is allowed. */
void dv_serve_stream_free(dv_serve_stream *stream);

/* Sends one line of JSON to all; takes it over. NULL, or without memory for it: listeners have to come again. */
void dv_serve_stream_send(dv_serve_stream *stream, char *json);
/* Sends a comment, by which a listener that is gone is found out. */
void dv_serve_stream_beat(dv_serve_stream *stream);
/* Ends all streams, and takes no listener from now on. */
void dv_serve_stream_close(dv_serve_stream *stream);

/* Returns the number of the last frame: what is read now knows all up to it. */
uint64_t dv_serve_stream_last(dv_serve_stream *stream);
size_t dv_serve_stream_listeners(dv_serve_stream *stream);
/* Returns all bytes that were sent to listeners. */
uint64_t dv_serve_stream_bytes(dv_serve_stream *stream);

typedef struct dv_serve_listener dv_serve_listener;

/* Returns a listener that hears of what is sent from now on; NULL: there are enough. */
dv_serve_listener *dv_serve_stream_listen(dv_serve_stream *stream, struct MHD_Connection *connection);
/* For MHD_create_response_from_callback(): the next bytes for the listener at `context`. */
ssize_t dv_serve_stream_read(void *context, uint64_t position, char *out, size_t room);
/* The connection has gone. */
void dv_serve_stream_leave(void *context);

#endif
