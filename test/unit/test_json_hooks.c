/* Tests of a host program that has set cJSON's hooks: no text that cJSON printed is given to free(), and none that
 * malloc() gave is given to cJSON. SPDX-License-Identifier: Apache-2.0 */
#include "registry_fixture.h"

#include "divvy/line.h"
#include "divvy/table_json.h"
#include "plan/member_data.h"
#include "recipe/record.h"

/* The header of each block of cJSON's, which marks it as one. The mark lies where malloc() keeps the size of a
 * block, so that free() of the bytes behind it aborts. */
typedef struct {
    uint64_t bytes, mark;
} header;

#define MARK UINT64_C(0x686f73742773206f)

static size_t made, live;
static size_t tried, fails_at; /* the number of the allocation that fails, from 1 on; 0: none does */

static void *host_malloc(size_t bytes) {
    if (++tried == fails_at) return NULL;
    header *block = malloc(sizeof *block + bytes);
    if (!block) return NULL;
    *block = (header){.mark = MARK, .bytes = bytes};
    made++;
    live++;
    return block + 1;
}

static void host_free(void *memory) {
    if (!memory) return;
    header *block = (header *)memory - 1;
    if (block->mark != MARK) fail_msg("memory that is not the host's was given to its free()");
    block->mark = 0;
    live--;
    free(block);
}

static int set_hooks(void **state) {
    (void)state;
    made = live = tried = fails_at = 0;
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = host_malloc, .free_fn = host_free});
    return 0;
}

static int reset_hooks(void **state) {
    (void)state;
    cJSON_InitHooks(NULL);
    return 0;
}

/* Asserts that something was printed in the host's memory, and that all of it was given back. */
static void assert_balanced(void) {
    assert_true(made > 0);
    assert_int_equal(live, 0);
}

/* A semaphore's leases, and contenders for them, carry records. */
TEST(test_semaphore) {
    world w;
    open_world(&w, NULL, 1);
    open_client(&w, 0);
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = "/pools/s";
    config.limit = 2;
    config.count = 2;
    divvy_semaphore *semaphore;
    assert_int_equal(divvy_semaphore_create(&semaphore, w.clients[0], &config), 0);
    assert_int_equal(divvy_semaphore_acquire(semaphore, WAIT_MS), 0);
    assert_int_equal(divvy_semaphore_release(semaphore), 0);
    divvy_semaphore_destroy(semaphore);
    close_world(&w);
    assert_balanced();
}

/* A registry prints entries at each heartbeat, also of a unique service and of one that takes a place over. */
TEST(test_registry) {
    world w;
    open_world(&w, NULL, 2);
    divvy_registry *registry = open_registry(&w, 0, NULL);
    beat_only(registry, json("{'role':'web','id':'a','load':1,'ttl':60}"));
    beat_only(registry, json("{'role':'web','id':'a','load':2,'ttl':60,'extra':{'b':[1,2]}}"));
    cJSON *candidate = json("{'id':'a','ttl':60}"), *entry = NULL;
    assert_int_equal(divvy_registry_unique_service(registry, "only", candidate, &entry, WAIT_MS), 0);
    assert_true(divvy_registry_is_ours(registry, entry));
    cJSON_Delete(entry);
    cJSON_Delete(candidate);
    /* One that cannot be stored is printed too, and refused. */
    cJSON *bad = json("{'role':'web','id':'a','load':1,'ttl':60}"), *stored = NULL;
    cJSON_AddStringToObject(bad, "note", "\xff");
    assert_int_equal(divvy_registry_heartbeat(registry, bad, &stored, WAIT_MS), DIVVY_EINVAL);
    cJSON_Delete(bad);
    close_world(&w);
    assert_balanced();
}

/* A member of a pool that follows plans prints what it says of itself. */
TEST(test_partitioner) {
    static const char *const items[] = {"a", "b", "c"};
    world w;
    open_world(&w, NULL, 3);
    open_client(&w, 0);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = items;
    config.item_count = 3;
    config.identifier = "m";
    config.weight = 7;
    config.time_boundary_ms = 500;
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, w.clients[0], &config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, WAIT_MS), 0);
    divvy_partitioner_destroy(p);
    close_world(&w);
    assert_balanced();
}

/* Texts that cJSON printed are copied out of the host's memory, each with its end. */
TEST(test_texts) {
    dv_member_facts facts = {.weight = 7, .zone = ""};
    char *record = dv_record_print("me", 2), *member = dv_member_data_print("me", &facts);
    dv_ledger ledger = {.state = DIVVY_ACQUIRED, .generation = 3};
    dv_line line = {.event = "state"};
    char *event = dv_line_json(&ledger, &line);
    cJSON *object = cJSON_CreateObject();
    char *page = dv_json_line(object, dv_json_text(object, "path", "/p"));
    assert_string_equal(event,
                        "{\"event\":\"state\",\"state\":\"ACQUIRED\",\"generation\":3,\"gained\":[],\"revoked\":[],"
                        "\"lost\":[],\"owned\":[],\"tokens\":{}}\n");
    assert_string_equal(page, "{\"path\":\"/p\"}\n");
    assert_null(dv_json_line(NULL, false));
    assert_null(dv_json_line(cJSON_CreateObject(), false));
    free(page);
    free(event);
    free(member);
    free(record);
    assert_balanced();
}

/* Whatever allocation of cJSON fails, what a member says of itself is not printed, and all is given back. */
TEST(test_host_runs_short) {
    dv_member_facts facts = {.weight = 7, .zone = "z", .tags = "gpu,ssd"};
    char *text = NULL;
    for (size_t n = 1; !text; n++) {
        tried = 0;
        fails_at = n;
        text = dv_member_data_print("me", &facts);
        assert_true(!text || tried < n);
        assert_int_equal(live, 0);
    }
    assert_true(tried > 10);
    free(text);
}

TEST_EACH(set_hooks, reset_hooks);
