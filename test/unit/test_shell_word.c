/* Names in the commands that divvy prints for an operator to copy. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/shell_word.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/explain_judge.h"
#include "divvy/text.h"
#include "doctor_fixture.h"

enum { OUTPUT_BYTES = 4096 };

/* Names that a shell would run, part, expand or lose, and that getopt would take for options. */
static const char *const strange[] = {
    "$(touch x)", "`touch x`", "a b",   "-x",      "--undo", "it's", "-it's", "'",    "a;touch x", "a&b",       "a|b",
    "a>b",        "a\\b",      "\"q\"", "*",       "~",      "#x",   "!x",    "=x",   "${HOME}",   "%41 %n",    "' '",
    "\\",         "é ü",       "-",     "a''b\\'", " ",      "(x)",  "{a,b}", "a\\'", "a\\\\012",  "it's; x #",
};
/* Names that terminals do not show as they are. */
static const char *const unseen[] = {"a\nb", "\x1b[31m", "\xff", "x\xe2\x80\xaey", "-\n'%41!\\", "\t", "$(touch x)\r"};
static const char *const plain[] = {"x", "a-b_c.d", "/q/r", "m1@host:80", "a=b,c+d%41", "0"};

static size_t count_of(size_t bytes) {
    return bytes / sizeof(const char *);
}

/* Reads back what a shell makes of a command, with a stub of divvy that prints each of its words in brackets. */
static void shell_reads(const char *shell, const char *command, char out[OUTPUT_BYTES]) {
    char script[OUTPUT_BYTES];
    int ends[2], status;
    ssize_t bytes = 0, got;
    int printed =
        snprintf(script, sizeof script, "divvy() { for word; do printf '[%%s]' \"$word\"; done; }; %s", command);
    assert_in_range(printed, 1, OUTPUT_BYTES - 1);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execlp(shell, shell, "-c", script, NULL);
        _exit(127);
    }
    assert_true(child > 0);
    close(ends[1]);
    while ((got = read(ends[0], out + bytes, (size_t)(OUTPUT_BYTES - 1 - bytes))) > 0) bytes += got;
    out[bytes] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool is_shown(const char *name) {
    char *readable = dv_text_readable(name);
    assert_non_null(readable);
    bool same = strcmp(readable, name) == 0;
    free(readable);
    return same;
}

/* Checks that the command in a sentence is shown as it is, and that a shell reads from it the verb, the path of the
 * pool, and the name, which is no option. */
static void reads(const char *sentence, const char *verb, const char *path, const char *name) {
    char got[OUTPUT_BYTES], wanted[OUTPUT_BYTES];
    const char *command = strstr(sentence, "divvy ");
    assert_non_null(command);
    assert_true(is_shown(command));
    shell_reads(is_shown(name) ? "sh" : "bash", command, got);
    snprintf(wanted, sizeof wanted, "[%s][--path][%s]%s%s[%s]", verb, path, strcmp(verb, "need") == 0 ? "[--undo]" : "",
             *name == '-' ? "[--]" : "", name);
    assert_string_equal(got, wanted);
}

/* ---- words ---- */

/* Each name is written in the one way. */
TEST(test_words) {
    static const char *const rows[][2] = {{"", "''"},
                                          {"a b", "'a b'"},
                                          {"it's", "'it'\\''s'"},
                                          {"-x", "'-x'"},
                                          {"=x", "'=x'"},
                                          {"$(touch x)", "'$(touch x)'"},
                                          {"a\nb", "$'a\\012b'"},
                                          {"'!%41\\\x7f", "$'\\047\\041\\04541\\134\\177'"},
                                          {"\xc3\xa9\xff", "$'\xc3\xa9\\377'"},
                                          {"a\xe2\x80\xae", "$'a\\342\\200\\256'"}};
    char out[DV_SHELL_WORD_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(dv_shell_word(out, "ITEM", "%s", rows[i][0]), rows[i][1]);
    for (size_t i = 0; i < count_of(sizeof plain); i++) {
        assert_string_equal(dv_shell_word(out, "ITEM", "%s", plain[i]), plain[i]);
        assert_string_equal(dv_shell_operand(out, "ITEM", plain[i]), plain[i]);
    }
    assert_string_equal(dv_shell_operand(out, "ITEM", "-x"), "-- '-x'");
    assert_string_equal(dv_shell_word(out, "PATH", "%s/%s", "/q", "a b"), "'/q/a b'");
}

/* A name is whole, with its closing quote, or is not there at all. */
TEST(test_too_long) {
    char name[2 * DV_SHELL_WORD_BYTES], out[DV_SHELL_WORD_BYTES];
    for (size_t bytes = 1; bytes < sizeof name; bytes++) {
        for (const char *letter = "a '\n-"; *letter; letter++) {
            memset(name, *letter, bytes);
            name[bytes] = '\0';
            static const size_t each[] = {1, 1, 4, 4, 1}, ends[] = {0, 2, 2, 3, 2};
            size_t kind = (size_t)(strchr("a '\n-", *letter) - "a '\n-");
            size_t length = bytes * each[kind] + ends[kind];
            dv_shell_word(out, "ITEM", "%s", name);
            if (length < DV_SHELL_WORD_BYTES) assert_int_equal(strlen(out), length);
            else assert_string_equal(out, "ITEM");
            dv_shell_operand(out, "ITEM", name);
            length += *letter == '-' ? strlen("-- ") : 0;
            if (length < DV_SHELL_WORD_BYTES) assert_int_equal(strlen(out), length);
            else assert_string_equal(out, "ITEM");
        }
    }
}

/* A shell gives each name back as it was, as a value of an option and as the last word. */
TEST(test_shell_gives_names_back) {
    char command[OUTPUT_BYTES], value[DV_SHELL_WORD_BYTES], last[DV_SHELL_WORD_BYTES];
    const size_t strange_count = count_of(sizeof strange), all = strange_count + count_of(sizeof unseen);
    for (size_t i = 0; i < all; i++) {
        const char *name = i < strange_count ? strange[i] : unseen[i - strange_count];
        snprintf(command, sizeof command, "divvy x --path %s %s", dv_shell_word(value, "PATH", "%s", name),
                 dv_shell_operand(last, "ITEM", name));
        reads(command, "x", name, name);
    }
}

/* ---- what is printed ---- */

static const char pool_path[] = "/q's $(touch x)";

/* Two items, and the first has the name. */
static void set_named_pool(pool *p, const char *name) {
    const char *const names[] = {name, "\xff\xff"};
    set_pool_of(p, names, 60 * SECOND_MS);
    p->scene.doctor.path = p->scene.doctor.status.path = pool_path;
}

static void wish(pool *p, dv_wish_kind kind, const char *name, const char *value, const char *why) {
    dv_plan *plan = p->plan.memory.plan;
    const dv_wish_event event = {.wish = {kind, name, value, "anna", why, NOW_MS}};
    dv_wishes *wishes;
    assert_int_equal(dv_wishes_change(&wishes, plan->wishes, &event), 0);
    dv_wishes_unref(plan->wishes);
    plan->wishes = wishes;
    plan->header.is_balanced = p->members[0].can_balance = p->members[1].can_balance = true;
}

static void disown(pool *p) {
    p->items[0].head = p->items[0].owner = NULL;
    p->items[0].member = DV_NO_MEMBER;
}

/* Makes the first item's owner a static member of that name, which is away. */
static void send_away(pool *p, const char *name) {
    dv_plan_member *m = &p->plan.memory.plan->members[0];
    m->is_static = true;
    m->rejoin_delay_ms = 600 * SECOND_MS;
    m->absent = 26;
    free(m->key);
    m->key = strdup(name);
    disown(p);
}

/* Checks the remedy of the first finding of a check. */
static void remedies(pool *p, const char *check, const char *verb, const char *name) {
    dv_findings f = judge(p);
    const dv_finding *found = NULL;
    for (size_t i = 0; !found && i < f.count; i++)
        found = strcmp(f.list[i].check, check) == 0 && f.list[i].level > DV_DOCTOR_OK ? &f.list[i] : NULL;
    assert_non_null(found);
    assert_true(is_shown(found->todo));
    reads(found->todo, verb, pool_path, name);
    dv_findings_clear(&f);
}

static void check_doctor(const char *name) {
    pool p;
    set_named_pool(&p, name);
    p.items[0].member = DV_NO_MEMBER;
    remedies(&p, "stranger", "explain", name);
    dv_plan_memory_clear(&p.plan.memory);

    set_named_pool(&p, name);
    p.plan.memory.plan->owners[0] = 1;
    p.members[0].host = text("");
    remedies(&p, "release", "explain", name);
    dv_plan_memory_clear(&p.plan.memory);

    set_named_pool(&p, name);
    wish(&p, DV_WISH_PIN, name, name, "");
    remedies(&p, "pin", "unpin", name); /* to a member that is not there */
    send_away(&p, name);
    remedies(&p, "pin", "forget", name);
    remedies(&p, "absent", "forget", name);
    dv_plan_memory_clear(&p.plan.memory);

    set_named_pool(&p, name);
    wish(&p, DV_WISH_NEED, name, "ssd", "");
    wish(&p, DV_WISH_PIN, name, "a", "");
    remedies(&p, "pin", "unpin", name); /* which overrides the tag */
    dv_plan_memory_clear(&p.plan.memory);

    set_named_pool(&p, name);
    wish(&p, DV_WISH_PAUSE, name, "a", "failed 5 times in 10 min, last: exit 1");
    remedies(&p, "paused", "resume", name);
    dv_plan_memory_clear(&p.plan.memory);

    set_named_pool(&p, name);
    wish(&p, DV_WISH_NEED, name, "ssd", "");
    disown(&p);
    p.plan.memory.plan->owners[0] = DV_PLAN_NO_SLOT;
    remedies(&p, "tag", "need", name);
    dv_plan_memory_clear(&p.plan.memory);
}

/* Each command that doctor prints has the names whole, and the shell runs none of them. */
TEST(test_doctor) {
    for (size_t i = 0; i < count_of(sizeof strange); i++) check_doctor(strange[i]);
    for (size_t i = 0; i < count_of(sizeof unseen); i++) check_doctor(unseen[i]);
    check_doctor("x");
}

/* Hosts say their names themselves, and nodes that are to be deleted may have any. */
TEST(test_doctor_of_hosts_and_nodes) {
    pool p;
    set_named_pool(&p, "x");
    p.members[0].host = text("h;touch x #");
    p.scene.connections[0].silent_ms = 5000;
    p.items[1].session = 0;
    p.items[1].member = DV_NO_MEMBER;
    p.items[1].node = text("it's");
    p.scene.doctor.status.stray_count = 1;
    p.scene.doctor.status.stray = text("$(touch x)");
    dv_findings f = judge(&p);
    size_t seen = 0;
    static const char *const wanted[][2] = {
        {"silent", "look at the process on 'h;touch x #' (pid 12): kill -CONT 12"},
        {"persistent", "zkCli.sh delete '/q'\\''s $(touch x)/locks/it'\\''s/g__lock__0000000001'"},
        {"stray", "zkCli.sh delete '/q'\\''s $(touch x)/party/$(touch x)'"}};
    for (size_t i = 0; i < f.count; i++) {
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            if (strcmp(f.list[i].check, wanted[k][0]) != 0) continue;
            assert_string_equal(f.list[i].todo, wanted[k][1]);
            seen++;
        }
    }
    assert_int_equal(seen, 3);
    clear(&p, &f);
}

/* Returns what `divvy explain` says of the first item. */
static dv_explain_verdict explain(pool *p) {
    assert_int_equal(dv_status_plan_match(&p->scene.doctor.status), 0);
    dv_explain_place place = {.name = text("m"), .member = p->items[0].member};
    dv_status one = p->scene.doctor.status;
    one.item_count = 1;
    dv_explanation e = {.status = &one,
                        .item = one.items,
                        .places = &place,
                        .place_count = p->items[0].head ? 1 : 0,
                        .is_planned = true,
                        .planned_ms = NOW_MS};
    dv_explain_verdict v = dv_explain_judge(&e);
    dv_status_plan_clear(&p->scene.doctor.status);
    return v;
}

static void check_without_owner(const char *name, dv_wish_kind kind, const char *what, const char *subcommand) {
    pool p;
    set_named_pool(&p, name);
    wish(&p, kind, name, what, "");
    disown(&p);
    p.plan.memory.plan->owners[0] = DV_PLAN_NO_SLOT;
    reads(explain(&p).next, subcommand, pool_path, name);
    dv_plan_memory_clear(&p.plan.memory);
}

static void check_explain(const char *name) {
    pool p;
    set_named_pool(&p, name);
    wish(&p, DV_WISH_PIN, name, "m9", "");
    reads(explain(&p).next, "unpin", pool_path, name);
    send_away(&p, name);
    reads(explain(&p).next, "forget", pool_path, name);
    dv_plan_memory_clear(&p.plan.memory);

    check_without_owner(name, DV_WISH_PAUSE, "a", "resume");
    check_without_owner(name, DV_WISH_NEED, "ssd", "need");
}

/* Likewise explain. */
TEST(test_explain) {
    for (size_t i = 0; i < count_of(sizeof strange); i++) check_explain(strange[i]);
    for (size_t i = 0; i < count_of(sizeof unseen); i++) check_explain(unseen[i]);
    check_explain("x");
}
