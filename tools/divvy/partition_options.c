/* The options of `divvy partition`. SPDX-License-Identifier: Apache-2.0 */
#include "partition_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "code_word.h"
#include "command.h"
#include "items_options.h"
#include "option_rows.h"
#include "partition_extras.h"
#include "partition_sessions.h"
#include "supervise_child.h"

enum { DAY_MS = 24 * 3600 * 1000, DRAIN_MS = 10000, HANDOVER_MS = 30000, MOVES_MAX = 10000, MEMBERS_MAX = 10000 };

static const char command[] = "partition";

static const dv_choice modes[] = {{"incremental", DIVVY_INCREMENTAL}, {"eager", DIVVY_EAGER}, {NULL, 0}};

static const dv_choice orders[] = {{"bytes", DIVVY_ORDER_BYTES}, {"numeric", DIVVY_ORDER_NUMERIC}, {NULL, 0}};
static const dv_choice assigns[] = {{"auto", DIVVY_ASSIGN_AUTO},
                                    {"round_robin", DIVVY_ASSIGN_ROUND_ROBIN},
                                    {"rendezvous", DIVVY_ASSIGN_RENDEZVOUS},
                                    {NULL, 0}};

static const dv_choice balances[] = {{"cpu", DV_BALANCE_CPU}, {NULL, 0}};

static const dv_choice restarts[] = {
    {"always", DV_RESTART_ALWAYS}, {"on-failure", DV_RESTART_ON_FAILURE}, {"never", DV_RESTART_NEVER}, {NULL, 0}};

#define OPTION_VALUES dv_partition_options

static const dv_option table[] = {
    DV_SESSION_OPTION_CONNECT(dv_partition_options, session),
    TEXT("path", "PATH", path, "the pool, an absolute znode path such as /work_queues; required"),
    TEXT("items-from", "FILE", items_from,
         "read the items from FILE (- is standard input), one a line; empty lines\n"
         "and lines that begin with # are skipped; SIGHUP has FILE read again"),
    DV_ITEMS_OPTION_COMMAND(dv_partition_options, items_command),
    DV_ITEMS_OPTION_INTERVAL(dv_partition_options, items_interval_ms),
    DV_ITEMS_OPTION_ZNODE(dv_partition_options, items_znode),
    TEXTS("item", "ITEM", items, "an item; repeat the option for each item"),
    TEXT("identifier", "ID", identifier, "the name of this member (default: host-pid-number)"),
    NUMBER("sessions", "N", sessions, 1, DV_SESSIONS_MAX,
           "be N members of the pool, each with a session and an even part of the weight:\n"
           "for a share that does not fit one session, of some 13,000 items (default: 1)"),
    DURATION("time-boundary", time_boundary_ms, 0, DAY_MS,
             "how long the members must stay the same before a change counts\n"
             "(default: 1s)"),
    DURATION("leave-boundary", leave_boundary_ms, 0, DAY_MS,
             "the same for changes in which members only left (default: --time-boundary)"),
    DV_SESSION_OPTION_TIMEOUT(dv_partition_options, session,
                              "how long a member may be silent before the servers take it for dead\n"
                              "(default: 10s; 100ms to 1h, and servers have limits of their own)"),
    DV_SESSION_OPTION_TICK(dv_partition_options, session,
                           "tickTime of the servers' zoo.cfg, or more; required\n"
                           "(default: $DIVVY_ENSEMBLE_TICK_MS)"),
    DURATION("allocate-timeout", allocate_timeout_ms, 0, DAY_MS,
             "fail if the share is not complete after this long (default: 0, never)"),
    DV_SESSION_OPTION_CONNECT_TIMEOUT(dv_partition_options, session,
                                      "exit with 3 if no server has answered after this long\n"
                                      "(default: 0, keep trying)"),
    CHOICE("mode", "MODE", mode, modes,
           "incremental: a change revokes only the items that must move (default);\n"
           "eager: every change revokes all items, as in kazoo"),
    CHOICE("assign", "HOW", assign, assigns,
           "auto: the best rule that all members know (default); round_robin: as kazoo;\n"
           "rendezvous: a change moves few items"),
    CHOICE("items-order", "ORDER", items_order, orders,
           "the order in which round_robin deals items out, as in pools with kazoo:\n"
           "bytes (default); numeric, if kazoo's items are integers, such as range(12)"),
    DURATION("rejoin-delay", rejoin_delay_ms, 1, INT64_C(1000) * 3600 * 1000,
             "be a static member: one that is back with the same --identifier within\n"
             "DURATION, after a restart or a crash, has its items again, and nothing moves"),
    FLAG("replace", replace,
         "end, with 0, when a process with the same --identifier that was started later\n"
         "has taken all items over. The older process goes by its own --replace, so give\n"
         "it to all processes of an identifier. Needs --rejoin-delay"),
    NUMBER("weight", "N", weight, 0, UINT32_MAX, "the share of this member in proportion to others (default: 1000)"),
    TEXT("zone", "ZONE", zone,
         "the place of this member, such as a rack: all zones get the same number of\n"
         "items"),
    NUMBER("max-moves", "N", max_moves, 0, MOVES_MAX,
           "the most items that move from member to member at a time; all members go by\n"
           "what the first one was given (default: 0, no limit)"),
    DURATION("handover-timeout", handover_timeout_ms, 0, DAY_MS,
             "how long an item that is to move stays with this member while the next one\n"
             "gets ready for it, also at the end (default: 30s; 0, it goes at once); with\n"
             "--standby give all members the same"),
    DURATION("drain", drain_ms, 0, DAY_MS,
             "how long a command has between SIGTERM and SIGKILL when its item is revoked\n"
             "or this member must end (default: 10s)"),
    CHOICE("restart", "WHEN", restart, restarts,
           "start a command again that has exited by itself: always (default),\n"
           "on-failure, or never. divvy waits 100 ms, then twice as long each time up to\n"
           "30 s, until the command has run for 5 s"),
    FLAG("standby", standby,
         "start the command of an item that is on its way to this member before the\n"
         "command of the last owner stops; see above for what a command must do"),
    DURATION("prepare-timeout", prepare_timeout_ms, 1, DAY_MS,
             "with --standby, how long the command of an item may get ready before this\n"
             "member asks for the item all the same; at most --handover-timeout, after\n"
             "which the last owner stops anyway (default: five sixths of that, 25s)"),
    CHOICE("balance", "WHAT", balance, balances,
           "have the pool deal by load; cpu: the processor time of each command and all\n"
           "that it starts, in cores. All members of a pool should do the same"),
    TEXT("load-command", "CMD", load_command,
         "have the pool deal by the loads that this shell command prints. It runs once\n"
         "for all items of this member, reads their names from standard input, and\n"
         "prints a line ITEM NUMBER for each; see above. Each run has 60s"),
    DURATION("load-interval", load_interval_ms, 1000, 3600 * 1000,
             "how often loads are measured or asked for, and told to the pool\n"
             "(default: 10s)"),
    TEXT("load-unit", "UNIT", load_unit,
         "the unit of --load-command, such as messages (default: load). Loads in\n"
         "another unit than the pool's are not used"),
    TEXT("load-floor", "NUMBER", load_floor_text,
         "move nothing for load while the members have less than this in the mean\n"
         "(default: 5 % of the processors with --balance cpu, else 0)"),
    TEXT("tags", "TAGS", tags, "what this member has that items may need, such as gpu,ssd"),
    NUMBER("cap", "N", cap, 1, UINT32_MAX,
           "the most items that this member takes; others that have room take the rest"),
    NUMBER("min-members", "N", min_members, 1, MEMBERS_MAX,
           "deal nothing before so many members are there, when a pool begins"),
    DURATION("min-members-wait", min_members_wait_ms, 0, DAY_MS,
             "how long the pool waits for --min-members; then it deals to those who are\n"
             "there (default: 1m)"),
    TEXT("quarantine", "N/DURATION", quarantine,
         "pause an item whose command fails N times within DURATION, such as 5/10m, so\n"
         "that it does not go on failing at one member after the other. A command fails\n"
         "when it exits by itself with another code than 0, or by a signal"),
    FLAG("rejoin", rejoin, "take part again after the session was lost; always so with a COMMAND"),
    DV_SESSION_OPTION_AUTH_FILE(dv_partition_options, session),
    DV_TLS_OPTIONS(dv_partition_options, session.tls),
    DV_SESSION_OPTION_ACL(dv_partition_options, session),
    TEXT("events", "FILE", events,
         "append the lines to FILE; - is standard output (default: standard output,\n"
         "but standard error with a COMMAND)"),
    FLAG("json", json, "print one JSON object a line"),
    FLAG("timestamps", timestamps, "put the time into each line; with --json as time_ms, since 1970"),
    DV_SESSION_OPTION_NO_DEATH_WATCH(dv_partition_options, session),
    DV_SESSION_OPTION_FAILOVER_DELAY(dv_partition_options, session),
    DV_SESSION_OPTION_METRICS(dv_partition_options, session),
    DV_SESSION_OPTION_VERBOSE(dv_partition_options, session, "write the library's log to standard error"),
    {.name = NULL},
};

void dv_partition_print_help(void) {
    printf("usage: divvy partition --path PATH (--item ITEM ... | --items-from FILE |\n"
           "                       --items-from-command COMMAND | --items-from-znode PATH) [OPTION ...]\n"
           "                       [-- COMMAND [ARGUMENT ...]]\n"
           "\n"
           "Joins the pool at PATH. Its members divide the items, so that each item has one\n"
           "owner. divvy prints a line for each change of the state and of the items that this\n"
           "member owns. It releases a revoked item as soon as it has written the line.\n"
           "\n"
           "With COMMAND, divvy runs one for each item that this member owns. It replaces {item}\n"
           "in the arguments by the item, and sets DIVVY_ITEM and DIVVY_TOKEN in the environment.\n"
           "It refuses {item} inside the code of a shell, since a name could be any code: write\n"
           "\"$DIVVY_ITEM\" there. Where an item may begin with -, put -- before {item}. divvy\n"
           "releases an item when all processes of its command have ended. They end before another\n"
           "member can own the item, even if divvy hangs or is killed. Only a command that exits by\n"
           "itself may leave daemons, which have sessions of their own, and go on.\n"
           "\n"
           "With --standby, divvy starts the command of an item that is on its way while the last\n"
           "owner still works. Such a command gets ready, sends READY=1 to the socket that\n"
           "NOTIFY_SOCKET names (as systemd-notify --ready does), and reads a line from the\n"
           "descriptor that DIVVY_START_FD gives. The line is the token: the item is owned, and work\n"
           "begins. If the descriptor ends without a line, the command is not needed and exits. All\n"
           "commands get both; the line comes at once where the item is owned already. DIVVY_TOKEN is\n"
           "not set for a command that stands by.\n"
           "\n"
           "On SIGTERM or SIGINT divvy hands its items over: each command goes on until the next\n"
           "member is ready for its item, --handover-timeout at most. Then divvy leaves the pool. With\n"
           "--rejoin-delay or --handover-timeout 0, and where no plan decides, it ends all commands at\n"
           "once instead, and leaves. A second signal kills the commands, and hands nothing over.\n"
           "divvy also leaves when its terminal or the reader of its output has gone.\n"
           "\n"
           "On SIGHUP divvy reads --items-from FILE again. From then on all members of the pool\n"
           "divide these items. This needs a pool that follows a plan (--assign auto everywhere, no\n"
           "kazoo). Without a plan, or with a bad file, nothing changes, and standard error says\n"
           "why. divvy follows a command and a znode by itself: what has changed is divided\n"
           "likewise, and a list that fails or is empty changes nothing. There SIGHUP has divvy look\n"
           "at once. With --item or --items-from -, SIGHUP makes divvy leave the pool.\n"
           "\n"
           "A share of more than some 13,000 items does not fit one session (man divvy says why). With\n"
           "--sessions N divvy is N members in one process, ID-1 to ID-N, which share the weight and\n"
           "the cap. Each line names its member. They end together, when one of them fails, too.\n"
           "\n"
           "--rejoin-delay, --weight, --zone, --tags, --cap, --min-members, --max-moves, --balance,\n"
           "--load-command, --quarantine, --handover-timeout and --standby have an effect in such a\n"
           "pool only.\n"
           "\n"
           "A pool deals by load where its members tell the loads of their items. A --load-command\n"
           "may print the loads of all items there are: divvy takes those of this member's. The last\n"
           "word of a line is the number, the rest is the item. Here the first command prints them\n"
           "all, and the second one asks for each item:\n"
           "\n"
           "  --load-command \"rabbitmqctl -q list_queues name messages\"\n"
           "  --load-command 'while read -r q; do echo \"$q $(redis-cli llen \"$q\")\"; done'\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 divvy was told to end, and has left the pool; 1 it failed, and standard\n"
           "error says why; 2 wrong usage; 3 no server answered within --connect-timeout; 126\n"
           "COMMAND cannot be executed; 127 COMMAND was not found.\n");
}

/* Returns why there can be no standbys; NULL: there can. */
static const char *no_standby(const dv_partition_options *options) {
    if (!options->arguments) return "--standby is for a command, which stands behind --";
    if (options->mode == DIVVY_EAGER)
        return "--standby cannot work with --mode eager, where a change stops all commands first; leave --mode out";
    if (options->assign != DIVVY_ASSIGN_AUTO)
        return "--standby needs a pool that follows a plan; leave --assign out, here and at all other members";
    if (options->handover_timeout_ms == 0)
        return "--standby cannot work with --handover-timeout 0, which has items move at once; leave one of them out";
    if (options->prepare_timeout_ms > options->handover_timeout_ms)
        return "--prepare-timeout is longer than --handover-timeout (30s unless given), after which a last owner waits "
               "no longer; give all members a longer --handover-timeout";
    return NULL;
}

/* Returns which option makes no sense without --standby; NULL: none does. */
static const char *stray(const dv_partition_options *options) {
    return options->prepare_timeout_ms >= 0 ? "--prepare-timeout is for commands that stand by; add --standby" : NULL;
}

static const char *contradiction(dv_partition_options *options) {
    dv_items_given given = {options->items_from, options->items_command, options->items_znode, options->items.count};
    const char *wrong = dv_items_given_wrong(&given, true);
    if (!wrong && options->items_interval_ms && !options->items_command)
        wrong = "--items-interval is for --items-from-command";
    if (wrong) return wrong;
    if (options->rejoin_delay_ms && !options->identifier)
        return "--rejoin-delay needs an --identifier, by which the member is known when it is back";
    if (options->replace && !options->rejoin_delay_ms)
        return "--replace is for a static member; give --identifier, and --rejoin-delay";
    if (options->replace && options->handover_timeout_ms == 0)
        return "--replace cannot work with --handover-timeout 0, which has items move at once; leave one of them out";
    if (!options->arguments && options->drain_ms >= 0) return "--drain is for a command, which stands behind --";
    if (!options->arguments && options->session.failover_delay_ms)
        return "--failover-delay is for a command, which stands behind --";
    if (!options->arguments && options->restart >= 0) return "--restart is for a command, which stands behind --";
    wrong = dv_partition_extras_wrong(options);
    if (!wrong) wrong = dv_partition_sessions_wrong(options);
    if (wrong) return wrong;
    return options->standby ? no_standby(options) : stray(options);
}

static void fill_loads(const dv_partition_options *o, divvy_partitioner_config *config) {
    config->load_unit = o->load_unit;
    config->load_interval_ms = o->load_interval_ms;
    config->load_floor = o->load_floor;
    config->tags = o->tags;
    config->item_cap = (size_t)o->cap;
    config->min_members = (size_t)o->min_members;
    config->min_members_wait_ms = o->min_members_wait_ms;
}

void dv_partition_options_fill(const dv_partition_options *o, divvy_partitioner_config *config) {
    config->path = o->path;
    config->identifier = o->identifier;
    config->mode = o->mode;
    config->assign = o->assign;
    config->items_order = o->items_order;
    config->static_membership = o->rejoin_delay_ms > 0;
    config->rejoin_delay_ms = o->rejoin_delay_ms;
    config->weight = (uint32_t)o->weight;
    config->zone = o->zone;
    config->max_moves = (size_t)o->max_moves;
    config->time_boundary_ms = o->time_boundary_ms;
    config->leave_boundary_ms = o->leave_boundary_ms;
    config->allocate_timeout_ms = o->allocate_timeout_ms;
    config->handover_timeout_ms = o->handover_timeout_ms;
    config->prepare_timeout_ms = o->standby ? o->prepare_timeout_ms : 0;
    fill_loads(o, config);
}

static void set_defaults(dv_partition_options *options) {
    *options = (dv_partition_options){
        .time_boundary_ms = 1000,
        .leave_boundary_ms = -1,
        .session = {.session_timeout_ms = 10000, .acl = DIVVY_ACL_AUTO},
        .drain_ms = -1,
        .restart = -1,
        .handover_timeout_ms = HANDOVER_MS,
        .prepare_timeout_ms = -1,
        .mode = DIVVY_INCREMENTAL,
        .assign = DIVVY_ASSIGN_AUTO,
        .sessions = 1,
        .weight = 1000,
        .load_interval_ms = -1,
        .min_members_wait_ms = -1,
    };
}

/* Returns 0, or the exit code when it was told that a word of the command would be run as code with an item's name in
 * it. */
static int check_injection(const char *const *arguments) {
    dv_code_word code = dv_code_word_find(arguments, DV_CHILD_PLACEHOLDER);
    if (code.at == 0) return 0;
    if (code.instead)
        return dv_command_misused(command,
                                  "%.100s would run what stands in an item's name: " DV_CHILD_PLACEHOLDER
                                  " is part of its code; write %s there, or give " DV_CHILD_PLACEHOLDER
                                  " as a word of its own behind the code",
                                  code.program, code.instead);
    return dv_command_misused(command,
                              "%.100s would run what stands in an item's name: " DV_CHILD_PLACEHOLDER
                              " is part of its code; run a script instead, which has the name in DIVVY_ITEM and "
                              "quotes it",
                              code.program);
}

/* The command behind "--". Returns 0, or the exit code. */
static int take_command(dv_partition_options *options, int rest, int argc, char **argv) {
    if (rest == argc) return 0;
    if (strcmp(argv[rest - 1], "--") != 0)
        return dv_command_misused(command, "\"%.100s\" is not expected here; a command stands behind --", argv[rest]);
    options->arguments = (const char *const *)&argv[rest];
    return check_injection(options->arguments);
}

/* Returns how long commands may prepare where nothing else was said. A last owner waits for its own --handover-timeout,
 * which is ours where all members are started alike. This member asks for the item before that is over. */
static int64_t prepare_ms(int64_t handover_ms) {
    int64_t shorter_ms = handover_ms * 5 / 6;
    return shorter_ms > 0 ? shorter_ms : 1;
}

int dv_partition_options_parse(dv_partition_options *options, int argc, char **argv) {
    set_defaults(options);
    int rest = argc;
    int code = dv_options_parse_before(command, table, options, argc, argv, &rest);
    if (code == 0) code = take_command(options, rest, argc, argv);
    if (code == 0) code = dv_options_check_pool(command, options->path);
    if (code != 0) return code;
    const char *wrong = contradiction(options);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    if (options->drain_ms < 0) options->drain_ms = DRAIN_MS;
    if (options->restart < 0) options->restart = DV_RESTART_ALWAYS;
    if (options->prepare_timeout_ms < 0) options->prepare_timeout_ms = prepare_ms(options->handover_timeout_ms);
    dv_partition_extras_finish(options);
    if (!options->items_interval_ms) options->items_interval_ms = DV_ITEMS_INTERVAL_MS;
    code = dv_session_options_finish(&options->session, command);
    if (code != 0 || options->items_command || options->items_znode) return code;
    return options->items_from ? dv_item_list_read(&options->list, options->items_from)
                               : dv_item_list_copy(&options->list, &options->items);
}

void dv_partition_options_free(dv_partition_options *options) {
    dv_item_list_free(&options->list);
    free((void *)(uintptr_t)options->items.texts);
    dv_session_options_free(&options->session);
    *options = (dv_partition_options){0};
}
