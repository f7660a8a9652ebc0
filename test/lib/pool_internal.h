/* Shared by the files of the pool fixture. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_POOL_INTERNAL_H
#define DV_TEST_POOL_INTERNAL_H

#include "pool.h"

/* pool_record.c: a member's memory of what it was told. */
void dv_test_record_init(dv_test_member *member);
void dv_test_record_free(dv_test_member *member);
void dv_test_record_hook(dv_test_member *member, divvy_client_config *client, divvy_partitioner_config *partitioner);
/* Fails the test on what a callback found wrong. */
void dv_test_record_check(dv_test_member *member);
/* Fails the test when the snapshot is not what callbacks have said. */
void dv_test_record_compare(dv_test_member *member);

/* Memory or the end. */
void *dv_test_alloc(size_t count, size_t bytes);
char **dv_test_sorted_copy(const char *const *names, size_t count);
void dv_test_free_copies(char **names, size_t count);

/* Returns whether it takes part: it has a partitioner, and was not killed. */
bool dv_test_member_lives(const dv_test_member *member);

#endif
