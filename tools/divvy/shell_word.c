/* Names as words of the commands that are printed for an operator to copy. SPDX-License-Identifier: Apache-2.0 */
#include "shell_word.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* A word as far as it is written. */
typedef struct {
    char *out;
    size_t used;
} word;

/* Nothing is written once the word is full, which leaves it full. */
static void put(word *w, const char *text, size_t bytes) {
    if (bytes >= DV_SHELL_WORD_BYTES - w->used) bytes = DV_SHELL_WORD_BYTES - w->used;
    memcpy(w->out + w->used, text, bytes);
    w->used += bytes;
}

static void put_text(word *w, const char *text) {
    put(w, text, strlen(text));
}

static bool is_plain(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           (letter && strchr("_@%+=:,./-", letter));
}

/* zsh looks for a program where a word begins with "=". */
static bool needs_quotes(const char *name) {
    bool plain = *name && *name != '-' && *name != '=';
    for (const char *letter = name; plain && *letter; letter++) plain = is_plain(*letter);
    return !plain;
}

static bool can_be_shown(const char *name) {
    for (size_t bytes; *name; name += bytes) {
        bytes = dv_text_shown_bytes(name);
        if (bytes == 0) return false;
    }
    return true;
}

static void put_quoted(word *w, const char *name) {
    put_text(w, "'");
    for (size_t bytes; *name; name += bytes) {
        bytes = strcspn(name, "'");
        put(w, name, bytes);
        if (bytes > 0) continue;
        put_text(w, "'\\''");
        bytes = 1;
    }
    put_text(w, "'");
}

/* Nothing in it is left to a shell's history, to dv_text_readable(), or to who looks for quotes. */
static void put_escaped(word *w, const char *name) {
    char escape[8];
    put_text(w, "$'");
    for (size_t bytes; *name; name += bytes) {
        bytes = strchr("'\\!%", *name) ? 0 : dv_text_shown_bytes(name);
        if (bytes > 0) {
            put(w, name, bytes);
            continue;
        }
        snprintf(escape, sizeof escape, "\\%03o", (unsigned char)*name);
        put_text(w, escape);
        bytes = 1;
    }
    put_text(w, "'");
}

static const char *write_word(char out[DV_SHELL_WORD_BYTES], const char *front, const char *otherwise,
                              const char *name) {
    word w = {.out = out};
    put_text(&w, front);
    if (!needs_quotes(name)) put_text(&w, name);
    else if (can_be_shown(name)) put_quoted(&w, name);
    else put_escaped(&w, name);
    if (w.used < DV_SHELL_WORD_BYTES) out[w.used] = '\0';
    else snprintf(out, DV_SHELL_WORD_BYTES, "%s", otherwise);
    return out;
}

const char *dv_shell_word(char out[DV_SHELL_WORD_BYTES], const char *otherwise, const char *format, ...) {
    char name[DV_SHELL_WORD_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (bytes >= 0 && bytes < DV_SHELL_WORD_BYTES) return write_word(out, "", otherwise, name);
    snprintf(out, DV_SHELL_WORD_BYTES, "%s", otherwise);
    return out;
}

const char *dv_shell_operand(char out[DV_SHELL_WORD_BYTES], const char *otherwise, const char *name) {
    return write_word(out, *name == '-' ? "-- " : "", otherwise, name);
}
