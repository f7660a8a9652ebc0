/* Names and their index. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "partitioner/item_names.h"

/* Every name is found, by an equal text elsewhere, with a token of its own; nothing else is found. */
static void assert_index(const char *const *texts, size_t count) {
    dv_names *names = dv_names_copy(texts, count);
    assert_non_null(names);
    dv_name_index *index = dv_name_index_new(names);
    assert_non_null(index);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(names->names[i], texts[i]);
        assert_int_equal(atomic_load(dv_name_token(names->names[i])), 0);
        atomic_store(dv_name_token(names->names[i]), (int64_t)i + 1);
    }
    for (size_t i = 0; i < count; i++) {
        const char *found = dv_name_index_find(index, texts[i]);
        assert_ptr_equal(found, names->names[i]);
        assert_int_equal(atomic_load(dv_name_token(found)), i + 1);
    }
    assert_null(dv_name_index_find(index, "never"));
    assert_null(dv_name_index_find(index, ""));
    dv_name_index_free(index);
    dv_names_unref(names);
}

TEST(test_none_and_few) {
    static const char *const few[] = {"a", "ab",      "abc", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghabcdefgh",
                                      "b", "\xc3\xa4"};
    for (size_t count = 0; count <= sizeof few / sizeof *few; count++) assert_index(few, count);
}

/* Many names are found, of lengths around the eight bytes that are hashed at a time. */
TEST(test_many) {
    enum { COUNT = 100000 };
    const char **texts = (const char **)(uintptr_t)calloc(COUNT, sizeof *texts);
    for (size_t i = 0; i < COUNT; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.*s%zu", (int)(i % 24), "item-item-item-item-item", i + 1000000);
        texts[i] = strdup(text);
    }
    assert_index(texts, COUNT);
    for (size_t i = 0; i < COUNT; i++) free((void *)(uintptr_t)texts[i]);
    free((void *)texts);
}

/* For every length up to three words: a name is told from each that differs in one byte, goes on, or ends earlier. The
 * index finds each of them. */
TEST(test_alike) {
    for (size_t bytes = 1; bytes <= 24; bytes++) {
        char texts[26][32];
        const char *all[26];
        for (size_t i = 0; i < bytes + 2; i++) {
            memset(texts[i], 'm', bytes + 1);
            texts[i][i < bytes ? bytes : i == bytes ? bytes + 1 : bytes - (bytes > 1)] = '\0';
            if (i < bytes) texts[i][i] = 'n';
            all[i] = texts[i];
        }
        assert_index(all, bytes > 1 ? bytes + 2 : bytes + 1);
        for (size_t i = 0; i < bytes + 2; i++) {
            dv_names *one = dv_names_copy(&all[i], 1);
            for (size_t k = 0; k < bytes + 2; k++)
                assert_int_equal(dv_name_same(one->names[0], all[k], strlen(all[k])), strcmp(all[i], all[k]) == 0);
            dv_names_unref(one);
        }
    }
}
