/* divvy_strings: a list that a call returns. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

struct divvy_strings {
    char **texts;
    size_t count, room;
};

divvy_strings *dv_strings_new(void) {
    return calloc(1, sizeof(divvy_strings));
}

int dv_strings_add(divvy_strings *strings, const char *text) {
    if (strings->count == strings->room) {
        size_t room = strings->room ? 2 * strings->room : 8;
        char **texts = realloc(strings->texts, room * sizeof *texts);
        if (!texts) return DIVVY_ENOMEM;
        strings->texts = texts;
        strings->room = room;
    }
    char *copy = strdup(text);
    if (!copy) return DIVVY_ENOMEM;
    strings->texts[strings->count++] = copy;
    return 0;
}

size_t divvy_strings_count(const divvy_strings *strings) {
    return strings ? strings->count : 0;
}

const char *divvy_strings_get(const divvy_strings *strings, size_t i) {
    return strings && i < strings->count ? strings->texts[i] : NULL;
}

void divvy_strings_free(divvy_strings *strings) {
    if (!strings) return;
    for (size_t i = 0; i < strings->count; i++) free(strings->texts[i]);
    free(strings->texts);
    free(strings);
}
