/* Changes on their way to those who look at the page. SPDX-License-Identifier: Apache-2.0 */
#include "serve_stream.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *text;
    size_t bytes;
} frame;

struct dv_serve_listener {
    dv_serve_stream *stream;
    struct MHD_Connection *connection; /* NULL: this place is free */
    uint64_t next;                     /* the number of the frame that it is given next */
    size_t offset;                     /* in it */
    bool suspended;
};

struct dv_serve_stream {
    pthread_mutex_t lock;
    frame frames[DV_SERVE_FRAMES_MAX]; /* a ring */
    size_t first, count, bytes;
    uint64_t last; /* the number of the last frame; the first has 1 */
    dv_serve_listener listeners[DV_SERVE_LISTENERS_MAX];
    size_t listener_count;
    uint64_t sent_bytes;
    bool closed;
};

dv_serve_stream *dv_serve_stream_new(void) {
    dv_serve_stream *stream = calloc(1, sizeof *stream);
    if (stream) pthread_mutex_init(&stream->lock, NULL);
    return stream;
}

static void drop_first(dv_serve_stream *stream) {
    stream->bytes -= stream->frames[stream->first].bytes;
    free(stream->frames[stream->first].text);
    stream->first = (stream->first + 1) % DV_SERVE_FRAMES_MAX;
    stream->count--;
}

void dv_serve_stream_free(dv_serve_stream *stream) {
    if (!stream) return;
    while (stream->count > 0) drop_first(stream);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* ---- sending ---- */

static void wake_listeners(dv_serve_stream *stream) {
    for (size_t i = 0; i < DV_SERVE_LISTENERS_MAX; i++) {
        dv_serve_listener *l = &stream->listeners[i];
        if (!l->connection || !l->suspended) continue;
        l->suspended = false;
        MHD_resume_connection(l->connection);
    }
}

/* Puts a text behind the others; NULL stands for one that was lost, and all before it are. */
static void put(dv_serve_stream *stream, char *text, int bytes) {
    pthread_mutex_lock(&stream->lock);
    size_t room = bytes > 0 ? (size_t)bytes : 0;
    stream->last++;
    while (stream->count > 0 &&
           (!text || stream->count == DV_SERVE_FRAMES_MAX || stream->bytes + room > DV_SERVE_FRAME_BYTES_MAX))
        drop_first(stream);
    if (text) {
        stream->frames[(stream->first + stream->count++) % DV_SERVE_FRAMES_MAX] = (frame){text, room};
        stream->bytes += room;
    }
    wake_listeners(stream);
    pthread_mutex_unlock(&stream->lock);
}

void dv_serve_stream_send(dv_serve_stream *stream, char *json) {
    char *text = NULL;
    int bytes = json ? asprintf(&text, "id: %" PRIu64 "\ndata: %s\n", dv_serve_stream_last(stream) + 1, json) : -1;
    free(json);
    put(stream, bytes > 0 ? text : NULL, bytes);
}

void dv_serve_stream_beat(dv_serve_stream *stream) {
    char *text = strdup(":\n\n");
    put(stream, text, 3);
}

void dv_serve_stream_close(dv_serve_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->closed = true;
    wake_listeners(stream);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- listeners ---- */

uint64_t dv_serve_stream_last(dv_serve_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    uint64_t last = stream->last;
    pthread_mutex_unlock(&stream->lock);
    return last;
}

size_t dv_serve_stream_listeners(dv_serve_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    size_t count = stream->listener_count;
    pthread_mutex_unlock(&stream->lock);
    return count;
}

uint64_t dv_serve_stream_bytes(dv_serve_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    uint64_t bytes = stream->sent_bytes;
    pthread_mutex_unlock(&stream->lock);
    return bytes;
}

dv_serve_listener *dv_serve_stream_listen(dv_serve_stream *stream, struct MHD_Connection *connection) {
    dv_serve_listener *found = NULL;
    pthread_mutex_lock(&stream->lock);
    for (size_t i = 0; !found && !stream->closed && i < DV_SERVE_LISTENERS_MAX; i++) {
        if (!stream->listeners[i].connection) found = &stream->listeners[i];
    }
    if (found) {
        *found = (dv_serve_listener){.stream = stream, .connection = connection, .next = stream->last + 1};
        stream->listener_count++;
    }
    pthread_mutex_unlock(&stream->lock);
    return found;
}

void dv_serve_stream_leave(void *context) {
    dv_serve_listener *l = context;
    dv_serve_stream *stream = l->stream;
    pthread_mutex_lock(&stream->lock);
    l->connection = NULL;
    stream->listener_count--;
    pthread_mutex_unlock(&stream->lock);
}

static ssize_t read_frame(dv_serve_stream *stream, dv_serve_listener *l, char *out, size_t room) {
    uint64_t oldest = stream->last - stream->count + 1;
    if (l->next < oldest) return MHD_CONTENT_READER_END_OF_STREAM; /* It has fallen behind. */
    const frame *f = &stream->frames[(stream->first + (size_t)(l->next - oldest)) % DV_SERVE_FRAMES_MAX];
    size_t bytes = f->bytes - l->offset;
    if (bytes > room) bytes = room;
    memcpy(out, f->text + l->offset, bytes);
    l->offset += bytes;
    stream->sent_bytes += bytes;
    if (l->offset == f->bytes) {
        l->offset = 0;
        l->next++;
    }
    return (ssize_t)bytes;
}

ssize_t dv_serve_stream_read(void *context, uint64_t position, char *out, size_t room) {
    static const char hello[] = "retry: 2000\n\n";
    dv_serve_listener *l = context;
    dv_serve_stream *stream = l->stream;
    if (position == 0 && room >= sizeof hello - 1) { /* So that the headers leave at once, too. */
        memcpy(out, hello, sizeof hello - 1);
        return sizeof hello - 1;
    }
    pthread_mutex_lock(&stream->lock);
    ssize_t bytes = 0;
    if (stream->closed) bytes = MHD_CONTENT_READER_END_OF_STREAM;
    else if (l->next <= stream->last) bytes = read_frame(stream, l, out, room);
    else {
        l->suspended = true;
        MHD_suspend_connection(l->connection);
    }
    pthread_mutex_unlock(&stream->lock);
    return bytes;
}
