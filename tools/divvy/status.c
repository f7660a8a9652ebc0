/* divvy status: who owns what in a pool. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "columns.h"
#include "command.h"
#include "dispositions.h"
#include "format.h"
#include "item_list.h"
#include "items_feed.h"
#include "items_options.h"
#include "log.h"
#include "look.h"
#include "option_rows.h"
#include "status_print.h"
#include "table_screen.h"

static const char command[] = "status";

typedef struct {
    dv_look_options look;
    const char *path;
    const char *items_from, *items_command, *items_znode;
    dv_texts items;
    int json, watch, wide;
    const char *format_text;
    dv_format *format;
    int64_t interval_ms;

    dv_item_list list;
    struct stat read_as; /* items_from, when it was read */
} status_options;

#define OPTION_VALUES status_options

static const dv_option table[] = {
    TEXT("path", "PATH", path, "the pool, an absolute znode path such as /work_queues; required"),
    TEXT("items-from", "FILE", items_from,
         "the items that should exist, one a line (- is standard input): those that\n"
         "nobody ever owned are shown too; with --watch, divvy reads FILE again when\n"
         "it has changed"),
    DV_ITEMS_OPTION_COMMAND(status_options, items_command),
    DV_ITEMS_OPTION_ZNODE(status_options, items_znode),
    TEXTS("item", "ITEM", items, "an item that should exist; repeat the option for each item"),
    FLAG("json", json, "print one JSON object on one line"),
    DV_FORMAT_OPTION(status_options, format_text, "item, or member", "{item}\\t{owner}"),
    FLAG("watch", watch,
         "look again and again, and mark changes: + new, * changed, - gone; a terminal\n"
         "shows them in place"),
    DURATION("interval", interval_ms, 100, 24 * 3600 * 1000, "the pause between two looks (default: 2s)"),
    DV_WIDE_OPTION(status_options, wide),
    DV_LOOK_OPTIONS(status_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy status --path PATH [OPTION ...]\n"
           "\n"
           "Shows the pool at PATH: its members, with those of kazoo; for each item its owner, its\n"
           "fencing token, since when it has this owner, and how many members wait for it. If the\n"
           "pool follows a plan: how many items each member is to have, and which members are\n"
           "drained, absent or leaving. Changes nothing.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the pool was shown; 1 there is no pool, or divvy may not read it: standard\n"
           "error says why; 2 wrong usage; 3 no server answered within --timeout.\n");
}

/* ---- options ---- */

static int parse(status_options *o, int argc, char **argv) {
    int code = dv_options_parse(command, table, o, argc, argv);
    if (code == 0) code = dv_options_check_pool(command, o->path);
    if (code != 0) return code;
    dv_items_given given = {o->items_from, o->items_command, o->items_znode, o->items.count};
    const char *wrong = dv_items_given_wrong(&given, false);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    code = dv_look_options_finish(&o->look, command);
    if (code == 0) code = dv_format_parse(&o->format, command, o->format_text, o->json, dv_status_formats);
    if (code != 0) return code;
    if (o->items_from && stat(o->items_from, &o->read_as) != 0) o->read_as = (struct stat){0};
    if (o->items_from) return dv_item_list_read(&o->list, o->items_from);
    return o->items.count > 0 ? dv_item_list_copy(&o->list, &o->items) : 0;
}

static void free_options(status_options *o) {
    dv_item_list_free(&o->list);
    dv_format_free(o->format);
    free((void *)(uintptr_t)o->items.texts);
    dv_look_options_free(&o->look);
}

/* ---- showing ---- */

typedef struct {
    status_options *options;
    dv_look *look;
    dv_output output;
    dv_screen screen;
    dv_status status;
    dv_pool_plan plan;
    dv_status_page page;
    bool shown; /* at least once */
} viewer;

static int show(viewer *v) {
    dv_status_page before = v->page;
    v->page = (dv_status_page){.members = NULL};
    const status_options *o = v->options;
    char *text = o->json ? dv_status_page_json(&v->status)
                 : o->format
                     ? dv_status_page_format(&v->status, o->format)
                     : dv_status_page_print(&v->status, &v->page, &before, o->watch, dv_columns_of_output(o->wide));
    dv_status_page_free(&before);
    int code = text ? 0 : dv_command_out_of_memory();
    if (text && (o->json || o->format)) dv_output_write(&v->output, text, strlen(text));
    else if (text && dv_screen_show(&v->screen, text) != 0) code = dv_command_out_of_memory();
    free(text);
    v->shown = true;
    return code;
}

static bool asked_to_end(const viewer *v) {
    struct signalfd_siginfo info;
    return v->output.ended || read(v->output.stop_fd, &info, sizeof info) == (ssize_t)sizeof info;
}

/* ---- items that are followed ---- */

static void expect(viewer *v, const dv_item_list *list) {
    dv_item_list_free(&v->options->list);
    v->options->list = *list;
    v->status.expected = &v->options->list;
}

typedef struct {
    const char *shown;
    char *path;
    dv_item_list list;
    bool in_order;
    int error; /* of the read */
} znode_look;

static char *znode_path(void *context, size_t i) {
    (void)i;
    return strdup(((znode_look *)context)->path);
}

static int take_znode(void *context, size_t i, const dv_reply *reply) {
    znode_look *z = context;
    (void)i;
    z->error = reply->error;
    if (!z->error) z->in_order = dv_items_of_children(&z->list, reply->children, reply->child_count, z->shown) == 0;
    return 0;
}

static int read_znode(dv_look *look, void *context) {
    const dv_reads reads = {DV_CHILDREN, 1, znode_path, take_znode, context};
    return dv_look_read(look, &reads);
}

/* Returns 0, or an error of the look. */
static int look_at_znode(viewer *v) {
    znode_look z = {.shown = v->options->items_znode, .path = dv_look_path(v->look, v->options->items_znode)};
    int error = z.path ? dv_look_at(v->look, read_znode, &z) : DIVVY_ENOMEM;
    if (!error && z.error) dv_command_say("%s cannot be read: %s", z.shown, divvy_strerror(z.error));
    if (!error && z.in_order) expect(v, &z.list);
    free(z.path);
    return error;
}

/* Reads what is followed. After a fault, which was told, the last list stays. Returns 0, or an error of the look. */
static int read_items(viewer *v) {
    const status_options *o = v->options;
    dv_item_list list = {0};
    if (o->items_znode) return look_at_znode(v);
    if (o->items_command && dv_items_run_whole(o->items_command, &list, v->output.stop_fd) == DV_ITEMS_TOLD)
        expect(v, &list);
    return 0;
}

/* Returns whether there should be a list of items by now, and is none. */
static bool lacks_items(const viewer *v) {
    return (v->options->items_znode || v->options->items_command) && !v->status.expected;
}

static int look_once(viewer *v) {
    int error = read_items(v);
    if (!error && lacks_items(v)) return asked_to_end(v) ? 0 : DV_EXIT_FAILED;
    if (!error) error = dv_look_at(v->look, dv_status_pool_read, &v->status);
    if (error == DIVVY_ECANCELED) return 0;
    if (error) {
        int code = dv_look_failed(v->look, error);
        return v->shown && dv_look_may_recover(error) ? 0 : code;
    }
    if (v->status.found || v->options->watch) return show(v);
    return dv_command_failed("there is no pool at %s: it has neither members nor locks", v->options->path);
}

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the file of items again if it has changed. A fault in it is told once, and the list stays as it was. */
static void follow_file(viewer *v) {
    status_options *o = v->options;
    struct stat now;
    if (!o->items_from || strcmp(o->items_from, "-") == 0 || stat(o->items_from, &now) != 0 || !S_ISREG(now.st_mode) ||
        is_same(&now, &o->read_as))
        return;
    o->read_as = now;
    dv_item_list list;
    if (dv_item_list_read(&list, o->items_from) != 0) return;
    dv_item_list_free(&o->list);
    o->list = list;
}

static int watch(viewer *v) {
    int code;
    while ((code = look_once(v)) == 0 && !asked_to_end(v)) {
        dv_look_pause(v->look, v->options->interval_ms, &v->output);
        if (asked_to_end(v)) break;
        follow_file(v);
    }
    return code;
}

static int run_viewer(status_options *o) {
    viewer v = {.options = o, .output = {.stop_fd = -1}, .status = {.path = o->path}};
    if (o->list.count > 0) v.status.expected = &o->list;
    if (o->watch && (v.output.stop_fd = dv_dispositions_receive_ends()) < 0)
        return dv_command_failed("cannot receive signals: %s", strerror(errno));
    dv_screen_init(&v.screen, &v.output);
    v.screen.in_place = v.screen.in_place && o->watch;
    int code = dv_look_open(&v.look, &o->look, command, v.output.stop_fd);
    if (code == 0) code = dv_pool_plan_init(&v.plan, v.look, o->path) == 0 ? 0 : dv_command_out_of_memory();
    v.status.plan = &v.plan;
    if (code == 0) code = o->watch ? watch(&v) : look_once(&v);
    if (code == 0 && v.output.error)
        code = dv_command_failed("cannot write to standard output: %s", strerror(v.output.error));
    dv_look_close(v.look);
    dv_status_pool_clear(&v.status);
    dv_pool_plan_free(&v.plan);
    dv_status_page_free(&v.page);
    if (v.output.stop_fd >= 0) close(v.output.stop_fd);
    return code;
}

static int run(int argc, char **argv) {
    status_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}, .interval_ms = 2000};
    int code = parse(&o, argc, argv);
    if (code == 0) {
        dv_log_field("pool", o.path);
        code = run_viewer(&o);
    }
    free_options(&o);
    return code;
}

const dv_command dv_status_command = {
    .name = command,
    .summary = "show who owns what in a pool",
    .run = run,
    .print_help = print_help,
};
