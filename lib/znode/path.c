/* Rules for ZooKeeper paths and the codec of names in them. SPDX-License-Identifier: Apache-2.0 */
#include "znode/path.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "divvy/error.h"

/* Collects the output of the codec as snprintf does: counts every byte, keeps those that fit. */
typedef struct {
    char *out;
    size_t out_bytes;
    size_t count;
} writer;

static void writer_put(writer *w, unsigned char byte) {
    if (w->count < w->out_bytes) w->out[w->count] = (char)byte;
    w->count++;
}

/* The NUL takes the place of the last byte where all were filled. */
static size_t writer_finish(writer *w) {
    if (w->out_bytes > 0) w->out[w->count < w->out_bytes ? w->count : w->out_bytes - 1] = '\0';
    return w->count;
}

/* The ranges of the server's PathUtils.validatePath(). It looks at UTF-16 units, so whatever lies beyond the BMP is a
 * pair of surrogates to it; and it decodes malformed bytes to U+FFFD, which is in the last range. */
static bool code_point_refused(uint32_t code_point) {
    return code_point <= 0x1f || (code_point >= 0x7f && code_point <= 0x9f) ||
           (code_point >= 0xd800 && code_point <= 0xf8ff) || code_point >= 0xfff0;
}

/* Returns the byte that "%XX" at `at` stands for, or 0 where no escape stands, as N4 says of "%00". */
static unsigned char escape_value(const char *at) {
    int byte = at[0] == '%' ? dv_hex_byte(at + 1) : 0;
    return byte < 0 ? 0 : (unsigned char)byte;
}

static bool is_dots(const char *component, size_t bytes) {
    return (bytes == 1 && component[0] == '.') || (bytes == 2 && component[0] == '.' && component[1] == '.');
}

static void put_escaped(writer *w, unsigned char byte) {
    static const char digits[] = "0123456789ABCDEF";
    writer_put(w, '%');
    writer_put(w, (unsigned char)digits[byte >> 4]);
    writer_put(w, (unsigned char)digits[byte & 0x0f]);
}

/* N2: returns whether the character at `at` has to be escaped, in a name that is not "." or "..". */
static bool must_escape(const char *at, uint32_t code_point) {
    if (code_point == '/' || code_point_refused(code_point)) return true;
    /* A '%' that the encoder writes behind a raw one is no hex digit, so looking at the input is enough. */
    return code_point == '%' && dv_hex_byte(at + 1) >= 0;
}

size_t dv_name_encode(const char *name, char *out, size_t out_bytes) {
    assert(name != NULL);
    assert(out != NULL || out_bytes == 0);
    writer w = {.out = out, .out_bytes = out_bytes};
    bool dots = is_dots(name, strlen(name));
    for (const char *at = name; *at != '\0';) {
        uint32_t code_point = 0;
        size_t bytes = dv_utf8_read((const unsigned char *)at, &code_point);
        bool escaped = dots || bytes == 0 || must_escape(at, code_point);
        if (bytes == 0) bytes = 1; /* The next one may begin a character. */
        for (const char *end = at + bytes; at < end; at++) {
            if (escaped) put_escaped(&w, (unsigned char)*at);
            else writer_put(&w, (unsigned char)*at);
        }
    }
    assert(w.count >= strlen(name));
    return writer_finish(&w);
}

size_t dv_name_decode(const char *node, char *out, size_t out_bytes) {
    assert(node != NULL);
    assert(out != NULL || out_bytes == 0);
    writer w = {.out = out, .out_bytes = out_bytes};
    for (const char *at = node; *at != '\0';) { /* Rule N4: once, from left to right. */
        unsigned char escaped = escape_value(at);
        writer_put(&w, escaped != 0 ? escaped : (unsigned char)*at);
        at += escaped != 0 ? 3 : 1;
    }
    return writer_finish(&w);
}

bool dv_name_is_plain(const char *name) {
    /* An escape is longer than what it stands for, so equal lengths mean equal texts. */
    return dv_name_encode(name, NULL, 0) == strlen(name);
}

/* Returns the fault of one component of `bytes` bytes, or NULL. */
static const char *component_fault(const char *component, size_t bytes) {
    if (bytes == 0) return "has an empty component";
    if (is_dots(component, bytes)) return "has a component \".\" or \"..\"";
    for (size_t at = 0; at < bytes;) {
        uint32_t code_point = 0;
        size_t read = dv_utf8_read((const unsigned char *)component + at, &code_point);
        if (read == 0) return "is not valid UTF-8";
        if (code_point_refused(code_point)) return "has a character that ZooKeeper refuses";
        at += read;
        assert(at <= bytes); /* A '/' is no continuation byte, so no character crosses the end. */
    }
    return NULL;
}

static const char *path_fault(const char *path) {
    static const char reserved[] = "/zookeeper";
    const size_t reserved_bytes = sizeof reserved - 1;
    if (path == NULL) return "is missing";
    if (path[0] == '\0') return "is empty";
    if (path[0] != '/') return "does not begin with \"/\"";
    if (path[1] == '\0') return NULL;
    if (path[strlen(path) - 1] == '/') return "ends with \"/\"";
    for (const char *slash = path; *slash != '\0';) {
        size_t bytes = strcspn(slash + 1, "/");
        const char *fault = component_fault(slash + 1, bytes);
        if (fault != NULL) return fault;
        slash += 1 + bytes;
    }
    if (strncmp(path, reserved, reserved_bytes) == 0 && (path[reserved_bytes] == '\0' || path[reserved_bytes] == '/')) {
        return "is in \"/zookeeper\", which is the server's own";
    }
    return NULL;
}

int dv_path_check(const char *path, const char **reason) {
    const char *fault = path_fault(path);
    if (fault == NULL) return 0;
    if (reason != NULL) *reason = fault;
    return DIVVY_EINVAL;
}

int dv_chroot_check(const char *chroot, const char **reason) {
    if (strpbrk(chroot, ",; ") != NULL) { /* H4 */
        *reason = "has a comma, a semicolon or a space in its chroot, which stands once, behind the last host: "
                  "h1:2181,h2:2181/chroot";
        return DIVVY_EINVAL;
    }
    *reason = "has a chroot that is no valid path";
    return chroot[0] == '\0' || dv_path_check(chroot, NULL) == 0 ? 0 : DIVVY_EINVAL;
}

bool dv_path_is_limits(const char *path) {
    static const char root[] = "/zookeeper/quota/", last[] = "/zookeeper_limits";
    size_t bytes = strlen(path), root_bytes = strlen(root), last_bytes = strlen(last);
    return bytes > root_bytes + last_bytes && strncmp(path, root, root_bytes) == 0 &&
           strcmp(path + bytes - last_bytes, last) == 0 && path_fault(path + root_bytes - 1) == NULL;
}

char *dv_path_join(const char *parent, const char *name) {
    assert(parent != NULL && name != NULL);
    /* The root is the only path that ends with a slash: as parent it counts as nothing. */
    const char *top = strcmp(parent, "/") == 0 ? "" : parent;
    char *path = malloc(strlen(top) + 1 + strlen(name) + 1);
    if (path != NULL) stpcpy(stpcpy(stpcpy(path, top), "/"), name);
    return path;
}

const char *dv_path_last(const char *path) {
    assert(path != NULL);
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

int dv_name_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
