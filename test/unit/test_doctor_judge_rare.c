/* What `divvy doctor` says of states that servers and pools are rarely in. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "doctor_fixture.h"

/* Each way to be lost, or not to tell all, has its words. */
TEST(test_states_of_servers) {
    scene s;
    set_scene(&s);
    s.servers[0].state = DV_SERVER_REFUSED;
    strcpy(s.servers[0].reason, "its certificate has expired");
    s.servers[1].state = DV_SERVER_UNREACHABLE;
    s.servers[2].srvr = (dv_word_srvr){.not_allowed = true};
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "must not be used over TLS: its certificate has expired"));
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "cannot be reached"));
    assert_true(says(&f, DV_DOCTOR_NOTE, "connection", "does not tell its role"));
    dv_findings_clear(&f);
}

/* Servers that cannot be reached tell nothing, and nothing is said of how they are configured. */
TEST(test_no_server) {
    scene s;
    set_scene(&s);
    for (size_t i = 0; i < 3; i++) s.servers[i] = server("a:1", DV_SERVER_UNREACHABLE), s.servers[i].conf.tick_ms = 0;
    s.doctor.looked = false;
    s.doctor.read_count = 0;
    dv_findings f = judge_servers(&s);
    assert_int_equal(f.count, 3);
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_ERROR), 3);
    dv_findings_clear(&f);
}

/* A server that lists no clients makes members that have died unknown; of several that is said once. */
TEST(test_mute_servers) {
    scene s;
    set_scene(&s);
    s.doctor.servers.all_clients = false;
    s.servers[0].lists_clients = false;
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_NOTE, "connection", "1 of the servers does not list their clients"));
    dv_findings_clear(&f);
    s.servers[1].lists_clients = false;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_NOTE, "connection", "2 of the servers do not list their clients"));
    dv_findings_clear(&f);
}

/* A follower that applied nothing since the election is told so, as transactions of two epochs have no distance. */
TEST(test_lag_of_an_epoch) {
    scene s;
    set_scene(&s);
    s.servers[0].srvr.zxid = 0x200000001;
    s.servers[1].later = (dv_word_srvr){.told = true, .zxid = 0x1ffffffff};
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "lag", "the follower has not applied anything since the last election"));
    dv_findings_clear(&f);
}

/* A session that the servers refuse, and one that broke, are two mistakes. */
TEST(test_session) {
    scene s;
    set_scene(&s);
    s.doctor.look_error = DIVVY_EAUTH;
    strcpy(s.doctor.look_reason, "not taken");
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_ERROR, "connection", "not taken"));
    char *page = dv_findings_page(&f);
    assert_non_null(strstr(page, "the servers do not take our credentials"));
    free(page);
    dv_findings_clear(&f);
    s.doctor.look_error = DIVVY_ETIMEDOUT;
    f = judge_servers(&s);
    page = dv_findings_page(&f);
    assert_non_null(strstr(page, "run it again with --verbose"));
    free(page);
    dv_findings_clear(&f);
}

/* Reads that take long in the median are a warning, which says the timeout that would do. One slow read is none. */
TEST(test_slow_reads) {
    scene s;
    set_scene(&s);
    s.doctor.read_us[0] = 900000;
    dv_findings f = judge_servers(&s);
    assert_false(has(&f, "latency"));
    dv_findings_clear(&f);
    for (size_t i = 0; i < 5; i++) s.doctor.read_us[i] = 200000 + (int64_t)i;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "latency", "a read takes 200.0 ms, the longest of 5 took 200.0 ms"));
    char *page = dv_findings_page(&f);
    assert_non_null(strstr(page, "set --session-timeout to more than 10800 ms")); /* five ticks and four reads */
    free(page);
    dv_findings_clear(&f);
    s.doctor.tick_ms = 0;
    for (size_t i = 0; i < 3; i++) s.servers[i].conf.tick_ms = 0;
    f = judge_servers(&s);
    page = dv_findings_page(&f);
    assert_null(strstr(page, "set --session-timeout"));
    free(page);
    dv_findings_clear(&f);
}

/* Nodes with another access list than the party are counted. One that we may not read is an error. */
TEST(test_acls_differ) {
    char *open[] = {text("cdrwa world:anyone")}, *digest[] = {text("cdrwa digest:bob:hash")};
    dv_doctor_acl acls[] = {{.path = text("/q"), .entries = open, .entry_count = 1},
                            {.path = text("/q/party"), .entries = open, .entry_count = 1},
                            {.path = text("/q/locks"), .entries = open, .entry_count = 1},
                            {.path = text("/q/plan"), .entries = digest, .entry_count = 1},
                            {.path = text("/q/notes"), .error = DIVVY_EACCES}};
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.scene.doctor.acls = acls;
    p.scene.doctor.acl_count = 4;
    p.scene.doctor.user = "bob";
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "acl", "1 node has another access list than /q/party; this one has cdrwa"));
    dv_findings_clear(&f);
    acls[2].entries = digest;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "acl", "2 nodes have another access list than /q/party"));
    dv_findings_clear(&f);
    p.scene.doctor.acl_count = 5;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_ERROR, "acl", "we may not read it, as bob"));
    clear(&p, &f);
}

/* The list that is advised has all entries of the party's. Where a server has hidden a hash, no list is advised: nobody
 * has the password of such an entry. */
TEST(test_acls_to_set) {
    char *few[] = {text("r world:anyone")}, *many[] = {text("cdrwa digest:bob:bH4="), text("cdrw sasl:amy")};
    char *hidden[] = {text("cdrw sasl:amy"), text("cdrwa digest:bob:x")}, *comma[] = {text("cdrwa x509:CN=a,O=b")};
    dv_doctor_acl acls[] = {{.path = text("/q"), .entries = many, .entry_count = 2},
                            {.path = text("/q/party"), .entries = many, .entry_count = 2},
                            {.path = text("/q/locks"), .entries = few, .entry_count = 1}};
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.scene.doctor.acls = acls;
    p.scene.doctor.acl_count = 3;
    p.scene.doctor.user = "bob";
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "acl")->todo, "zkCli.sh setAcl /q/locks digest:bob:bH4=:cdrwa,sasl:amy:cdrw");
    dv_findings_clear(&f);
    acls[1].entries = hidden;
    f = judge(&p);
    assert_string_equal(found(&f, "acl")->todo,
                        "run it again with the pool's credentials, as the list to set is hidden "
                        "from others: --auth-file FILE");
    dv_findings_clear(&f);
    acls[1].entries = comma;
    acls[1].entry_count = 1;
    p.scene.doctor.hides_names = true;
    f = judge(&p);
    assert_string_equal(found(&f, "acl")->todo, "give the pool's members the permissions cdrwa there");
    dv_findings_clear(&f);
    hidden[0] = hidden[1] = text("r digest:bob:x");
    acls[1].entries = acls[2].entries = hidden;
    f = judge(&p);
    assert_non_null(strstr(found(&f, "acl")->todo, "--auth-file FILE"));
    clear(&p, &f);
}

/* Commands for zkCli.sh name nodes as the servers do: with the chroot of --connect, and without a slash too many. */
TEST(test_chroot) {
    char *few[] = {text("r world:anyone")};
    dv_doctor_acl acl = {.path = text("/"), .entries = few, .entry_count = 1};
    for (int at_root = 0; at_root < 2; at_root++) {
        const char *pool_path = at_root ? "" : "/q";
        char todo[128];
        pool p;
        set_pool(&p, 60 * SECOND_MS);
        p.scene.doctor.path = p.scene.doctor.status.path = at_root ? "/" : "/q";
        p.scene.doctor.servers.chroot = "/a/b";
        p.scene.doctor.status.stray_count = 1;
        p.scene.doctor.status.stray = text("backup");
        p.scene.doctor.acls = &acl;
        p.scene.doctor.acl_count = (size_t)at_root;
        p.items[0].name = text("old");
        p.items[0].head = NULL;
        p.items[1].member = DV_NO_MEMBER;
        p.items[1].session = 0;
        dv_findings f = judge(&p);
        snprintf(todo, sizeof todo, "zkCli.sh delete /a/b%s/party/backup", pool_path);
        assert_string_equal(found(&f, "stray")->todo, todo);
        snprintf(todo, sizeof todo, "zkCli.sh delete /a/b%s/locks/x", pool_path);
        assert_string_equal(found(&f, "left over")->todo, todo);
        snprintf(todo, sizeof todo, "zkCli.sh delete /a/b%s/locks/y/g__lock__0000000001", pool_path);
        assert_string_equal(found(&f, "persistent")->todo, todo);
        if (at_root) assert_string_equal(found(&f, "acl")->todo, "zkCli.sh setAcl /a/b world:anyone:cdrwa");
        dv_findings_clear(&f);
        p.plan.memory.standing = DV_PLAN_BROKEN;
        f = judge(&p);
        snprintf(todo, sizeof todo, "zkCli.sh deleteall /a/b%s/plan; a member writes it again at once", pool_path);
        assert_string_equal(found(&f, "plan")->todo, todo);
        p.plan.memory.standing = DV_PLAN_GOOD;
        clear(&p, &f);
    }
}

/* Queues whose paths fill what a session may watch, and notes that outlasted their members. */
TEST(test_limits_and_notes) {
    enum { LONG = 1 << 20 };
    char *node = malloc(LONG + 1);
    assert_non_null(node);
    memset(node, 'n', LONG);
    node[LONG] = '\0';
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.items[0].node = node;
    p.scene.doctor.left_notes = 1;
    dv_findings f = judge(&p);
    assert_false(says(&f, DV_DOCTOR_WARNING, "limits", "members wait in queues"));
    assert_true(says(&f, DV_DOCTOR_NOTE, "left over", "1 note is of members that are not in the party"));
    dv_findings_clear(&f);
    p.items[0].waiting = 1;
    p.scene.doctor.left_notes = 2;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "limits", "members wait in queues whose paths take 1024 KiB"));
    assert_true(says(&f, DV_DOCTOR_NOTE, "left over", "2 notes are of members"));
    clear(&p, &f);
    free(node);
}
