/* Names whose addresses a test says. SPDX-License-Identifier: Apache-2.0
 *
 * For a program that is linked with -Wl,--wrap=getaddrinfo (test/CMakeLists.txt): names that end with ".names" have the
 * addresses that dv_names_set() gave them, all others those of the system. Include it in one file of the program. */
#ifndef DV_TEST_NAMES_H
#define DV_TEST_NAMES_H

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DV_NAMES_MAX = 8 };

static struct {
    pthread_mutex_t mutex;
    const char *names[DV_NAMES_MAX], *addresses[DV_NAMES_MAX];
} dv_names = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* From now on the name has these addresses, IP literals with blanks between; NULL: it cannot be resolved. */
static inline void dv_names_set(const char *name, const char *addresses) {
    pthread_mutex_lock(&dv_names.mutex);
    size_t i = 0;
    while (i < DV_NAMES_MAX && dv_names.names[i] && strcmp(dv_names.names[i], name) != 0) i++;
    if (i == DV_NAMES_MAX) abort();
    dv_names.names[i] = name;
    dv_names.addresses[i] = addresses;
    pthread_mutex_unlock(&dv_names.mutex);
}

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out);

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
    const char *end = strstr(name, ".names");
    if (!end || (hints->ai_flags & AI_NUMERICHOST)) return __real_getaddrinfo(name, service, hints, out);
    char text[256] = "", *rest = NULL;
    pthread_mutex_lock(&dv_names.mutex);
    for (size_t i = 0; i < DV_NAMES_MAX && dv_names.names[i]; i++) {
        if (strcmp(dv_names.names[i], name) == 0 && dv_names.addresses[i])
            strncat(text, dv_names.addresses[i], sizeof text - 1);
    }
    pthread_mutex_unlock(&dv_names.mutex);
    struct addrinfo **place = out;
    *out = NULL;
    for (char *ip = strtok_r(text, " ", &rest); ip; ip = strtok_r(NULL, " ", &rest)) {
        struct addrinfo literal = *hints;
        literal.ai_flags |= AI_NUMERICHOST;
        if (__real_getaddrinfo(ip, service, &literal, place) != 0) abort();
        place = &(*place)->ai_next;
    }
    return *out ? 0 : EAI_AGAIN;
}

#endif
