/* Four letter words, by which a server tells of itself. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_WORD_H
#define DV_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Sends a word in plain text to a server, over a connection of its own, and reads its answer, until the time, by
 * CLOCK_MONOTONIC. Returns the answer's bytes, 0 when there is none. */
size_t dv_word_ask(const struct sockaddr *where, socklen_t where_bytes, const char *word, char *answer,
                   size_t answer_bytes, int64_t until_ms);

#endif
