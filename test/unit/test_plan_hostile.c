/* The sticky plan's texts as hostile input: each must be refused, or be a plan. SPDX-License-Identifier: Apache-2.0 */
#include "plan_fixture.h"

/* Reads the text. Nothing breaks, whether it is a plan or not, and a text that is taken for a plan can be written. */
static void try_text(const char *text, size_t bytes) {
    dv_plan *plan;
    dv_plan_fault fault = {0};
    int error = read_whole(&plan, text, bytes, &fault);
    if (error == 0) {
        dv_plan_text again;
        print_whole(&again, plan);
        free(again.bytes);
        dv_plan_free(plan);
        return;
    }
    assert_true(error == DIVVY_EPROTO || error == DIVVY_EUNSUPPORTED || error == DIVVY_ENOENT);
    if (error == DIVVY_EPROTO) assert_non_null(fault.why);
}

static const char other_bytes[] = {0, ' ', '"', '\\', '0', '9', '-', ',', ':', '[', ']', '{', '}', (char)0xff};

/* A plan that was cut anywhere is broken. */
TEST(test_every_truncation) {
    dv_plan *plan = small_plan(), *read;
    dv_plan_text text;
    print_whole(&text, plan);
    for (size_t bytes = 0; bytes < text.count; bytes++) {
        assert_int_equal(read_whole(&read, text.bytes, bytes, NULL), DIVVY_EPROTO);
    }
    free(text.bytes);
    dv_plan_free(plan);
}

/* Any byte may be any other: each bit of each byte, and the signs of JSON in its place, left out, and put in twice. */
TEST(test_every_byte) {
    dv_plan *plan = small_plan();
    dv_plan_text text;
    print_whole(&text, plan);
    char *other = malloc(text.count + 1);
    assert_non_null(other);
    for (size_t at = 0; at < text.count; at++) {
        memcpy(other, text.bytes, text.count);
        for (int bit = 0; bit < 8; bit++) {
            other[at] = (char)(text.bytes[at] ^ 1 << bit);
            try_text(other, text.count);
        }
        for (size_t n = 0; n < COUNT(other_bytes); n++) {
            other[at] = other_bytes[n];
            try_text(other, text.count);
        }
        memmove(other + at, text.bytes + at + 1, text.count - at - 1);
        try_text(other, text.count - 1);
        memcpy(other + at + 1, text.bytes + at, text.count - at);
        other[at] = text.bytes[at];
        try_text(other, text.count + 1);
    }
    free(other);
    free(text.bytes);
    dv_plan_free(plan);
}

/* The same of deltas, which are applied to a plan that they fit. */
TEST(test_every_byte_of_a_delta) {
    static const char delta[] = "{\"members\":[{\"slot\":0,\"key\":\"n1\",\"static\":0,\"weight\":500,\"zone\":\"\","
                                "\"rejoin_delay_ms\":0,\"absent\":\"0\",\"leaving\":\"\"},{\"slot\":34,\"key\":\"n4\","
                                "\"static\":1,\"weight\":1,\"zone\":\"\",\"rejoin_delay_ms\":0,\"absent\":\"0\","
                                "\"leaving\":\"\"}],\"gone\":[3],\"moves\":[[-1,1],[2,3],[34,0,2]]}";
    enum { BYTES = sizeof delta - 1 };
    dv_plan *plan = small_plan();
    for (size_t at = 0; at <= BYTES; at++) {
        char *other = malloc(BYTES);
        assert_non_null(other);
        for (size_t n = 0; n < 8 + COUNT(other_bytes); n++) {
            memcpy(other, delta, BYTES);
            if (at < BYTES) other[at] = n < 8 ? (char)(delta[at] ^ 1 << n) : other_bytes[n - 8];
            dv_plan *copy = dv_plan_copy(plan);
            assert_non_null(copy);
            int error = dv_plan_apply(copy, other, BYTES, NULL);
            assert_true(error == 0 || (error == DIVVY_EPROTO && at < BYTES));
            dv_plan_free(copy);
        }
        free(other);
        if (at == BYTES) break;
        other = malloc(at + 1);
        assert_non_null(other);
        memcpy(other, delta, at);
        dv_plan *copy = dv_plan_copy(plan);
        assert_non_null(copy);
        assert_int_equal(dv_plan_apply(copy, other, at, NULL), DIVVY_EPROTO);
        dv_plan_free(copy);
        free(other);
    }
    dv_plan_free(plan);
}

/* `text` with the first `find` in it replaced, malloc'ed. */
static char *replaced(const dv_plan_text *text, const char *find, const char *by, size_t *bytes) {
    const char *at = memmem(text->bytes, text->count, find, strlen(find));
    if (at == NULL) fail_msg("\"%s\" is not in the text", find);
    *bytes = text->count - strlen(find) + strlen(by);
    char *other = malloc(*bytes + 1);
    assert_non_null(other);
    size_t before = (size_t)(at - text->bytes), after = before + strlen(find);
    memcpy(other, text->bytes, before);
    strcpy(other + before, by);
    memcpy(other + before + strlen(by), text->bytes + after, text->count - after);
    return other;
}

/* Each thing that a root or a part must not be is refused, for its own reason (D3 to D8). */
TEST(test_each_fault) {
    static const struct {
        const char *find, *by, *why;
    } faults[] = {
        {"{\"v\":1,", "{\"v\":0,", "has something else where an integer in range should be"},
        {"{\"v\":1,", "{\"v\":-1,", "has something else where an integer in range should be"},
        {"{\"v\":1,", "{", "does not begin with its version"},
        {"{\"v\":1,", "{\"w\":1,\"v\":1,", "does not begin with its version"},
        {"{\"v\":1,", "[\"v\":1,", "does not begin with its version"},
        {"{\"v\":1,", "{\"v\":1,\"v\":1,", "has a key twice"},
        {"\"generation\":18", "\"generation\":18,\"generation\":18", "has a key twice"},
        {"\"generation\":18,", "", "lacks a key"},
        {"\"generation\":18", "\"generation\":-1", "has something else where an integer in range should be"},
        {"\"generation\":18", "\"generation\":018", "has something else where an integer in range should be"},
        {"\"generation\":18", "\"generation\":1.8", "has no comma and no end after a value"},
        {"\"generation\":18", "\"generation\":1e8", "has no comma and no end after a value"},
        {"\"generation\":18", "\"generation\":\"18\"", "has something else where an integer in range should be"},
        {"\"generation\":18", "\"generation\":9007199254740992",
         "has something else where an integer in range should be"},
        {"\"generation\":18", "\"generation\":99999999999999999999",
         "has something else where an integer in range should be"},
        {"\"generation\":18", "\"generation\": 18", "has something else where an integer in range should be"},
        {"\"guid\":\"00000000001aaaaaaaaaaa7\"", "\"guid\":\"\"", "has something else where a guid should be"},
        {"\"guid\":\"00000000001aaaaaaaaaaa7\"", "\"guid\":\"a-b\"", "has something else where a guid should be"},
        {"\"guid\":\"00000000001aaaaaaaaaaa7\"", "\"guid\":\"other\"", "does not lead to the plan that it is"},
        {"\"after\":\"0", "\"after\":\"012345678901234567890123456789", "has too long a string"},
        {"\"epoch\":\"00000000001aaaaaaaaaaa1\"", "\"epoch\":\"\"", "has something else where a guid should be"},
        {"\"epoch\":\"00", "\"epoch\":\"\\u0030", "has an escape where none may be"},
        {"\"1a0000002f\"", "\"01a0000002f\"", "has something else where a hexadecimal number should be"},
        {"\"1a0000002f\"", "\"1A0000002f\"", "has something else where a hexadecimal number should be"},
        {"\"1a0000002f\"", "\"\"", "has something else where a hexadecimal number should be"},
        {"\"1a0000002f\"", "\"ffffffffffffffff\"", "has a zxid that is out of range"},
        {"\"algorithm\":1", "\"algorithm\":0", "has something else where an integer in range should be"},
        {"\"max_moves\":2", "\"max_moves\":4294967296", "has something else where an integer in range should be"},
        {"\"tag\":\"1a2b3c4d\"", "\"tag\":\"1a2b3c4\"", "has something else where a hexadecimal number should be"},
        {"\"count\":5", "\"count\":4", "has moved items that are none"},
        {"\"count\":5", "\"count\":6", "has fewer items than the root says"},
        {"\"count\":5", "\"count\":1000000", "is too short for its number of items"},
        {"\"count\":5", "\"count\":1000001", "has something else where an integer in range should be"},
        {"\"tenant:42\"", "\"tenant:42\",\"u\"", "has more items than the root says"},
        {"\"tenant:42\"", "\"tenant:43\"", "has other items than the root says"},
        {"\"tenant:42\"", "\"a/c\"", "has an item whose name is not encoded as it should be"},
        {"\"tenant:42\"", "\"q\\\"uote\\\\\"", "has items that are not in order"},
        {"\"tenant:42\"", "\"a\"", "has items that are not in order"},
        {"\"tenant:42\"", "\"\"", "has an empty item"},
        {"\"tenant:42\"", "42", "has something else where a string should be"},
        {"\"tenant:42\"", "\"tenant\\u0000\"", "has a false escape in a string"},
        {"\"tenant:42\"", "\"tenant\\ud83d\"", "has a false escape in a string"},
        {"\"tenant:42\"", "\"tenant\\x\"", "has a false escape in a string"},
        {"\"tenant:42\"", "\"tenant\n\"", "has a control character in a string"},
        {"\"tenant:42\"", "\"tenant\xff\"", "has an item whose name is not encoded as it should be"},
        {"\"x%2541\"", "\"x%41\"", "has an item whose name is not encoded as it should be"},
        {"\"a%2Fb\"", "\"a%2fb\"", "has an item whose name is not encoded as it should be"},
        {"{\"inline\":[", "{\"outline\":[", "lacks a key"},
        {"{\"inline\":[\"a%2Fb\",\"q\\\"uote\\\\\",\"tenant:42\",\"x%2541\",\"\xc3\xa9\"]}", "{\"chunks\":[]}",
         "has a part of no chunks"},
        {"{\"inline\":[", "{\"inline\":[[[[[[[[[", "is nested too deeply"},
        {"\"moved\"", "\"more\":[[[[[[[[[1]]]]]]]]],\"moved\"", "is nested too deeply"},
        {"{\"slot\":0,", "{\"slot\":2,", "has members that are not in the order of their slots"},
        {"{\"slot\":0,", "{\"slot\":10000,", "has something else where an integer in range should be"},
        {"{\"slot\":3,", "{\"slot\":4,", "has another sum than the root says"},
        {"{\"slot\":3,", "{\"slot\":35,", "has another width than its slots need"},
        {"{\"slot\":2,", "{\"slot\":1,", "has an owner that is no member"},
        {"\"key\":\"host-2\"", "\"key\":\"\"", "has a string of a length that is out of range"},
        {"\"key\":\"host-2\"", "\"key\":\"host\xff\"", "has a string that is no UTF-8"},
        {"\"key\":\"n3-w\"", "\"key\":\"n1,a=2,s=1a2b3c4d-w\"", "has two members of one key"},
        {"\"static\":1", "\"static\":0", "has an absent member that is not static"},
        {"\"static\":1", "\"static\":true", "has something else where an integer in range should be"},
        {"\"weight\":1000", "\"weight\":1001", "has another sum than the root says"},
        {"\"weight\":4294967295", "\"weight\":4294967296", "has something else where an integer in range should be"},
        {"\"leaving\":\"\"", "\"leaving\":null", "has something else where a string should be"},
        {"\"zone\":\"\",", "", "lacks a key"},
        {"\"width\":1", "\"width\":4", "has something else where an integer in range should be"},
        {"\"owners\":\"02z02\"", "\"owners\":\"02z0\"", "has another number of owners than of items"},
        {"\"owners\":\"02z02\"", "\"owners\":\"02z022\"", "has another number of owners than of items"},
        {"\"owners\":\"02z02\"", "\"owners\":\"02Z02\"", "has an owner that is no number"},
        {"\"owners\":\"02z02\"", "\"owners\":\"02z05\"", "has an owner that is no member"},
        {"\"owners\":\"02z02\"", "\"owners\":\"02z00\"", "has another sum than the root says"},
        {"\"moved\":[1,4]", "\"moved\":[1,1]", "has moved items that are not in order"},
        {"\"moved\":[1,4]", "\"moved\":[4,1]", "has moved items that are not in order"},
        {"\"moved\":[1,4]", "\"moved\":[1,5]", "has moved items that are none"},
        {"\"moved\":[1,4]", "\"moved\":[1,]", "has something else where an integer in range should be"},
        {"\"moved\":[1,4]", "\"moved\":[1 4]", "has no comma and no end after an element"},
        {"\"moved\":[1,4]", "\"moved\":{}", "has something else where a list should be"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\"]]", "has a delta without its text"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\",{\"chunks\":[[\"1-d\",5,\"00000000\"]]}]]", "names a chunk that is none"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\",{\"chunks\":[[\"1-d-0\",5]]}]]", "does not tell a chunk's crc"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\",{\"chunks\":[[\"1-d-0\",200001,\"00000000\"]]}]]",
         "has something else where an integer in range should be"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\",{\"chunks\":[[\"1-d-0\",0,\"00000000\"]]}]]",
         "has something else where an integer in range should be"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\",{\"chunks\":[[\"1-d-0\",5,\"00000000\",1]]}]]",
         "tells too much of a chunk"},
        {"\"deltas\":[]", "\"deltas\":[[\"d\",{\"inline\":1},2]]", "tells too much of a delta"},
        {"\"sum\"", "\"some\":1,\"sum\":\"00000000\",\"sum\"", "has a key twice"},
    };
    dv_plan *plan = small_plan(), *read;
    dv_plan_text text;
    print_whole(&text, plan);
    for (size_t n = 0; n < COUNT(faults); n++) {
        size_t bytes;
        char *other = replaced(&text, faults[n].find, faults[n].by, &bytes);
        dv_plan_fault fault = {0};
        int error = read_whole(&read, other, bytes, &fault);
        if (error != DIVVY_EPROTO || strcmp(fault.why, faults[n].why) != 0) {
            fail_msg("%s for %s: %s, %s", faults[n].by, faults[n].find, divvy_errname(error), fault.why);
        }
        free(other);
    }
    free(text.bytes);
    dv_plan_free(plan);
}

/* Each thing that a delta must not be. */
TEST(test_each_fault_of_a_delta) {
    static const struct {
        const char *members, *gone, *moves, *why;
    } faults[] = {
        {"[]", "[1]", "[]", "takes members away that are not there"},
        {"[]", "[3,3]", "[]", "takes members away that are not there"},
        {"[]", "[3,0]", "[]", "takes members away that are not there"},
        {"[]", "[]", "[[1,0]]", "has moves to no member"},
        {"[]", "[3]", "[[3,0]]", "has moves to no member"},
        {"[]", "[]", "[[2,0],[0,1]]", "has moves that are not in the order of slots"},
        {"[]", "[]", "[[2,0],[2,1]]", "has moves that are not in the order of slots"},
        {"[]", "[]", "[[2,1,0]]", "moves an item twice, or not in their order"},
        {"[]", "[]", "[[2,1,1]]", "moves an item twice, or not in their order"},
        {"[]", "[]", "[[0,1],[2,1]]", "moves an item twice, or not in their order"},
        {"[]", "[]", "[[0,5]]", "has something else where an integer in range should be"},
        {"[]", "[]", "[[0,-1]]", "has something else where an integer in range should be"},
        {"[]", "[]", "[[-2,1]]", "has something else where an integer in range should be"},
        {"[]", "[]", "[[]]", "has moves to nobody"},
        {"[]", "[]", "{}", "has something else where a list should be"},
        {"{}", "[]", "[]", "has something else where a list should be"},
        {"[{}]", "[]", "[]", "lacks a key"},
    };
    dv_plan *plan = small_plan();
    for (size_t n = 0; n < COUNT(faults); n++) {
        char text[256];
        int bytes = sprintf(text, "{\"members\":%s,\"gone\":%s,\"moves\":%s}", faults[n].members, faults[n].gone,
                            faults[n].moves);
        dv_plan *copy = dv_plan_copy(plan);
        assert_non_null(copy);
        dv_plan_fault fault = {0};
        int error = dv_plan_apply(copy, text, (size_t)bytes, &fault);
        if (error != DIVVY_EPROTO || strcmp(fault.why, faults[n].why) != 0) {
            fail_msg("%s: %s, %s", text, divvy_errname(error), fault.why);
        }
        dv_plan_free(copy);
    }
    dv_plan_free(plan);
}

/* A plan of a later version or algorithm is told from a broken one, whatever else is in it (D3). */
TEST(test_newer) {
    static const char *const texts[] = {"{\"v\":2}", "{\"v\":2,", "{\"v\":17,\"generation\":{\"x\":[1.5,null]}}",
                                        "{\"v\":9007199254740991 and so on"};
    dv_plan *read, *plan = small_plan();
    for (size_t n = 0; n < COUNT(texts); n++) {
        assert_int_equal(read_whole(&read, texts[n], strlen(texts[n]), NULL), DIVVY_EUNSUPPORTED);
    }
    dv_plan_text text;
    size_t bytes;
    print_whole(&text, plan);
    char *other = replaced(&text, "\"algorithm\":1", "\"algorithm\":3", &bytes);
    assert_int_equal(read_whole(&read, other, bytes, NULL), DIVVY_EUNSUPPORTED);
    free(other);
    free(text.bytes);
    dv_plan_free(plan);
}

/* Keys that a later release of the same version adds are passed over, at every level; the order of keys is free
 * (D2). */
TEST(test_unknown_keys) {
    static const char *const changes[][2] = {
        {"\"moved\"", "\"more\":{\"a\":[1.5e3,null,true,\"\\\"}\",{}],\"b\":[]},\"moved\""},
        {"\"algorithm\":1", "\"burst\":7,\"algorithm\":1"},
        {"\"spread_zones\":1", "\"spread_zones\":0"},
        {"\"count\":5", "\"size\":\"5\",\"count\":5"},
        {"\"slot\":0", "\"rack\":[],\"slot\":0"},
        {"\"width\":1", "\"wide\":{},\"width\":1"},
        {"\"slot\":3,\"key\":\"n3-w\"", "\"key\":\"n3-w\",\"slot\":3"},
        {"\"reason\":\"join\"", "\"reason\":\"whatever comes\""},
        {"\"zone\":\"r\\u0001\\\"\xc3\xa4\"", "\"zone\":\"r\\u0001\\u0022\\u00e4\""},
    };
    dv_plan *plan = small_plan(), *read;
    dv_plan_text text;
    print_whole(&text, plan);
    for (size_t n = 0; n < COUNT(changes); n++) {
        size_t bytes;
        char *other = replaced(&text, changes[n][0], changes[n][1], &bytes);
        dv_plan_fault fault = {0};
        if (read_whole(&read, other, bytes, &fault) != 0) fail_msg("%s: %s", changes[n][1], fault.why);
        assert_true(states_equal(read, plan));
        dv_plan_free(read);
        free(other);
    }
    free(text.bytes);
    dv_plan_free(plan);
}

/* A text that is too long or too deep is refused before anything of its size is allocated. */
TEST(test_limits) {
    dv_plan *plan = small_plan(), *read;
    dv_plan_text text;
    size_t bytes;
    dv_plan_fault fault = {0};
    print_whole(&text, plan);
    char *long_text = malloc(DV_PLAN_ROOT_BYTES_MAX + 3);
    assert_non_null(long_text);
    memset(long_text, 'x', DV_PLAN_ROOT_BYTES_MAX);
    memcpy(long_text, "\"more\":\"", 8);
    strcpy(long_text + DV_PLAN_ROOT_BYTES_MAX - 8, "\",\"sum\"");
    char *other = replaced(&text, "\"sum\"", long_text, &bytes);
    assert_int_equal(read_whole(&read, other, bytes, &fault), DIVVY_EPROTO);
    assert_string_equal(fault.why, "is too long");
    free(other);
    memset(long_text, '[', DV_PLAN_ROOT_BYTES_MAX);
    memcpy(long_text, "{\"v\":1,\"x\":", 11);
    assert_int_equal(read_whole(&read, long_text, DV_PLAN_ROOT_BYTES_MAX, &fault), DIVVY_EPROTO);
    assert_string_equal(fault.why, "is nested too deeply");
    /* 400 chunks of a part, but no more; and a root of 65 deltas. */
    for (int chunks = DV_PLAN_CHUNKS_MAX; chunks <= DV_PLAN_CHUNKS_MAX + 1; chunks++) {
        char *to = long_text + sprintf(long_text, "\"deltas\":[[\"00000000001aaaaaaaaaaa7\",{\"chunks\":[");
        for (int n = 0; n < chunks; n++) to += sprintf(to, "%s[\"1-d-%d\",1,\"00000000\"]", n > 0 ? "," : "", n);
        strcpy(to, "]}]]");
        other = replaced(&text, "\"deltas\":[]", long_text, &bytes);
        dv_plan_root root;
        int error = dv_plan_root_parse(&root, other, bytes, &fault);
        assert_int_equal(error, chunks > DV_PLAN_CHUNKS_MAX ? DIVVY_EPROTO : 0);
        if (error != 0) assert_string_equal(fault.why, "has a part that is too large");
        else dv_plan_root_clear(&root);
        free(other);
    }
    /* 64 MiB in chunks of a part, but no more. */
    for (int chunks = 335; chunks <= 336; chunks++) {
        char *to = long_text + sprintf(long_text, "\"deltas\":[[\"00000000001aaaaaaaaaaa7\",{\"chunks\":[");
        for (int n = 0; n < chunks; n++) to += sprintf(to, "%s[\"1-d-%d\",200000,\"00000000\"]", n > 0 ? "," : "", n);
        strcpy(to, "]}]]");
        other = replaced(&text, "\"deltas\":[]", long_text, &bytes);
        dv_plan_root root;
        int error = dv_plan_root_parse(&root, other, bytes, &fault);
        assert_int_equal(error, chunks > 335 ? DIVVY_EPROTO : 0);
        if (error == 0) dv_plan_root_clear(&root);
        free(other);
    }
    char *to = long_text + sprintf(long_text, "\"deltas\":[");
    for (int n = 0; n < DV_PLAN_DELTAS_MAX + 1; n++)
        to += sprintf(to, "%s[\"d%d\",{\"inline\":1}]", n > 0 ? "," : "", n);
    strcpy(to, "]");
    other = replaced(&text, "\"deltas\":[]", long_text, &bytes);
    assert_int_equal(read_whole(&read, other, bytes, &fault), DIVVY_EPROTO);
    assert_string_equal(fault.why, "has too many deltas");
    free(other);
    /* A key of 1,200 bytes may be, one of 1,201 not. */
    for (size_t length = DV_PLAN_KEY_BYTES_MAX; length <= DV_PLAN_KEY_BYTES_MAX + 1; length++) {
        memset(long_text, 'k', length + 16);
        memcpy(long_text, "\"leaving\":\"", 11);
        strcpy(long_text + 11 + length, "\"");
        other = replaced(&text, "\"leaving\":\"n3-w\"", long_text, &bytes);
        assert_int_equal(read_whole(&read, other, bytes, &fault), DIVVY_EPROTO);
        assert_string_equal(fault.why, length > DV_PLAN_KEY_BYTES_MAX ? "has a string of a length that is out of range"
                                                                      : "has another sum than the root says");
        free(other);
    }
    free(long_text);
    free(text.bytes);
    dv_plan_free(plan);
}
