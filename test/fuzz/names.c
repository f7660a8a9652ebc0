/* Fuzzes names: the item codec, the rules for paths, sequence numbers, names shown. SPDX-License-Identifier:
 * Apache-2.0 */
#include "base/guid.h"
#include "base/utf8.h"
#include "divvy/error.h"
#include "fuzz.h"
#include "recipe/record.h"
#include "znode/path.h"
#include "znode/sequence.h"

/* N2, N4: what is encoded is a component of a path that ZooKeeper takes, and is had back. */
static void check_codec(const char *name) {
    size_t bytes = strlen(name), encoded_bytes = dv_name_encode(name, NULL, 0);
    FUZZ_CHECK(encoded_bytes >= bytes && encoded_bytes <= 3 * bytes);
    char *encoded = malloc(encoded_bytes + 1), *decoded = malloc(encoded_bytes + 1);
    if (!encoded || !decoded) abort();
    FUZZ_CHECK(dv_name_encode(name, encoded, encoded_bytes + 1) == encoded_bytes);
    FUZZ_CHECK(strlen(encoded) == encoded_bytes);
    FUZZ_CHECK(dv_name_decode(encoded, decoded, encoded_bytes + 1) == bytes);
    FUZZ_CHECK(strcmp(decoded, name) == 0);
    FUZZ_CHECK(dv_name_is_plain(name) == (strcmp(encoded, name) == 0));
    char *path = dv_path_join("/", encoded);
    if (!path) abort();
    bool reserved = strcmp(path, "/zookeeper") == 0;
    FUZZ_CHECK((dv_path_check(path, NULL) == 0) == !reserved); /* of nothing, that is the root */
    FUZZ_CHECK(strcmp(dv_path_last(path), encoded) == 0);
    free(path);
    /* Too little room: what fits, and the length that the whole would have. */
    char few[8];
    FUZZ_CHECK(dv_name_encode(name, few, sizeof few) == encoded_bytes);
    FUZZ_CHECK(strlen(few) == (encoded_bytes < sizeof few ? encoded_bytes : sizeof few - 1));
    FUZZ_CHECK(strncmp(few, encoded, strlen(few)) == 0);
    free(encoded);
    free(decoded);
}

/* Checks that a name of somebody else's is decoded to one that is no longer, and that has a node's name of its own. */
static void check_foreign(const char *node) {
    size_t bytes = dv_name_decode(node, NULL, 0), node_bytes = strlen(node);
    FUZZ_CHECK(bytes <= node_bytes);
    char *decoded = malloc(bytes + 1);
    if (!decoded) abort();
    FUZZ_CHECK(dv_name_decode(node, decoded, bytes + 1) == bytes);
    FUZZ_CHECK(strlen(decoded) == bytes);
    check_codec(decoded);
    free(decoded);
}

static void check_path(const char *path) {
    const char *reason = NULL;
    int error = dv_path_check(path, &reason);
    FUZZ_CHECK(error == 0 || (error == DIVVY_EINVAL && reason));
    if (error == 0) FUZZ_CHECK(path[0] == '/' && dv_is_utf8(path));
    (void)dv_path_last(path);
}

static void check_sequence(const char *name) {
    static const char *const markers[] = {"__lock__", "__rlock__", "-", "0"};
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        int32_t sequence = 12345;
        if (!dv_sequence_parse(name, markers[i], &sequence)) {
            FUZZ_CHECK(sequence == 12345);
            continue;
        }
        /* It is what the server would have written. */
        char number[16];
        size_t bytes = (size_t)snprintf(number, sizeof number, "%010d", (int)sequence);
        FUZZ_CHECK(strlen(name) >= bytes && strcmp(name + strlen(name) - bytes, number) == 0);
        FUZZ_CHECK(dv_sequence_compare(sequence, sequence) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    while (in.at < in.end) {
        char *text = fuzz_text(&in, '\0');
        check_codec(text);
        check_foreign(text);
        check_path(text);
        check_sequence(text);
        (void)dv_guid_is_of_former_session(text, "aaaaaaaaaaabbbbbbbbbbbc");
        (void)dv_guid_is_of_former_session("aaaaaaaaaaabbbbbbbbbbbc", text);
        free(text);
    }
    return 0;
}
