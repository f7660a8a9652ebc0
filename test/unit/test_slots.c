/* Tests of recipe/slots.h and recipe/record.h: names, limits and records of a semaphore. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "lib/test.h"
#include "recipe/record.h"
#include "recipe/slots.h"

#define KAZOO "0123456789abcdef0123456789abcdef"

/* The slots that `names` leave, for `count` of `limit`: as the name's tags, or "full". */
static const char *chosen(uint32_t limit, uint32_t count, const char *const *names, size_t name_count) {
    static char text[DV_SLOT_TAGS_BYTES];
    dv_slots slots;
    dv_pool_state state = dv_slots_choose(names, name_count, limit, count, &slots);
    assert_int_not_equal(state, DV_POOL_OUT_OF_MEMORY);
    if (state == DV_POOL_FULL) return "full";
    assert_int_equal(slots.count, count);
    size_t bytes = dv_slots_print(&slots, text);
    assert_int_equal(bytes, strlen(text));
    return text;
}

#define CHOSEN(limit, count, ...)                                                   \
    (__extension__({                                                                \
        static const char *const names_[] = {"", ##__VA_ARGS__};                    \
        chosen((limit), (count), names_ + 1, sizeof names_ / sizeof names_[0] - 1); \
    }))

/* --- choosing --------------------------------------------------------------------------------------------------- */

/* The lowest free slot; the lowest run that is long enough; else the lowest that are free; else nothing at all. */
TEST(test_chooses_the_lowest) {
    assert_string_equal(CHOSEN(3, 1), ",n=0,c=1");
    assert_string_equal(CHOSEN(3, 3), ",n=0,c=3");
    assert_string_equal(CHOSEN(3, 4), "full");
    assert_string_equal(CHOSEN(3, 1, "a,n=0,c=1", "b,n=1,c=1"), ",n=2,c=1");
    assert_string_equal(CHOSEN(3, 1, "b,n=1,c=1", "c,n=2,c=1"), ",n=0,c=1");
    assert_string_equal(CHOSEN(3, 1, "a,n=0,c=3"), "full");
    assert_string_equal(CHOSEN(8, 2, "a,n=1,c=1", "b,n=3,c=2"), ",n=5,c=2");
    assert_string_equal(CHOSEN(5, 3, "a,n=1,c=1", "b,n=3,c=1"), ",n=0,c=3,x=2+0.4+0");
    assert_string_equal(CHOSEN(6, 3, "a,n=2,c=1", "b,n=4,c=1"), ",n=0,c=3,x=3+0");
    assert_string_equal(CHOSEN(5, 1, "a,n=0,c=3,x=2+0.4+0", "b,n=1,c=1"), ",n=3,c=1");
    assert_string_equal(CHOSEN(5, 4, "a,n=1,c=1", "b,n=3,c=1"), "full");
    assert_string_equal(CHOSEN(INT32_MAX, 1, "a,n=0,c=2147483646"), ",n=2147483646,c=1");
    assert_string_equal(CHOSEN(INT32_MAX, 2147483646), ",n=0,c=2147483646");
}

/* A child without a number counts one: kazoo's leases, and whatever a stranger has put there. */
TEST(test_counts_what_has_no_number) {
    assert_string_equal(CHOSEN(2, 1, KAZOO), ",n=0,c=1");
    assert_string_equal(CHOSEN(2, 2, KAZOO), "full");
    assert_string_equal(CHOSEN(2, 1, KAZOO, "a,n=0,c=1"), "full");
    assert_string_equal(CHOSEN(3, 1, "stray", "a,n=0,c=0"), ",n=0,c=1");
    assert_string_equal(CHOSEN(2, 1, "stray", "a,n=0,c=0"), "full");
    assert_string_equal(CHOSEN(2, 1, "a,n=0,c=3,x=2+2"), ",n=0,c=1"); /* malformed in the end only */
}

/* Leases from before the limit was lowered count, wherever they are, and lie outside the new slots. */
TEST(test_leases_above_the_limit) {
    assert_string_equal(CHOSEN(2, 1, "a,n=7,c=1"), ",n=0,c=1");
    assert_string_equal(CHOSEN(2, 1, "a,n=7,c=2"), "full");
    assert_string_equal(CHOSEN(3, 1, "a,n=2,c=2"), ",n=0,c=1");
    assert_string_equal(CHOSEN(4, 2, "a,n=3,c=2"), ",n=0,c=2");
}

/* Against a plain model: what is chosen is free, within the limit, and as many as wanted; and it is refused exactly if
 * too few are left. Names survive printing and parsing. */
TEST(test_chooses_as_a_model_does) {
    uint64_t random = 42;
    for (int round = 0; round < 20000; round++) {
        char texts[12][64 + DV_SLOT_TAGS_BYTES];
        const char *names[12];
        bool taken[24] = {false};
        size_t name_count = 0;
        uint32_t limit = 1 + (uint32_t)(random >> 33) % 12, sum = 0;
        for (int i = 0; i < 12; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint32_t count = 1 + (uint32_t)(random >> 33) % 4;
            dv_slots slots, read;
            if (dv_slots_choose(names, name_count, limit, count, &slots) == DV_POOL_FULL) {
                assert_true(sum + count > limit);
                continue;
            }
            assert_true(sum + count <= limit);
            for (uint32_t k = 0; k < count; k++) {
                int slot = dv_slots_at(&slots, k);
                assert_true(slot >= 0 && (uint32_t)slot < limit && !taken[slot]);
                taken[slot] = true;
            }
            assert_int_equal(dv_slots_at(&slots, count), -1);
            dv_slots_print(&slots, stpcpy(texts[name_count], "guid"));
            assert_true(dv_slots_parse(texts[name_count], &read));
            assert_int_equal(read.count, count);
            for (uint32_t k = 0; k < count; k++) assert_int_equal(dv_slots_at(&read, k), dv_slots_at(&slots, k));
            names[name_count] = texts[name_count];
            name_count++;
            sum += count;
            if (random >> 62) continue;
            size_t gone = (size_t)(random >> 40) % name_count; /* one of them is given back */
            assert_true(dv_slots_parse(names[gone], &read));
            for (uint32_t k = 0; k < read.count; k++) taken[dv_slots_at(&read, k)] = false;
            sum -= read.count;
            name_count--;
            if (gone != name_count) memmove(texts[gone], texts[name_count], sizeof texts[0]);
        }
    }
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* Only names that divvy could have written are taken for its leases. */
TEST(test_names) {
    static const char *const good[] = {"a,n=0,c=1", "Zz09,n=12,c=3", "a,n=0,c=3,x=2+1", "a,n=0,c=3,x=2+0.4+0",
                                       "a,n=2147483646,c=1"};
    static const char *const bad[] = {
        "",
        ",n=0,c=1",
        KAZOO,
        "a",
        "a,n=0",
        "a,c=1,n=0",
        "a,n=,c=1",
        "a,n=0,c=",
        "a,n=0,c=0",
        "a,n=00,c=1",
        "a,n=0,c=01",
        "a,n=-1,c=1",
        "a,n=+1,c=1",
        "a,n=0,c=1x",
        "a,n=0,c=1,",
        "a,n=2147483648,c=1",
        "a,n=0,c=2147483648",
        "a,n=2147483647,c=1",
        "a,n=2147483646,c=2",
        "a,n=99999999999999999999,c=1",
        "a-b,n=0,c=1",
        "a,n=0,c=1,x=",
        "a,n=0,c=1,x=2+0",
        "a,n=0,c=3,x=2",
        "a,n=0,c=3,x=2+",
        "a,n=0,c=3,x=1+0",
        "a,n=0,c=3,x=4+0.2+0",
        "a,n=0,c=3,x=2+0.",
        "a,n=0,c=3,x=2+2",
        "a,n=0,c=2,y=1",
        "a,n=0,c=40,x=2+0.4+0.6+0.8+0.10+0.12+0.14+0.16+0.18+0.20+0.22+0.24+0.26+0.28+0.30+0.32+0"};
    dv_slots slots;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char tags[DV_SLOT_TAGS_BYTES];
        assert_true(dv_slots_parse(good[i], &slots));
        dv_slots_print(&slots, tags);
        assert_string_equal(tags, strchr(good[i], ','));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (dv_slots_parse(bad[i], &slots)) fail_msg("\"%s\" is taken for a lease", bad[i]);
    }
}

/* kazoo is told from divvy by its names, in the pool and in the queue. */
TEST(test_knows_kazoo) {
    static const char *const ours[] = {"a,n=0,c=1", "b,n=1,c=2"}, *const mixed[] = {"a,n=0,c=1", KAZOO};
    static const char *const queue[] = {"00000000001000000000001__lock__0000000001", "x__lock__0000000002", "stray"};
    static const char *const kazoo_queue[] = {"x__lock__0000000002", KAZOO "__lock__0000000001"};
    static const char *const other[] = {KAZOO, KAZOO "f__lock__0000000001", "g" KAZOO "__lock__0000000001"};
    assert_false(dv_pool_has_kazoo(ours, 2));
    assert_false(dv_pool_has_kazoo(NULL, 0));
    assert_true(dv_pool_has_kazoo(mixed, 2));
    assert_false(dv_queue_has_kazoo(queue, 3));
    assert_true(dv_queue_has_kazoo(kazoo_queue, 2));
    assert_false(dv_queue_has_kazoo(other, 3));
}

/* --- the limit -------------------------------------------------------------------------------------------------- */

/* No data are no limit yet; digits are one, with white space around them as kazoo takes it; all else is an error. */
TEST(test_limit) {
    static const struct {
        const char *data;
        dv_limit_state state;
        uint32_t limit;
    } cases[] = {
        {"", DV_LIMIT_UNSET, 0},
        {"1", DV_LIMIT_SET, 1},
        {"0", DV_LIMIT_SET, 0},
        {"007", DV_LIMIT_SET, 7},
        {" 4\n", DV_LIMIT_SET, 4},
        {"2147483647", DV_LIMIT_SET, INT32_MAX},
        {"2147483648", DV_LIMIT_BAD, 0},
        {"-1", DV_LIMIT_BAD, 0},
        {"+1", DV_LIMIT_BAD, 0},
        {"1 2", DV_LIMIT_BAD, 0},
        {" ", DV_LIMIT_BAD, 0},
        {"x", DV_LIMIT_BAD, 0},
        {"99999999999999999999", DV_LIMIT_BAD, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t limit = 0;
        assert_int_equal(dv_limit_parse(cases[i].data, strlen(cases[i].data), &limit), cases[i].state);
        assert_int_equal(limit, cases[i].limit);
    }
    uint32_t limit;
    assert_int_equal(dv_limit_parse("1\0", 2, &limit), DV_LIMIT_BAD);
}

/* --- records ---------------------------------------------------------------------------------------------------- */

/* A written record is read back, whatever the identifier has in it, with the keys in the order of E11. */
TEST(test_record_round_trip) {
    static const char *const identifiers[] = {"host-1-2", "caf\xc3\xa9 \"x\"\\", "\x01\n", "{}", "b'x'"};
    for (size_t i = 0; i < sizeof identifiers / sizeof identifiers[0]; i++) {
        char *text = dv_record_print(identifiers[i], 3);
        dv_record record;
        assert_ptr_equal(strstr(text, "{\"id\":"), text);
        assert_true(strstr(text, "\"host\":") < strstr(text, "\"pid\":"));
        assert_true(strstr(text, "\"since\":") < strstr(text, "\"count\":3}"));
        assert_int_equal(dv_record_parse(text, strlen(text), true, &record), DV_RECORD_GOOD);
        assert_string_equal(record.identifier, identifiers[i]);
        assert_int_equal(record.pid, getpid());
        assert_int_equal(record.count, 3);
        dv_record_free(&record);
        free(text);
    }
}

/* A record of ours that is broken, too deep, too long or without an identifier is bad; fields that make no sense are as
 * if nothing were said. */
TEST(test_bad_records) {
    static const char *const bad[] = {
        "", "x", "[]", "{}", "{\"id\":1}", "{\"id\":\"x\"", "\"x\"", "{\"id\":\"x\",\"a\":[[[[[[[[[1]]]]]]]]]}"};
    dv_record record;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dv_record_parse(bad[i], strlen(bad[i]), true, &record), DV_RECORD_BAD);
    const char *odd = "{\"id\":\"x\",\"pid\":-3,\"host\":7,\"since\":null,\"count\":1e99}";
    assert_int_equal(dv_record_parse(odd, strlen(odd), true, &record), DV_RECORD_GOOD);
    assert_int_equal(record.pid, 0);
    assert_int_equal(record.count, 1);
    assert_string_equal(record.host, "");
    assert_string_equal(record.time, "");
    dv_record_free(&record);
    char *longer = malloc(DV_RECORD_BYTES_MAX + 1);
    memset(longer, ' ', DV_RECORD_BYTES_MAX + 1);
    memcpy(longer, "{\"id\":\"x\"}", 10);
    assert_int_equal(dv_record_parse(longer, DV_RECORD_BYTES_MAX, true, &record), DV_RECORD_GOOD);
    dv_record_free(&record);
    assert_int_equal(dv_record_parse(longer, DV_RECORD_BYTES_MAX + 1, true, &record), DV_RECORD_BAD);
    free(longer);
}

/* A record that breaks off anywhere is bad, and nothing is read behind its last byte: there is no memory there. */
TEST(test_truncated_records) {
    static const char whole[] =
        "{\"id\":\"x\\u0041\\\\\",\"host\":\"h\",\"pid\":12,\"since\":null,\"count\":1e2,\"a\":[true,false]}";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    dv_record record;
    for (size_t bytes = 0; bytes < strlen(whole); bytes++) {
        char *data = pages + page - bytes;
        memcpy(data, whole, bytes);
        assert_int_equal(dv_record_parse(data, bytes, true, &record), DV_RECORD_BAD);
    }
    munmap(pages, 2 * page);
    assert_int_equal(dv_record_parse(whole, strlen(whole), true, &record), DV_RECORD_GOOD);
    assert_string_equal(record.identifier, "xA\\");
    assert_int_equal(record.pid, 12);
    dv_record_free(&record);
}

/* kazoo writes its identifier as it is into the pool, and as Python shows bytes into the queue. */
TEST(test_kazoo_records) {
    static const char *const pairs[][2] = {
        {"worker-1", "worker-1"},
        {"", ""},
        {"b'worker-1'", "worker-1"},
        {"b''", ""},
        {"b\"it's\"", "it's"},
        {"b'caf\\xc3\\xa9'", "caf\xc3\xa9"},
        {"b'a\\\\b\\n'", "a\\b\n"},
        {"b'", "b'"},
        {"b'x", "b'x"},
        {"b'\\x00'", "x00"},
        {"b'\\t\\r\\''", "\t\r'"},
        {"b'\\xg1\\x1g\\x1'", "xg1x1gx1"},
        {"b'\\'", "\\"},
        {"b\"x'", "b\"x'"},
        {"b:x:", "b:x:"},
        {"c'x'", "c'x'"},
    };
    dv_record record;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(dv_record_parse(pairs[i][0], strlen(pairs[i][0]), false, &record), DV_RECORD_GOOD);
        assert_string_equal(record.identifier, pairs[i][1]);
        assert_int_equal(record.count, 1);
        dv_record_free(&record);
    }
    assert_int_equal(dv_record_parse("a\0b", 3, false, &record), DV_RECORD_BAD);
    assert_int_equal(dv_record_parse("\xff", 1, false, &record), DV_RECORD_BAD);
    assert_int_equal(dv_record_parse("b'\\xff'", 7, false, &record), DV_RECORD_BAD);
}

/* Well-formed UTF-8 and nothing else. */
TEST(test_utf8) {
    static const char *const good[] = {"",
                                       "a",
                                       "\xc2\x80",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "x\xc3\xa9y"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2\x61",
                                      "\xe0\x80\x80",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x80\x80\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "a\xff"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_true(dv_is_utf8(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_false(dv_is_utf8(bad[i]));
}
