/* Tests of handover/note.h: texts that are no notes. SPDX-License-Identifier: Apache-2.0 */
#include "note_fixture.h"

/* Everything that a note must not say is refused, with its reason. */
TEST(test_refused) {
    static const char integer[] = "has something else where an integer in range should be",
                      hex[] = "has something else where a hexadecimal number should be",
                      order[] = "has items that are not in order", none[] = "has items that are none";
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", NULL},
        {"{}", "does not begin with its version"},
        {"[]", "does not begin with its version"},
        {"{" SET ",\"v\":1,\"leaving\":[],\"ready\":[],\"given\":[]}", "does not begin with its version"},
        {"{\"v\":2}", "is of a later release"},
        {"{\"v\":9007199254740991,\"leaving\":7}", "is of a later release"},
        {"{\"v\":0," SET ",\"leaving\":[],\"ready\":[],\"given\":[]}", integer},
        {"{\"v\":-1," SET ",\"leaving\":[],\"ready\":[],\"given\":[]}", integer},
        {"{\"v\":1," SET ",\"leaving\":[],\"ready\":[]}", "lacks a key"},
        {"{\"v\":1,\"leaving\":[],\"ready\":[],\"given\":[]}", "lacks a key"},
        {"{\"v\":1," SET "," SET ",\"leaving\":[],\"ready\":[],\"given\":[]}", "has a key twice"},
        {LISTS("[]", "[]", "[]") "x", "goes on after its end"},
        {LISTS("[]", "[]", "[]") "\n", "goes on after its end"},
        {LISTS("[ 1]", "[]", "[]"), integer},
        {LISTS("[01]", "[]", "[]"), integer},
        {LISTS("[1.0]", "[]", "[]"), "has no comma and no end after an element"},
        {LISTS("[1,]", "[]", "[]"), integer},
        {LISTS("[\"1\"]", "[]", "[]"), integer},
        {LISTS("[-1]", "[]", "[]"), integer},
        {LISTS("[1000000]", "[]", "[]"), integer},
        {LISTS("[1000]", "[]", "[]"), none},
        {LISTS("[]", "[1000]", "[]"), none},
        {LISTS("[]", "[]", "[[\"1\",[1000,1]]]"), none},
        {LISTS("[2,1]", "[]", "[]"), order},
        {LISTS("[1,1]", "[]", "[]"), order},
        {LISTS("[]", "[2,1]", "[]"), order},
        {LISTS("[]", "[1,1]", "[]"), order},
        {LISTS("{}", "[]", "[]"), "has something else where a list should be"},
        {LISTS("[]", "null", "[]"), "has something else where a list should be"},
        {LISTS("[]", "[]", "[[\"1\",[1,-1]]]"), integer},
        {LISTS("[]", "[]", "[[\"1\",[1,-0]]]"), integer},
        {LISTS("[]", "[]", "[[\"1\",[1,2147483648]]]"), integer},
        {LISTS("[]", "[]", "[[\"1\",[-1,1]]]"), integer},
        {LISTS("[]", "[]", "[[\"1\",[1]]]"), "gives an item without its number"},
        {LISTS("[]", "[]", "[[\"1\",[1,2,3]]]"), "gives an item without its number"},
        {LISTS("[]", "[]", "[[\"1\",[]]]"), "has a group that gives nothing"},
        {LISTS("[]", "[]", "[[]]"), NULL},
        {LISTS("[]", "[]", "[[\"1\"]]"), "has a group without its items"},
        {LISTS("[]", "[]", "[[\"1\",[1,1],2]]"), "tells too much of a group"},
        {LISTS("[]", "[]", "[[\"1\",1]]"), "has something else where a list should be"},
        {LISTS("[]", "[]", "[[\"0\",[1,1]]]"), "gives items for no note"},
        {LISTS("[]", "[]", "[[\"\",[1,1]]]"), hex},
        {LISTS("[]", "[]", "[[\"01\",[1,1]]]"), hex},
        {LISTS("[]", "[]", "[[\"A\",[1,1]]]"), hex},
        {LISTS("[]", "[]", "[[\"-1\",[1,1]]]"), hex},
        {LISTS("[]", "[]", "[[1,[1,1]]]"), "has something else where a string should be"},
        {LISTS("[]", "[]", "[[\"8000000000000000\",[1,1]]]"), "has a zxid that is out of range"},
        {LISTS("[]", "[]", "[[\"10000000000000000\",[1,1]]]"), "has too long a string"},
        {LISTS("[]", "[]", "[[\"\\u0031\",[1,1]]]"), "has an escape where none may be"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) assert_refused(cases[i].text, cases[i].why);
}

/* A set that cannot be is refused, whatever of it is wrong. The largest that can be is taken. */
TEST(test_refused_sets) {
    static const char *const sets[] = {
        "{\"count\":1000001,\"crc\":\"0badcafe\",\"hash\":\"0123456789abcdef\"}",
        "{\"count\":-1,\"crc\":\"0badcafe\",\"hash\":\"0123456789abcdef\"}",
        "{\"count\":1,\"crc\":\"badcafe\",\"hash\":\"0123456789abcdef\"}",
        "{\"count\":1,\"crc\":\"0BADCAFE\",\"hash\":\"0123456789abcdef\"}",
        "{\"count\":1,\"crc\":\"0badcafe\",\"hash\":\"123456789abcdef\"}",
        "{\"count\":1,\"crc\":\"0badcafe\",\"hash\":\"0123456789abcdef0\"}",
        "{\"count\":1,\"crc\":195939070,\"hash\":\"0123456789abcdef\"}",
        "{\"count\":1,\"crc\":\"0badcafe\"}",
        "[]",
        "{\"count\":1000000,\"crc\":\"0badcafe\",\"hash\":\"0123456789abcdef\",\"more\":1}", /* good */
    };
    for (size_t i = 0; i < COUNT(sets); i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"v\":1,\"set\":%s,\"leaving\":[0],\"ready\":[],\"given\":[]}", sets[i]);
        if (i + 1 < COUNT(sets)) {
            assert_refused(text, NULL);
            continue;
        }
        dv_note note = parse(text);
        assert_int_equal(note.set_count, DV_PLAN_ITEMS_MAX);
        dv_note_clear(&note);
    }
}

/* A text of more than 64 KiB is refused, even where it would say little; one of 64 KiB is read. */
TEST(test_too_long) {
    static char text[DV_NOTE_BYTES_MAX + 2];
    static const char begin[] = "{\"v\":1,\"x\":\"", end[] = "\"," SET ",\"leaving\":[],\"ready\":[],\"given\":[]}";
    for (size_t bytes = DV_NOTE_BYTES_MAX; bytes <= DV_NOTE_BYTES_MAX + 1; bytes++) {
        memset(text, 'x', bytes);
        memcpy(text, begin, sizeof begin - 1);
        memcpy(text + bytes - (sizeof end - 1), end, sizeof end);
        if (bytes > DV_NOTE_BYTES_MAX) {
            assert_refused_bytes(text, bytes, "is too long");
            continue;
        }
        dv_note note = parse(text);
        dv_note_clear(&note);
    }
}

/* A NUL is no part of a value, also where nobody looks at the value. */
TEST(test_nul_in_value) {
    static const char text[] = "{\"v\":1,\"x\":1\0," SET ",\"leaving\":[],\"ready\":[],\"given\":[]}";
    assert_refused_bytes(text, sizeof text - 1, "has no comma and no end after a value");
}

/* A text that ends too early is refused wherever it ends. With any byte changed it is refused, or it is a note. */
TEST(test_torn) {
    char other[sizeof whole];
    for (size_t at = 0; at < sizeof whole - 1; at++) {
        assert_refused_bytes(whole, at, NULL);
        memcpy(other, whole, sizeof whole);
        for (int byte = 0; byte < 256; byte++) {
            dv_note note;
            other[at] = (char)byte;
            int error = parse_bytes(&note, other, sizeof whole - 1, NULL);
            assert_true(error == 0 || error == DIVVY_EPROTO);
            if (error != 0) assert_empty(&note);
            for (size_t i = 0; i < note.given_count; i++) assert_true(note.given[i].item < note.set_count);
            dv_note_clear(&note);
        }
    }
}
