/* A cache on a scripted backend, answered by hand. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CACHE_SCRIPT_H
#define DV_CACHE_SCRIPT_H

#include "cache_fixture.h"
#include "lib/fake_znode.h"

static dv_fake *fake;
static divvy_client *client;
static int64_t zxid;

static inline void expect_asked(const char *text) {
    assert_string_equal(dv_fake_pending(fake), text);
}

/* The list under way is answered: each letter is a child. */
static inline void answer_names(const char *letters) {
    const char *names[64];
    char texts[64][2];
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++) {
        texts[i][0] = letters[i];
        texts[i][1] = '\0';
        names[i] = texts[i];
    }
    assert_int_equal(dv_fake_oldest(fake)->ops[0].kind, DV_CHILDREN);
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = count, .stat = &(dv_stat){.pzxid = ++zxid}});
}

static inline void answer_data_at(const char *text, int64_t czxid, int64_t mzxid) {
    assert_int_equal(dv_fake_oldest(fake)->ops[0].kind, DV_GET);
    dv_stat stat = {.czxid = czxid, .mzxid = mzxid};
    dv_fake_answer(fake, &(dv_reply){.data = text, .data_bytes = strlen(text), .stat = &stat});
}

static inline void answer_data(const char *text) {
    answer_data_at(text, 1, ++zxid);
}

static inline void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

static inline void fire(const char *path, dv_watch_kind kind) {
    assert_true(dv_fake_fire(fake, path, kind, true));
}

static inline void begin(const char *role) {
    begin_cache(client, NULL, role);
    dv_fake_run(fake);
}

static inline void advance(int64_t ms) {
    dv_fake_advance(fake, ms);
}

/* Warnings of the newest code, and how many there were. */
static struct {
    int count, code;
    char text[512];
} warned;

static inline void on_script_warning(divvy_client *c, int code, const char *message, void *user) {
    (void)c, (void)user;
    warned.count++;
    warned.code = code;
    snprintf(warned.text, sizeof warned.text, "%s", message);
}

static inline void open_script(size_t watch_path_bytes) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.watch_path_bytes = watch_path_bytes;
    config.on_warning = on_script_warning;
    memset(&warned, 0, sizeof warned);
    zxid = 100;
    fake = dv_fake_open(&config);
    client = dv_fake_client(fake);
    dv_fake_session(fake, DIVVY_CONNECTED);
    memset(&warned, 0, sizeof warned);
}

static inline int set_up_script(void **state) {
    (void)state;
    open_script(0);
    return 0;
}

static inline int tear_down_script(void **state) {
    (void)state;
    end_cache(client);
    while (dv_fake_oldest(fake)) answer_error(DIVVY_ECONNECTION);
    bool clean = !told.cache && !dv_fake_has_timers(fake) && !client->listeners && client->watched.used_bytes == 0;
    dv_fake_close(fake);
    return clean ? 0 : -1;
}

#endif
