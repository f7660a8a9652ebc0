/* Tests of znode/apache/hosts.h. SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/names.h"
#include "lib/test.h"
#include "lib/wait.h"
#include "znode/apache/hosts.h"

#define PATIENCE_MS 20000

/* Parsed, and written again as name|port,...|chroot. */
static const char *parsed(const char *text) {
    static char out[4096];
    dv_hosts hosts;
    const char *reason = NULL;
    assert_int_equal(dv_hosts_parse(&hosts, text, &reason), 0);
    out[0] = '\0';
    for (size_t i = 0; i < hosts.count; i++) {
        size_t at = strlen(out);
        snprintf(out + at, sizeof out - at, "%s%s|%s", i ? "," : "", hosts.hosts[i].name, hosts.hosts[i].port);
    }
    size_t at = strlen(out);
    snprintf(out + at, sizeof out - at, "%s", hosts.chroot);
    dv_hosts_free(&hosts);
    assert_null(hosts.hosts);
    return out;
}

/* Names, addresses of both kinds, ports given or left out, and a chroot. */
TEST(test_grammar) {
    static const struct {
        const char *text, *parts;
    } taken[] = {
        {"h", "h|2181"},
        {"h:1", "h|1"},
        {"h:65535", "h|65535"},
        {"h1:2181,h2:2182", "h1|2181,h2|2182"},
        {"zk-1.example.com,zk_2:99", "zk-1.example.com|2181,zk_2|99"},
        {"10.0.0.1:2281/app", "10.0.0.1|2281/app"},
        {"h/", "h|2181"},
        {"h/a/b", "h|2181/a/b"},
        {"h/a:b-c", "h|2181/a:b-c"},
        {"h/\xc3\xa9", "h|2181/\xc3\xa9"},
        {"[::1]:2182", "::1|2182"},
        {"[::1]", "::1|2181"},
        {"[fe80::1%eth0]:1,h", "fe80::1%eth0|1,h|2181"},
        {"::1", "::1|2181"},
        {"2001:db8::7,h:3", "2001:db8::7|2181,h|3"},
        {" h1 , h2:5 ", "h1|2181,h2|5"},
    };
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        assert_string_equal(parsed(taken[i].text), taken[i].parts);
}

/* A malformed text is refused, with a reason that says what it is about. */
TEST(test_refused) {
    static const struct {
        const char *text, *about;
    } refused[] = {
        {"", "name"},
        {",", "name"},
        {"h,", "name"},
        {",h", "name"},
        {"h,,i", "name"},
        {" ", "name"},
        {":2181", "name"},
        {"/chroot", "name"},
        {"[]:2181", "name"},
        {"h:", "port"},
        {"h:0", "port"},
        {"h:65536", "port"},
        {"h:99999", "port"},
        {"h:123456", "port"},
        {"h:-1", "port"},
        {"h:21x", "port"},
        {"h: 2181", "port"},
        {"[::1]:", "port"},
        {"[::1", "]"},
        {"[::1]x", "]"},
        {"[::1]2181", "]"},
        {"h h", "character"},
        {"h\n", "character"},
        {"h;i", "character"},
        {"http://h", "c"}, /* the colon or the chroot: either is a reason */
        {"h\xc3\xa9", "character"},
        {"user@h", "character"},
        {"h//a", "chroot"},
        {"h/a/", "chroot"},
        {"h/a//b", "chroot"},
        {"h/.", "chroot"},
        {"h/a/..", "chroot"},
        {"h/zookeeper", "chroot"},
        {"h/zookeeper/x", "chroot"},
        {"h/a\x01", "chroot"},
        {"h/\xff", "chroot"},
        /* A chroot behind each host, in the ways that other programs separate hosts: it stands once. */
        {"h1:2181/x,h2:2181/y", "once, behind the last host: h1:2181,h2:2181/chroot"},
        {"h1:2181/x,h2:2181/x", "once"},
        {"h1/x,h2/x", "once"},
        {"h1:2181/x,h2:2181", "once"},
        {"h1:2181/x,h2", "once"},
        {"h1:2181/,h2:2181/", "once"},
        {"h1:2181/x, h2:2181/x", "once"},
        {"h1:2181/x ,h2:2181/x", "once"},
        {"h1:2181/x h2:2181/x", "once"},
        {"h1:2181/x;h2:2181/x", "once"},
        {"[::1]:2181/x,[::1]:2182/x", "once"},
        {"h/x,", "once"},
        {"h/x ", "once"}, /* beside a process without the space it would have another chroot */
        {"h/ x", "once"},
        {"h/ ", "once"},
        {"h/x\n", "chroot"},
        {"h/x\t", "chroot"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        dv_hosts hosts;
        const char *reason = NULL;
        assert_int_equal(dv_hosts_parse(&hosts, refused[i].text, &reason), DIVVY_EINVAL);
        assert_non_null(reason);
        if (!strstr(reason, refused[i].about)) fail_msg("\"%s\" %s", refused[i].text, reason);
        assert_null(hosts.hosts);
        assert_null(hosts.chroot);
        assert_int_equal(dv_hosts_parse(&hosts, refused[i].text, NULL), DIVVY_EINVAL);
    }
}

/* Up to 64 hosts, each with a name of up to 255 bytes. */
TEST(test_bounds) {
    dv_hosts hosts;
    const char *reason;
    char text[65 * 8], name[300];
    text[0] = '\0';
    for (int i = 0; i < 64; i++) sprintf(text + strlen(text), "%sh%d", i ? "," : "", i);
    assert_int_equal(dv_hosts_parse(&hosts, text, &reason), 0);
    assert_int_equal(hosts.count, 64);
    dv_hosts_free(&hosts);
    strcat(text, ",x");
    assert_int_equal(dv_hosts_parse(&hosts, text, &reason), DIVVY_EINVAL);
    assert_non_null(strstr(reason, "64"));
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    assert_int_equal(dv_hosts_parse(&hosts, name, &reason), 0);
    dv_hosts_free(&hosts);
    name[255] = 'n';
    name[256] = '\0';
    assert_int_equal(dv_hosts_parse(&hosts, name, &reason), DIVVY_EINVAL);
    assert_non_null(strstr(reason, "255"));
}

/* Addresses need no name server; one name among them does. */
TEST(test_literals) {
    static const struct {
        const char *text;
        bool literal;
    } cases[] = {{"127.0.0.1", true},  {"127.0.0.1:1,[::1]:2", true},  {"::1", true},
                 {"localhost", false}, {"127.0.0.1,localhost", false}, {"1.2.3.4.example", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dv_hosts hosts;
        assert_int_equal(dv_hosts_parse(&hosts, cases[i].text, NULL), 0);
        assert_int_equal(dv_hosts_are_literal(&hosts), cases[i].literal);
        dv_hosts_free(&hosts);
    }
}

static char *resolved(const char *text, uint64_t seed, int *error) {
    dv_hosts hosts;
    assert_int_equal(dv_hosts_parse(&hosts, text, NULL), 0);
    char *refusals, *literals = dv_hosts_resolve(&hosts, seed, NULL, &refusals, error);
    assert_null(refusals);
    dv_hosts_free(&hosts);
    return literals;
}

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) count++;
    return count;
}

/* Rule H3: whatever the number of addresses, the native client is given an odd number of them, none left out, and one
 * twice at most. */
TEST(test_odd_number) {
    char text[1024] = "";
    for (int count = 1; count <= 12; count++) {
        sprintf(text + strlen(text), "%s10.1.0.%d:%d", count > 1 ? "," : "", count, 7000 + count);
        for (uint64_t seed = 0; seed < 5; seed++) {
            int error;
            char *literals = resolved(text, seed, &error);
            assert_non_null(literals);
            assert_int_equal(error, 0);
            size_t commas = count_of(literals, ",");
            assert_int_equal(commas % 2, 0);
            assert_int_equal(commas + 1, count % 2 ? count : count + 1);
            for (int i = 1; i <= count; i++) {
                char address[32];
                sprintf(address, "10.1.0.%d:%d", i, 7000 + i);
                assert_non_null(strstr(literals, address));
            }
            free(literals);
        }
    }
}

/* IPv6 addresses are written as the native client takes them, without brackets and with a port. */
TEST(test_ipv6_literals) {
    int error;
    char *literals = resolved("[2001:db8::7]:99", 1, &error);
    assert_string_equal(literals, "2001:db8::7:99");
    free(literals);
}

/* The order is mixed by the seed, the same for the same seed, and not always the given one. */
TEST(test_order) {
    static const char *const text = "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5";
    int error, firsts[5] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        char *once = resolved(text, seed * 0x9e3779b97f4a7c15u, &error);
        char *again = resolved(text, seed * 0x9e3779b97f4a7c15u, &error);
        assert_string_equal(once, again);
        firsts[once[7] - '1']++;
        free(once);
        free(again);
    }
    for (int i = 0; i < 5; i++) assert_true(firsts[i] >= 10); /* 40 are to be expected of each */
}

/* An address that several names have counts once; a name that nobody knows is left out; if none is known it says so. */
TEST(test_names) {
    int error;
    char *literals = resolved("127.0.0.1:5,127.0.0.1:5,127.0.0.1:5", 1, &error);
    assert_string_equal(literals, "127.0.0.1:5");
    free(literals);
    literals = resolved("nobody.invalid:5,127.0.0.1:6", 1, &error);
    assert_string_equal(literals, "127.0.0.1:6");
    assert_int_equal(error, 0);
    free(literals);
    assert_null(resolved("nobody.invalid,nowhere.invalid", 1, &error));
    assert_int_equal(error, DIVVY_ERESOLVE);
    literals = resolved("localhost:77", 1, &error);
    assert_non_null(literals);
    assert_non_null(strstr(literals, ":77"));
    assert_int_equal(count_of(literals, ",") % 2, 0);
    free(literals);
}

/* --- names whose addresses change ------------------------------------------------------------------------------- */

/* The order is that of seed 3. */
static const char *seen(dv_hosts *hosts) {
    static char out[256];
    int error;
    char *refusals, *literals = dv_hosts_resolve(hosts, 3, NULL, &refusals, &error);
    assert_null(refusals);
    snprintf(out, sizeof out, "%s", literals ? literals : "none");
    free(literals);
    return out;
}

static bool has(const char *literals, const char *ip) {
    return strstr(literals, ip) != NULL;
}

/* H1: a name that cannot be resolved for a time keeps its addresses, and one that can has those of now. */
TEST(test_name_server_fails) {
    dv_hosts hosts;
    assert_int_equal(dv_hosts_parse(&hosts, "a.names:1,b.names:2,c.names:3", NULL), 0);
    dv_names_set("a.names", "10.0.0.1 10.0.1.1");
    dv_names_set("b.names", "10.0.0.2 ::2");
    dv_names_set("c.names", NULL);
    const char *first = seen(&hosts);
    assert_true(has(first, "10.0.0.1:1") && has(first, "10.0.1.1:1") && has(first, "10.0.0.2:2") &&
                has(first, "::2:2"));
    dv_names_set("b.names", NULL);
    dv_names_set("a.names", "10.0.0.9");
    dv_names_set("c.names", "10.0.0.3");
    const char *second = seen(&hosts);
    assert_true(has(second, "10.0.0.9:1") && has(second, "10.0.0.2:2") && has(second, "::2:2"));
    assert_true(has(second, "10.0.0.3:3") && !has(second, "10.0.0.1:1"));
    dv_names_set("a.names", NULL);
    dv_names_set("c.names", NULL);
    char before[256];
    snprintf(before, sizeof before, "%s", second);
    assert_string_equal(seen(&hosts), before);
    dv_hosts_free(&hosts);
}

/* The same addresses in another order are the same list, which the native client is not given again. */
TEST(test_name_server_turns_them_round) {
    dv_hosts hosts;
    assert_int_equal(dv_hosts_parse(&hosts, "a.names", NULL), 0);
    char before[256];
    dv_names_set("a.names", "10.0.0.1 10.0.0.2 10.0.0.3");
    snprintf(before, sizeof before, "%s", seen(&hosts));
    dv_names_set("a.names", "10.0.0.3 10.0.0.1 10.0.0.2");
    assert_string_equal(seen(&hosts), before);
    dv_hosts_free(&hosts);
}

/* --- in the background ------------------------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    dv_event *event;
    int posted;
} queue = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

static void post(void *context, dv_event *event) {
    (void)context;
    pthread_mutex_lock(&queue.mutex);
    queue.event = event;
    queue.posted++;
    pthread_mutex_unlock(&queue.mutex);
}

static int posted(void) {
    pthread_mutex_lock(&queue.mutex);
    int count = queue.posted;
    pthread_mutex_unlock(&queue.mutex);
    return count;
}

static char *answer;
static int answer_error;
static dv_hosts job_hosts;

static void on_resolved(void *context, char *literals, char *refusals, int error) {
    assert_ptr_equal(context, &answer);
    assert_null(refusals);
    answer = literals;
    answer_error = error;
}

static dv_job *start(const char *text, int delay_ms) {
    queue.posted = 0;
    answer = NULL;
    dv_hosts_free(&job_hosts);
    assert_int_equal(dv_hosts_parse(&job_hosts, text, NULL), 0);
    dv_job *job = dv_resolve_start(&job_hosts, 1, NULL, delay_ms, (dv_sink){post, NULL}, on_resolved, &answer);
    assert_non_null(job);
    return job;
}

static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* A job ends in one event, which hands over the addresses; its thread goes. */
TEST(test_job) {
    int before = threads();
    start("127.0.0.1:9", 0);
    assert_true(DV_WAIT(posted() == 1, PATIENCE_MS));
    queue.event->run(queue.event, 0);
    assert_string_equal(answer, "127.0.0.1:9");
    free(answer);
    assert_true(DV_WAIT(threads() == before, PATIENCE_MS));
    assert_int_equal(posted(), 1);
}

/* What one job has found the next one knows. */
TEST(test_job_remembers) {
    int before = threads();
    dv_names_set("a.names", "10.0.0.1");
    start("a.names:9", 0);
    for (int times = 0; times < 2; times++) {
        assert_true(DV_WAIT(posted() == 1, PATIENCE_MS));
        queue.event->run(queue.event, 0);
        assert_string_equal(answer, "10.0.0.1:9");
        free(answer);
        dv_names_set("a.names", NULL);
        queue.posted = 0;
        if (times == 0)
            assert_non_null(dv_resolve_start(&job_hosts, 1, NULL, 0, (dv_sink){post, NULL}, on_resolved, &answer));
    }
    assert_true(DV_WAIT(threads() == before, PATIENCE_MS)); /* so that the next test does not count them */
}

/* A job dropped after it was done, but before its event ran, tells nobody. */
TEST(test_job_dropped_when_done) {
    int before = threads();
    dv_job *job = start("127.0.0.1:9", 0);
    assert_true(DV_WAIT(posted() == 1, PATIENCE_MS));
    dv_job_drop(job);
    queue.event->run(queue.event, 0);
    assert_null(answer);
    assert_true(DV_WAIT(threads() == before, PATIENCE_MS));
}

/* A job that cannot resolve says so. One that is dropped before it has begun ends without a word. */
TEST(test_job_without_answer) {
    int before = threads();
    start("nobody.invalid", 0);
    assert_true(DV_WAIT(posted() == 1, PATIENCE_MS));
    queue.event->run(queue.event, 0);
    assert_null(answer);
    assert_int_equal(answer_error, DIVVY_ERESOLVE);
    assert_true(DV_WAIT(threads() == before, PATIENCE_MS));
    dv_job *job = start("127.0.0.1:9", 3600000);
    assert_true(dv_resolve_waits(job));
    dv_job_drop(job);
    assert_true(DV_WAIT(threads() == before, PATIENCE_MS));
    assert_int_equal(posted(), 0);
}

static void *nothing(void *argument) {
    return argument;
}

/* ThreadSanitizer starts a thread of its own with the first of ours: it is not to be counted. */
static int set_up(void **state) {
    (void)state;
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0) return -1;
    return pthread_join(thread, NULL);
}

static int tear_down(void **state) {
    (void)state;
    dv_hosts_free(&job_hosts);
    return 0;
}

TEST_GROUP(set_up, tear_down);
