/* Faults of the servers: their processes, their links to one another, their disks. SPDX-License-Identifier: Apache-2.0
 *
 * A full disk is a tmpfs that is put in the place of one server's data and then made as small as what is in it; the
 * mount is seen in our own mount namespace only, which ends with us. Where that is not allowed the kind is left out. In
 * either case RLIMIT_FSIZE does the like: a server whose transaction log may no longer grow. */
#include "chaos.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DISK_KIB = 262144, UMOUNT_MS = 20000, LEADER_MS = 10000, OTHERS_MS = 60000 };

static char mounted[CHAOS_PATH_BYTES]; /* "": nothing is */

static int any_server(chaos *c) {
    return 1 + chaos_random(c, CHAOS_SERVERS);
}

/* The leader, or any server if there is none for long. */
static int leader(chaos *c) {
    int number = 0;
    (void)DV_WAIT(chaos_interrupted || (number = dv_test_server_leader(c->server)) != 0, LEADER_MS);
    return number ? number : any_server(c);
}

static int follower(chaos *c) {
    return 1 + (leader(c) - 1 + 1 + chaos_random(c, CHAOS_SERVERS - 1)) % CHAOS_SERVERS;
}

static void remove_data(chaos *c, int number) {
    char command[CHAOS_PATH_BYTES];
    snprintf(command, sizeof command, "mv '%s/%d/data/version-2' '%s/disk.%u'", dv_test_server_dir(c->server), number,
             c->dir, c->disks++);
    if (system(command) != 0) dv_test_die("cannot clear the data of server %d", number);
}

/* On a busy machine one attempt may not be enough. */
static bool comes_up(chaos *c, int number) {
    enum { ATTEMPTS = 3 };
    for (int i = 0; i < ATTEMPTS; i++) {
        if (dv_test_server_try_restart(c->server, number)) return true;
    }
    return false;
}

static void restart_server(chaos *c, int number) {
    if (!comes_up(c, number)) dv_test_die("server %d does not come up", number);
}

static bool others_serve(const chaos *c, int number) {
    int leaders = 0, followers = 0;
    for (int other = 1; other <= CHAOS_SERVERS; other++) {
        leaders += other != number && dv_test_server_is(c->server, other, "leader");
        followers += other != number && dv_test_server_is(c->server, other, "follower");
    }
    return leaders == 1 && leaders + followers == CHAOS_SERVERS - 1;
}

/* What a disk that failed leaves is not to be trusted: the log may lack transactions, or have some twice, and a server
 * that starts with it shows another tree (ZOOKEEPER-4882). As docs/operations.md tells operators, we give it an empty
 * disk while the others serve, which have all that was committed. */
static void restart_with_new_disk(chaos *c, int number) {
    dv_test_server_kill(c->server, number);
    if (!DV_WAIT(others_serve(c, number), OTHERS_MS)) dv_test_die("no server leads without server %d", number);
    remove_data(c, number);
    restart_server(c, number);
}

/* ---- processes ---- */

static void begin_leader_killed(chaos *c, chaos_fault *fault) {
    dv_test_server_kill(c->server, fault->target = leader(c));
}

static void begin_follower_killed(chaos *c, chaos_fault *fault) {
    dv_test_server_kill(c->server, fault->target = follower(c));
}

static void end_by_restart(chaos *c, chaos_fault *fault) {
    restart_server(c, fault->target);
}

static void begin_leader_stopped(chaos *c, chaos_fault *fault) {
    dv_test_server_pause(c->server, fault->target = leader(c));
}

static void begin_follower_stopped(chaos *c, chaos_fault *fault) {
    dv_test_server_pause(c->server, fault->target = follower(c));
}

static void begin_all_stopped(chaos *c, chaos_fault *fault) {
    dv_test_server_pause(c->server, fault->target = DV_TEST_SERVER_ALL);
}

static void end_stopped(chaos *c, chaos_fault *fault) {
    dv_test_server_resume(c->server, fault->target);
}

static void begin_quorum_lost(chaos *c, chaos_fault *fault) {
    fault->target = leader(c);
    fault->other = 1 + fault->target % CHAOS_SERVERS;
    dv_test_server_kill(c->server, fault->target);
    dv_test_server_kill(c->server, fault->other);
}

static void end_quorum_lost(chaos *c, chaos_fault *fault) {
    restart_server(c, fault->other);
    restart_server(c, fault->target);
}

static void begin_all_killed(chaos *c, chaos_fault *fault) {
    dv_test_server_kill(c->server, fault->target = DV_TEST_SERVER_ALL);
}

static void end_all_killed(chaos *c, chaos_fault *fault) {
    restart_server(c, fault->target);
}

static void begin_rolling_restart(chaos *c, chaos_fault *fault) {
    fault->target = DV_TEST_SERVER_ALL;
    for (int number = 1; number <= CHAOS_SERVERS && !chaos_interrupted; number++) {
        restart_server(c, number);
        chaos_wait(c, chaos_random(c, 500));
    }
}

static void end_nothing(chaos *c, chaos_fault *fault) {
    (void)c;
    (void)fault;
}

/* ---- links ---- */

static void begin_follower_cut(chaos *c, chaos_fault *fault) {
    dv_test_quorum_isolate(c->quorum, fault->target = follower(c));
}

static void begin_leader_cut(chaos *c, chaos_fault *fault) {
    dv_test_quorum_isolate(c->quorum, fault->target = leader(c));
}

static void begin_one_way(chaos *c, chaos_fault *fault) {
    fault->target = any_server(c);
    fault->other = 1 + (fault->target - 1 + 1 + chaos_random(c, CHAOS_SERVERS - 1)) % CHAOS_SERVERS;
    dv_test_quorum_hold(c->quorum, fault->target, fault->other);
}

static void end_links(chaos *c, chaos_fault *fault) {
    (void)fault;
    dv_test_quorum_heal(c->quorum);
}

/* ---- disks ---- */

static void data_path(const chaos *c, int number, char out[CHAOS_PATH_BYTES]) {
    snprintf(out, CHAOS_PATH_BYTES, "%s/%d/data", dv_test_server_dir(c->server), number);
}

static void run_or_die(const char *command) {
    if (system(command) != 0) dv_test_die("failed: %s", command);
}

static void remount(const char *path, uint64_t kib) {
    char size[64];
    snprintf(size, sizeof size, "size=%" PRIu64 "k,mode=0755", kib);
    if (mount("tmpfs", path, "tmpfs", MS_REMOUNT, size)) dv_test_die("remount %s: %s", path, strerror(errno));
}

void chaos_unmount(void) {
    if (mounted[0]) umount2(mounted, MNT_DETACH);
}

static bool has_mounts(const chaos *c) {
    return c->has_mounts;
}

static void begin_disk_full(chaos *c, chaos_fault *fault) {
    char path[CHAOS_PATH_BYTES], size[64], command[4 * CHAOS_PATH_BYTES];
    fault->target = any_server(c);
    data_path(c, fault->target, path);
    dv_test_server_kill(c->server, fault->target);
    snprintf(size, sizeof size, "size=%dk,mode=0755", DISK_KIB);
    snprintf(command, sizeof command, "mv '%s' '%s.disk' && mkdir '%s'", path, path, path);
    run_or_die(command);
    if (mount("tmpfs", path, "tmpfs", 0, size)) dv_test_die("mount %s: %s", path, strerror(errno));
    snprintf(mounted, sizeof mounted, "%s", path);
    snprintf(command, sizeof command, "cp -a --sparse=always '%s.disk/.' '%s/' && rm -rf '%s.disk'", path, path, path);
    run_or_die(command);
    restart_server(c, fault->target);
    struct statvfs room;
    if (statvfs(path, &room)) dv_test_die("statvfs %s: %s", path, strerror(errno));
    remount(path, (uint64_t)(room.f_blocks - room.f_bfree) * room.f_frsize / 1024 + 8);
}

static void end_disk_full(chaos *c, chaos_fault *fault) {
    char path[CHAOS_PATH_BYTES], command[4 * CHAOS_PATH_BYTES];
    data_path(c, fault->target, path);
    dv_test_server_kill(c->server, fault->target);
    snprintf(command, sizeof command, "cp -a --sparse=always '%s' '%s.disk'", path, path);
    run_or_die(command);
    /* A process that is known to have ended may still be about to close what it has open. */
    if (!DV_WAIT(umount(path) == 0, UMOUNT_MS)) dv_test_die("umount %s: %s", path, strerror(errno));
    mounted[0] = '\0';
    snprintf(command, sizeof command, "rmdir '%s' && mv '%s.disk' '%s'", path, path, path);
    run_or_die(command);
    restart_with_new_disk(c, fault->target);
}

static pid_t pid_of(const chaos *c, int number) {
    char path[CHAOS_PATH_BYTES];
    int pid = 0;
    snprintf(path, sizeof path, "%s/%d/pid", dv_test_server_dir(c->server), number);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &pid) != 1) pid = 0;
    if (file) fclose(file);
    return pid;
}

/* Begins a limit on the size of files. The server has written more already, so that its very next write fails. */
static void begin_file_limit(chaos *c, chaos_fault *fault) {
    fault->target = any_server(c);
    struct rlimit limit = {4096, 4096};
    prlimit(pid_of(c, fault->target), RLIMIT_FSIZE, &limit, NULL);
}

static void end_file_limit(chaos *c, chaos_fault *fault) {
    restart_with_new_disk(c, fault->target);
}

enum { SHORT_MS = CHAOS_SESSION_MS / 2, LONG_MS = 2 * CHAOS_SESSION_MS };

const chaos_kind chaos_server_kinds[] = {
    {"leader_killed", CHAOS_OF_SERVERS, 50, LONG_MS, begin_leader_killed, end_by_restart, false, NULL},
    {"follower_killed", CHAOS_OF_SERVERS, 50, LONG_MS, begin_follower_killed, end_by_restart, false, NULL},
    {"leader_stopped", CHAOS_OF_SERVERS, 100, LONG_MS, begin_leader_stopped, end_stopped, false, NULL},
    {"follower_stopped", CHAOS_OF_SERVERS, 100, LONG_MS, begin_follower_stopped, end_stopped, false, NULL},
    {"all_servers_stopped", CHAOS_OF_SERVERS, 100, LONG_MS, begin_all_stopped, end_stopped, false, NULL},
    {"quorum_lost", CHAOS_OF_SERVERS, SHORT_MS, LONG_MS, begin_quorum_lost, end_quorum_lost, false, NULL},
    {"all_servers_killed", CHAOS_OF_SERVERS, 100, SHORT_MS, begin_all_killed, end_all_killed, false, NULL},
    {"rolling_restart", CHAOS_OF_SERVERS, 10, 100, begin_rolling_restart, end_nothing, false, NULL},
    {"follower_cut", CHAOS_OF_SERVERS, SHORT_MS, 2 * LONG_MS, begin_follower_cut, end_links, false, NULL},
    {"leader_cut", CHAOS_OF_SERVERS, SHORT_MS, 2 * LONG_MS, begin_leader_cut, end_links, false, NULL},
    {"servers_one_way", CHAOS_OF_SERVERS, SHORT_MS, LONG_MS, begin_one_way, end_links, false, NULL},
    {"disk_full", CHAOS_OF_SERVERS, SHORT_MS, LONG_MS, begin_disk_full, end_disk_full, false, has_mounts},
    {"file_size_limit", CHAOS_OF_SERVERS, SHORT_MS, LONG_MS, begin_file_limit, end_file_limit, false, NULL},
    {0},
};
