/* What servers answer to four letter words. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "divvy/doctor_words.h"
#include "lib/test.h"

static const char srvr[] = "Zookeeper version: 3.8.0, built on 2024-12-29 17:54 UTC\nLatency min/avg/max: 0/0.5/54\n"
                           "Received: 20\nSent: 19\nConnections: 2\nOutstanding: 0\nZxid: 0x1f00000002\n"
                           "Mode: follower\nNode count: 6\n";
static const char conf[] = "clientPort=23783\ndataDir=/data\ntickTime=2000\nmaxClientCnxns=60\n"
                           "minSessionTimeout=4000\nmaxSessionTimeout=40000\nserverId=3\nmembership: \n"
                           "server.1=a:1:2:participant\nserver.3=b:1:2:participant\nversion=0\n";
static const char cons[] =
    " /127.0.0.1:32922[0](queued=0,recved=1,sent=0)\n"
    " /127.0.0.1:32900[1](queued=0,recved=3,sent=3,sid=0x100002901030000,lop=GETA,est=1795558157467,to=10000,"
    "lcxid=0x2,lzxid=0x2,lresp=2688281,llat=3,minlat=0,avglat=24,maxlat=54)\n"
    " /10.0.0.7:4000[1](queued=0,recved=3,sent=3,sid=0xff00002901030000,lop=PING,est=1795558150000,to=6000,"
    "lcxid=0x2,lzxid=0x2,lresp=2684281,llat=3,minlat=0,avglat=24,maxlat=54)\n\n";
static const char mntr[] = "zk_server_state\tfollower\nzk_digest_mismatches_count\t7\nzk_znode_count\t9\n";
static const char refused[] = "cons is not executed because it is not in the whitelist.\n";

/* A role and a zxid; a server without a quorum; a word that is not allowed. */
TEST(test_srvr) {
    dv_word_srvr said = dv_word_srvr_parse(srvr, strlen(srvr));
    assert_true(said.told && !said.not_serving && !said.not_allowed);
    assert_string_equal(said.mode, "follower");
    assert_true(said.zxid == UINT64_C(0x1f00000002));
    static const char alone[] = "This ZooKeeper instance is not currently serving requests\n";
    said = dv_word_srvr_parse(alone, strlen(alone));
    assert_true(!said.told && said.not_serving);
    said = dv_word_srvr_parse(refused, strlen(refused));
    assert_true(!said.told && said.not_allowed);
    static const char odd[] = "Mode: a-mode-that-no-server-has-ever-had\nZxid: 0xfffffffffffffffffffff\n";
    said = dv_word_srvr_parse(odd, strlen(odd));
    assert_true(said.told && strlen(said.mode) == DV_SERVER_MODE_BYTES - 1 && said.zxid == 0);
}

TEST(test_conf) {
    dv_word_conf said = dv_word_conf_parse(conf, strlen(conf));
    assert_int_equal(said.tick_ms, 2000);
    assert_int_equal(said.min_timeout_ms, 4000);
    assert_int_equal(said.max_timeout_ms, 40000);
    assert_true(said.server_id == 3 && said.server_count == 2);
    said = dv_word_conf_parse("tickTime=5\nserverId=0\n", strlen("tickTime=5\nserverId=0\n"));
    assert_true(!said.has_two_ports && said.tick_ms == 5 && said.server_id == 0 && said.server_count == 1);
    static const char two[] = "clientPort=2181\nsecureClientPort=2281\n",
                      one[] = "clientPort=2181\nsecureClientPort=-1\n";
    assert_true(dv_word_conf_parse(two, strlen(two)).has_two_ports);
    assert_false(dv_word_conf_parse(one, strlen(one)).has_two_ports);
    static const char odd[] = "tickTime=-5\nminSessionTimeout=99999999999999999999\nmaxSessionTimeout=x\n";
    said = dv_word_conf_parse(odd, strlen(odd));
    assert_true(said.tick_ms == 0 && said.min_timeout_ms == 0 && said.max_timeout_ms == 0);
}

/* How often the tree was another's; of an old server, of one that does not tell, and of one that lies. */
TEST(test_mntr) {
    assert_int_equal(dv_word_mntr_mismatches(mntr, strlen(mntr)), 7);
    assert_int_equal(dv_word_mntr_mismatches(mntr, strlen("zk_server_state\tfollower\n")), 0);
    assert_int_equal(dv_word_mntr_mismatches(refused, strlen(refused)), 0);
    static const char cut[] = "zk_server_state\tfollower\nzk_digest_mismatches_count\t15";
    assert_int_equal(dv_word_mntr_mismatches(cut, strlen(cut)), 0);
    static const char below[] = "zk_digest_mismatches_count\t-1\n",
                      above[] = "zk_digest_mismatches_count\t99999999999999999999999\n";
    assert_int_equal(dv_word_mntr_mismatches(below, strlen(below)), 0);
    assert_int_equal(dv_word_mntr_mismatches(above, strlen(above)), 0);
}

/* Connections with a session, each with its silence against the newest answer; those of two servers in one list. */
TEST(test_cons) {
    dv_word_connection *list = NULL;
    size_t count = 0;
    assert_true(dv_word_cons_parse(cons, strlen(cons), &list, &count));
    assert_int_equal(count, 2);
    assert_true(list[0].session == INT64_C(0x100002901030000) && list[0].silent_ms == 0);
    assert_int_equal(list[0].established_ms, INT64_C(1795558157467));
    assert_string_equal(list[0].address, "127.0.0.1:32900");
    assert_true(list[1].session == (int64_t)UINT64_C(0xff00002901030000));
    assert_int_equal(list[1].silent_ms, 4000);
    assert_int_equal(list[1].timeout_ms, 6000);
    assert_true(dv_word_cons_parse(cons, strlen(cons), &list, &count));
    assert_int_equal(count, 4);
    assert_false(dv_word_cons_parse(refused, strlen(refused), &list, &count));
    assert_false(dv_word_cons_parse("", 0, &list, &count));
    assert_int_equal(count, 4);
    free(list);
}

/* A list of more connections than are taken is not the whole one, and says so. */
TEST(test_cons_without_end) {
    enum { MOST = 100000 };
    static const char line[] = " /10.0.0.7:4000[1](queued=0,recved=3,sent=3,sid=0x1,est=1,to=6000,lresp=1)\n";
    size_t bytes = strlen(line), count = 0;
    dv_word_connection *list = NULL;
    char *many = malloc((MOST + 1) * bytes);
    assert_non_null(many);
    for (size_t i = 0; i <= MOST; i++) memcpy(many + i * bytes, line, bytes);
    assert_true(dv_word_cons_parse(many, MOST * bytes, &list, &count));
    assert_int_equal(count, MOST);
    count = 0;
    assert_false(dv_word_cons_parse(many, (MOST + 1) * bytes, &list, &count));
    assert_int_equal(count, MOST);
    free(list);
    free(many);
}

/* Each beginning of an answer is parsed within its bounds, which a sanitizer watches. */
TEST(test_beginnings) {
    static const char *const texts[] = {srvr, conf, cons, mntr, refused};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t bytes = 0; bytes < strlen(texts[i]); bytes++) {
            char *copy = malloc(bytes + 1);
            assert_non_null(copy);
            memcpy(copy, texts[i], bytes);
            char *exact = realloc(copy, bytes ? bytes : 1);
            assert_non_null(exact);
            dv_word_connection *list = NULL;
            size_t count = 0;
            (void)dv_word_srvr_parse(exact, bytes);
            (void)dv_word_conf_parse(exact, bytes);
            (void)dv_word_mntr_mismatches(exact, bytes);
            dv_word_cons_parse(exact, bytes, &list, &count);
            assert_true(count <= 2);
            free(list);
            free(exact);
        }
    }
}
