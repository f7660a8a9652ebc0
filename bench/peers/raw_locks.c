/* The floor of locks and semaphores: their least requests, by the native client alone. SPDX-License-Identifier:
 * Apache-2.0
 *
 * usage: bench_raw_locks HOSTS, and commands as in locks_peer.h.
 * A lock's pair is a create and a delete, each waited for. A semaphore's as well: the create of a lease, and behind it
 * the reads of the pool and its queue; then the delete. Nothing is compared, retried, or cleaned up: a recipe does all
 * of that besides. */
#include <zookeeper/zookeeper.h>

#include "../locks_peer.h"

static const char *error_text(int error) {
    return error < 0 ? zerror(error) : "failed";
}

enum { PATH_BYTES = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int connected, answers;
static zhandle_t *zh;

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)type, (void)path, (void)context;
    pthread_mutex_lock(&mutex);
    connected = state == ZOO_CONNECTED_STATE;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void answered(int rc) {
    check(rc, "an answer");
    pthread_mutex_lock(&mutex);
    answers++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_answers(int count) {
    pthread_mutex_lock(&mutex);
    while (answers < count) pthread_cond_wait(&changed, &mutex);
    answers = 0;
    pthread_mutex_unlock(&mutex);
}

static void on_data(int rc, const char *value, int bytes, const struct Stat *stat, const void *data) {
    (void)value, (void)bytes;
    if (rc == ZOK) *(int32_t *)(uintptr_t)data = stat->version;
    answered(rc);
}

static void on_names(int rc, const struct String_vector *names, const struct Stat *stat, const void *data) {
    (void)names, (void)stat, (void)data;
    answered(rc);
}

static void on_deleted(int rc, const void *data) {
    (void)data;
    check(rc, "a delete");
}

static void create(const char *path, const char *data, int flags, char *made) {
    int rc = zoo_create(zh, path, data, (int)strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, made, made ? PATH_BYTES : 0);
    check(rc == ZNODEEXISTS ? ZOK : rc, path);
}

static void make_paths(void) {
    static const char *const paths[] = {"/raw-lock", "/raw-pool-__lock__"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) create(paths[i], "", 0, NULL);
    create("/raw-pool", "4", 0, NULL);
}

/* ---- the least of a lock ---- */

static void lock_pair(void) {
    char path[PATH_BYTES];
    create("/raw-lock/one__lock__", "", ZOO_EPHEMERAL | ZOO_SEQUENCE, path);
    check(zoo_delete(zh, path, -1), "delete");
}

/* ---- the least of a semaphore ---- */

static int32_t read_pool(void) {
    int32_t version = -1;
    check(zoo_aget(zh, "/raw-pool", 0, on_data, &version), "get");
    check(zoo_aget_children2(zh, "/raw-pool", 0, on_names, NULL), "children");
    wait_answers(2);
    return version;
}

/* A multi that takes a slot. Its paths and results live until it is carried out. */
typedef struct {
    zoo_op_t ops[3];
    zoo_op_result_t results[3];
    struct Stat stat;
    char made[PATH_BYTES], lease[PATH_BYTES], place[PATH_BYTES];
} admission;

static void prepare_admission(admission *a, int number, int32_t version) {
    snprintf(a->lease, sizeof a->lease, "/raw-pool/lease-%d", number);
    zoo_set_op_init(&a->ops[0], "/raw-pool", "4", 1, version, &a->stat);
    zoo_create_op_init(&a->ops[1], a->lease, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, a->made, PATH_BYTES);
    zoo_delete_op_init(&a->ops[2], a->place, -1);
}

static void on_created(int rc, const char *path, const void *data) {
    (void)path, (void)data;
    answered(rc);
}

static void semaphore_pair(void) {
    static const char lease[] = "/raw-pool/lease-alone";
    int32_t version;
    check(zoo_acreate(zh, lease, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, on_created, NULL), "create");
    check(zoo_aget(zh, "/raw-pool", 0, on_data, &version), "get");
    check(zoo_aget_children2(zh, "/raw-pool-__lock__", 0, on_names, NULL), "children");
    check(zoo_aget_children2(zh, "/raw-pool", 0, on_names, NULL), "children");
    wait_answers(4);
    check(zoo_delete(zh, lease, -1), "delete");
}

static void run_pairs(void (*pair)(void), int milliseconds) {
    double start_s = now_s();
    int pairs = 0;
    for (; (now_s() - start_s) * 1e3 < milliseconds; pairs++) pair();
    print_pairs(pairs, now_s() - start_s);
}

/* ---- hand-overs: a watch fires, one read, and for a semaphore the transaction ---- */

static double granted_s;

static void granted(int rc) {
    granted_s = now_s();
    answered(rc);
}

static void on_list(int rc, const struct String_vector *names, const void *data) {
    (void)names, (void)data;
    granted(rc);
}

static void on_predecessor_gone(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)state, (void)path, (void)context;
    if (type == ZOO_DELETED_EVENT) check(zoo_aget_children(zh, "/raw-lock", 0, on_list, NULL), "children");
}

static void hand_over_locks(int waiters, double *us) {
    char paths[WAITERS_MAX + 1][PATH_BYTES];
    for (int i = 0; i <= waiters; i++) {
        create("/raw-lock/one__lock__", "", ZOO_EPHEMERAL | ZOO_SEQUENCE, paths[i]);
        if (i > 0) check(zoo_wexists(zh, paths[i - 1], on_predecessor_gone, NULL, NULL), "exists");
    }
    for (int i = 0; i < waiters; i++) {
        double released_s = now_s();
        check(zoo_adelete(zh, paths[i], -1, on_deleted, NULL), "delete");
        wait_answers(1);
        us[i] = (granted_s - released_s) * 1e6;
    }
    check(zoo_delete(zh, paths[waiters], -1), "delete");
}

static void on_admitted(int rc, const void *data) {
    (void)data;
    granted(rc);
}

static void on_leases(int rc, const struct String_vector *names, const void *data) {
    (void)names;
    admission *a = (admission *)(uintptr_t)data;
    check(rc, "children");
    check(zoo_amulti(zh, 3, a->ops, a->results, on_admitted, NULL), "multi");
}

static void on_lease_gone(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)state, (void)path;
    if (type == ZOO_CHILD_EVENT) check(zoo_aget_children(zh, "/raw-pool", 0, on_leases, context), "children");
}

/* Measures hand-overs. The next in the queue has read the pool, and watches it, before the clock starts. */
static void hand_over_slots(int waiters, double *us) {
    static admission admissions[WAITERS_MAX + 1];
    char lease[PATH_BYTES] = "/raw-pool/lease-first";
    for (int i = 0; i < waiters; i++)
        create("/raw-pool-__lock__/one__lock__", "", ZOO_EPHEMERAL | ZOO_SEQUENCE, admissions[i].place);
    create(lease, "", ZOO_EPHEMERAL, NULL);
    for (int i = 0; i < waiters; i++) {
        struct String_vector names;
        prepare_admission(&admissions[i], -1 - i, read_pool());
        check(zoo_wget_children(zh, "/raw-pool", on_lease_gone, &admissions[i], &names), "children");
        deallocate_String_vector(&names);
        double released_s = now_s();
        check(zoo_adelete(zh, lease, -1, on_deleted, NULL), "delete");
        wait_answers(1);
        us[i] = (granted_s - released_s) * 1e6;
        memcpy(lease, admissions[i].lease, sizeof lease);
    }
    check(zoo_delete(zh, lease, -1), "delete");
}

/* ---- the whole ---- */

static bool run(const char *verb, const char *recipe, int number) {
    bool lock = strcmp(recipe, "lock") == 0;
    if (!lock && strcmp(recipe, "semaphore") != 0) return false;
    if (strcmp(verb, "pairs") == 0) {
        run_pairs(lock ? lock_pair : semaphore_pair, number);
    } else if (strcmp(verb, "hand_over") == 0 && number <= WAITERS_MAX) {
        double us[WAITERS_MAX];
        (lock ? hand_over_locks : hand_over_slots)(number, us);
        print_hand_overs(us, number);
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: bench_raw_locks HOSTS\n", stderr);
        return 2;
    }
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = zookeeper_init(argv[1], on_session, SESSION_TIMEOUT_MS, NULL, NULL, 0);
    check(zh ? 0 : 1, "zookeeper_init");
    pthread_mutex_lock(&mutex);
    while (!connected) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    make_paths();
    serve_commands(run);
    check(zoo_exists(zh, "/", 0, NULL), "exists"); /* Answers come in order: those of all deletes have come now. */
    return zookeeper_close(zh) == ZOK ? 0 : 1;
}
