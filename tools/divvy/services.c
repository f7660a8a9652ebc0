/* divvy services: the registry, and how its services are. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "format.h"
#include "option_rows.h"
#include "services_read.h"
#include "table.h"
#include "table_json.h"
#include "text.h"
#include "znode/path.h"

static const char command[] = "services";

typedef struct {
    dv_look_options look;
    const char *root;
    const char *role; /* NULL: all */
    int healthy, json;
    const char *format_text;
    dv_format *format;
} services_options;

static const char *const fields[] = {"role", "id", "health", "load", "age_ms", "ttl", "entry", "entry.", NULL};
static const dv_format_kind formats[] = {{"services", fields}, {NULL, NULL}};

#define OPTION_VALUES services_options

static const dv_option table[] = {
    TEXT("root", "PATH", root, "the registry is PATH/services (default: /divvy)"),
    FLAG("healthy", healthy, "leave out those that are not healthy"),
    FLAG("json", json, "print one JSON object on one line"),
    DV_FORMAT_OPTION(services_options, format_text, "service", "{id}\\t{health}\\t{entry.port}"),
    DV_LOOK_OPTIONS(services_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy services [ROLE] [OPTION ...]\n"
           "\n"
           "Shows the services of a role, or of all roles, in the registry: the least loaded first,\n"
           "with those of Curator. A service is healthy while its last heartbeat is younger than its\n"
           "ttl, by this machine's clock. Changes nothing.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the services were shown; 1 divvy failed, and standard error says why; 2 wrong\n"
           "usage; 3 no server answered within --timeout.\n");
}

static int parse(services_options *o, int argc, char **argv) {
    int rest = 0;
    int code = dv_options_parse_among(command, table, o, argc, argv, &rest);
    if (code == 0) code = dv_options_check_path(command, "root", o->root);
    if (code != 0) return code;
    if (rest < argc) o->role = argv[rest];
    if (argc - rest > 1) return dv_command_misused(command, "\"%.100s\" is not expected here", argv[rest + 1]);
    if (o->role && !*o->role) return dv_command_misused(command, "ROLE cannot be empty");
    code = dv_format_parse(&o->format, command, o->format_text, o->json, formats);
    return code ? code : dv_look_options_finish(&o->look, command);
}

/* ---- showing ---- */

static bool is_healthy(const dv_services *services, const dv_entry *entry) {
    return dv_entry_is_healthy(entry, services->server_ms);
}

static int64_t age_ms(const dv_services *services, const dv_entry *entry) {
    return services->server_ms - entry->stat.mtime_ms;
}

static const dv_column columns[] = {
    {"ROLE", false, false}, {"ID", false, false}, {"HEALTH", false, false},  {"LOAD", true, false},
    {"AGE", true, true},    {"TTL", true, false}, {"ADDRESS", false, false}, {"PID", true, false},
};
enum { COLUMNS = 8 };

static int add_row(dv_table *to, const dv_services *services, const dv_entry *entry) {
    char load[40], age[DV_AGE_BYTES], ttl[40] = "", pid[32] = "", *address = dv_services_address(entry), *key = NULL;
    int64_t number = dv_services_number(entry, "pid");
    snprintf(load, sizeof load, "%g", entry->load);
    dv_age_text(age_ms(services, entry), age);
    if (entry->flags & DV_ENTRY_HAS_TTL) snprintf(ttl, sizeof ttl, "%gs", entry->ttl_s);
    if (number) snprintf(pid, sizeof pid, "%" PRId64, number);
    int error = -1;
    if (address && asprintf(&key, "%s/%s", entry->role_node, entry->id_node) >= 0) {
        const char *cells[COLUMNS] = {entry->role, entry->id, dv_services_health(services, entry), load, age, ttl,
                                      address,     pid};
        error = dv_table_add(to, key, cells);
        free(key);
    }
    free(address);
    return error;
}

static char *print_page(const services_options *o, const dv_services *services) {
    char *text = NULL, *about = dv_text_readable(o->role ? o->role : services->path);
    size_t bytes = 0, shown = 0;
    dv_table *rows = dv_table_new(columns, COLUMNS);
    FILE *to = open_memstream(&text, &bytes);
    int error = rows && to && about ? 0 : -1;
    for (size_t i = 0; !error && i < services->entry_count; i++) {
        if (o->healthy && !is_healthy(services, services->entries[i])) continue;
        error = add_row(rows, services, services->entries[i]);
        shown++;
    }
    if (!error) dv_table_print(rows, false, to);
    if (!error && !shown)
        fprintf(to, "there are no %sservices %s %s\n", o->healthy ? "healthy " : "", o->role ? "of the role" : "below",
                about);
    if (!error && services->malformed_count)
        fprintf(to, "%zu node%s in it %s no entr%s\n", services->malformed_count,
                services->malformed_count == 1 ? "" : "s", services->malformed_count == 1 ? "is" : "are",
                services->malformed_count == 1 ? "y" : "ies");
    dv_table_free(rows);
    free(about);
    if (to && ferror(to)) error = -1;
    if (to && fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}

static bool put_entry(cJSON *array, const dv_services *services, const dv_entry *entry) {
    cJSON *json = dv_json_add_object(array);
    cJSON *copy = json ? cJSON_Duplicate(entry->json, true) : NULL;
    bool good = json && dv_json_text(json, "role", entry->role) && dv_json_text(json, "id", entry->id) &&
                dv_json_text(json, "health", dv_services_health(services, entry)) &&
                cJSON_AddNumberToObject(json, "load", entry->load) && dv_json_age(json, age_ms(services, entry)) &&
                (entry->flags & DV_ENTRY_HAS_TTL ? cJSON_AddNumberToObject(json, "ttl", entry->ttl_s)
                                                 : cJSON_AddNullToObject(json, "ttl"));
    if (good && copy && cJSON_AddItemToObject(json, "entry", copy)) return true;
    cJSON_Delete(copy);
    return false;
}

/* Returns NULL when an allocation fails. */
static cJSON *make_json(const services_options *o, const dv_services *services) {
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_text(json, "path", services->path) &&
                dv_json_number(json, "time_ms", services->server_ms) &&
                dv_json_number(json, "malformed", (int64_t)services->malformed_count);
    cJSON *array = good ? cJSON_AddArrayToObject(json, "services") : NULL;
    good = array;
    for (size_t i = 0; good && i < services->entry_count; i++)
        good = (o->healthy && !is_healthy(services, services->entries[i])) ||
               put_entry(array, services, services->entries[i]);
    if (good) return json;
    cJSON_Delete(json);
    return NULL;
}

static char *print(const services_options *o, const dv_services *services) {
    if (!o->json && !o->format) return print_page(o, services);
    cJSON *json = make_json(o, services);
    if (o->json) return dv_json_line(json, json != NULL);
    char *text = json ? dv_format_print(o->format, cJSON_GetObjectItemCaseSensitive(json, "services")) : NULL;
    cJSON_Delete(json);
    return text;
}

static int run_services(const services_options *o) {
    dv_look *look;
    int code = dv_look_open(&look, &o->look, command, -1);
    if (code) return code;
    char *path = dv_path_join(o->root, "services");
    dv_services services = {.path = path, .role = o->role};
    int error = path ? dv_look_at(look, dv_services_read, &services) : DIVVY_ENOMEM;
    if (error) code = dv_look_failed(look, error);
    else code = dv_command_print(print(o, &services));
    if (code == 0 && services.hidden) {
        dv_look_hidden(look, services.hidden);
        code = DV_EXIT_FAILED;
    }
    dv_look_close(look);
    dv_services_clear(&services);
    free(path);
    return code;
}

static int run(int argc, char **argv) {
    services_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}, .root = "/divvy"};
    int code = parse(&o, argc, argv);
    if (code == 0) code = run_services(&o);
    dv_format_free(o.format);
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_services_command = {
    .name = command,
    .summary = "show the registry, and how its services are",
    .run = run,
    .print_help = print_help,
};
