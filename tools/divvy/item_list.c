/* The items a subcommand was given. SPDX-License-Identifier: Apache-2.0 */
#include "item_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* The library's own bounds; here they keep an endless input from filling the memory first. */
enum { ITEMS_MAX = 1000000, ITEM_BYTES_MAX = 65536 };

typedef struct {
    char *name;
    size_t line; /* 0 for the command line */
} entry;

typedef struct {
    entry *entries;
    size_t count, room;
} entries;

typedef struct {
    FILE *file;
    const char *shown; /* for messages */
    size_t line;
    char text[ITEM_BYTES_MAX + 2]; /* an item, and a CR, and a NUL byte */
    size_t bytes;
} reader;

static int add(entries *e, const char *name, size_t line) {
    if (e->count == e->room) {
        size_t room = e->room ? 2 * e->room : 64;
        entry *grown = realloc(e->entries, room * sizeof *grown);
        if (!grown) return -1;
        e->entries = grown;
        e->room = room;
    }
    char *copy = strdup(name);
    if (!copy) return -1;
    e->entries[e->count++] = (entry){copy, line};
    return 0;
}

static int compare(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* ---- blanks ---- */

static const char blanks[] = " \t\v\f\r";

static bool has_blank_ends(const char *name) {
    return strchr(blanks, name[0]) || strchr(blanks, name[strlen(name) - 1]);
}

/* Returns the item that is `name` without the blanks at its ends, or NULL. The entries are sorted. */
static const entry *find_trimmed(const entries *e, const char *name) {
    name += strspn(name, blanks);
    size_t bytes = strlen(name);
    while (bytes > 0 && strchr(blanks, name[bytes - 1])) bytes--;
    entry like = {.name = strndup(name, bytes)};
    size_t low = 0, high = e->count;
    while (like.name && low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(e->entries[middle].name, like.name) < 0) low = middle + 1;
        else high = middle;
    }
    bool found = like.name && low < e->count && strcmp(e->entries[low].name, like.name) == 0;
    free(like.name);
    return found ? &e->entries[low] : NULL;
}

/* Warns of the first item with blanks at its ends, since they are hardly ever meant, with the count of the others. An
 * item that is like another one but for them comes first. */
static void warn_of_blanks(const entries *e, const char *shown) {
    const entry *first = NULL, *twin = NULL;
    size_t count = 0;
    for (size_t i = 0; i < e->count; i++) {
        const entry *one = &e->entries[i];
        if (!has_blank_ends(one->name)) continue;
        count++;
        const entry *other = twin ? NULL : find_trimmed(e, one->name);
        if (!first || other) first = one;
        if (other) twin = other;
    }
    if (!first) return;
    char line[32] = "", others[64] = "", same[160] = "";
    if (first->line) snprintf(line, sizeof line, ", line %zu", first->line);
    if (count > 1) snprintf(others, sizeof others, "; %zu more items are like that", count - 1);
    if (twin) snprintf(same, sizeof same, "; \"%.100s\" is another item", twin->name);
    dv_command_say("warning: %s%s: the item \"%.100s\" has blanks at its ends, which are part of it%s%s", shown, line,
                   first->name, same, others);
}

/* Hands the names over to `list`. Returns 0, or the exit code. */
static int finish(dv_item_list *list, entries *e, const char *shown) {
    if (e->count == 0) {
        dv_command_say("%s: there are no items in it", shown);
        return DV_EXIT_USAGE;
    }
    qsort(e->entries, e->count, sizeof *e->entries, compare);
    for (size_t i = 1; i < e->count; i++) {
        const entry *one = &e->entries[i - 1], *two = &e->entries[i];
        if (strcmp(one->name, two->name) != 0) continue;
        if (two->line) {
            dv_command_say("%s: the item \"%.100s\" is given twice, in lines %zu and %zu", shown, two->name, one->line,
                           two->line);
        } else {
            dv_command_say("%s: the item \"%.100s\" is given twice", shown, two->name);
        }
        return DV_EXIT_USAGE;
    }
    warn_of_blanks(e, shown);
    list->names = (const char **)(uintptr_t)calloc(e->count, sizeof *list->names);
    if (!list->names) return dv_command_out_of_memory();
    for (size_t i = 0; i < e->count; i++) {
        list->names[i] = e->entries[i].name;
        e->entries[i].name = NULL;
    }
    list->count = e->count;
    return 0;
}

static void free_entries(entries *e) {
    for (size_t i = 0; i < e->count; i++) free(e->entries[i].name);
    free(e->entries);
}

/* ---- a file ---- */

/* Returns 1 with a line in `text`, 0 at the end, -1 when what is wrong was told. */
static int read_line(reader *r) {
    int c;
    r->bytes = 0;
    r->line++;
    while ((c = getc_unlocked(r->file)) != EOF && c != '\n') {
        if (c == '\0') {
            dv_command_say("%s, line %zu: there is a NUL byte in it; is this a list of items?", r->shown, r->line);
            return -1;
        }
        if (r->bytes > ITEM_BYTES_MAX) {
            dv_command_say("%s, line %zu: the item has more than %d bytes", r->shown, r->line, ITEM_BYTES_MAX);
            return -1;
        }
        r->text[r->bytes++] = (char)c;
    }
    if (ferror(r->file)) {
        dv_command_say("%s: cannot be read: %s", r->shown, strerror(errno));
        return -1;
    }
    if (c == EOF && r->bytes == 0) return 0;
    if (r->bytes > 0 && r->text[r->bytes - 1] == '\r') r->bytes--;
    r->text[r->bytes] = '\0';
    return 1;
}

static int read_all(reader *r, entries *e) {
    static const char mark[] = "\xef\xbb\xbf"; /* of byte order; some editors write one */
    int outcome;
    while ((outcome = read_line(r)) == 1) {
        const char *item = r->text;
        if (r->line == 1 && strncmp(item, mark, sizeof mark - 1) == 0) item += sizeof mark - 1;
        if (*item == '#' || item[strspn(item, " \t")] == '\0') continue;
        if (e->count == ITEMS_MAX) {
            dv_command_say("%s, line %zu: there are more than %d items", r->shown, r->line, ITEMS_MAX);
            return DV_EXIT_USAGE;
        }
        if (add(e, item, r->line) != 0) return dv_command_out_of_memory();
    }
    return outcome == 0 ? 0 : DV_EXIT_USAGE;
}

int dv_item_list_parse(dv_item_list *list, FILE *file, const char *shown) {
    *list = (dv_item_list){0};
    reader *r = calloc(1, sizeof *r);
    entries e = {0};
    if (!r) return dv_command_out_of_memory();
    r->shown = shown;
    r->file = file;
    int outcome = read_all(r, &e);
    if (outcome == 0) outcome = finish(list, &e, shown);
    free_entries(&e);
    free(r);
    return outcome;
}

int dv_item_list_read(dv_item_list *list, const char *path) {
    if (strcmp(path, "-") == 0) return dv_item_list_parse(list, stdin, "standard input");
    *list = (dv_item_list){0};
    FILE *file = fopen(path, "re");
    if (!file) {
        dv_command_say("%s: cannot be opened: %s", path, strerror(errno));
        return DV_EXIT_USAGE;
    }
    int outcome = dv_item_list_parse(list, file, path);
    fclose(file);
    return outcome;
}

/* ---- names ---- */

int dv_item_list_of(dv_item_list *list, const char *const *names, size_t count, const char *shown) {
    *list = (dv_item_list){0};
    entries e = {0};
    int outcome = 0;
    for (size_t i = 0; i < count && outcome == 0; i++) {
        if (!*names[i]) {
            dv_command_say("%s: an item cannot be empty", shown);
            outcome = DV_EXIT_USAGE;
        } else if (add(&e, names[i], 0) != 0) {
            outcome = dv_command_out_of_memory();
        }
    }
    if (outcome == 0) outcome = finish(list, &e, shown);
    free_entries(&e);
    return outcome;
}

int dv_item_list_copy(dv_item_list *list, const dv_texts *texts) {
    return dv_item_list_of(list, texts->texts, texts->count, "--item");
}

bool dv_item_list_equal(const dv_item_list *a, const dv_item_list *b) {
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) equal = strcmp(a->names[i], b->names[i]) == 0;
    return equal;
}

void dv_item_list_free(dv_item_list *list) {
    for (size_t i = 0; i < list->count; i++) free((void *)(uintptr_t)list->names[i]);
    free((void *)(uintptr_t)list->names);
    *list = (dv_item_list){0};
}
