/* Words of a command that would be run as code. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "divvy/code_word.h"
#include "lib/test.h"

enum { WORDS_MAX = 12 };

typedef struct {
    const char *words[WORDS_MAX];
    size_t at;
} example;

static void check(const example *examples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        dv_code_word found = dv_code_word_find(examples[i].words, "{item}");
        if (found.at == examples[i].at) continue;
        for (size_t k = 0; examples[i].words[k]; k++) print_message("%s ", examples[i].words[k]);
        fail_msg("word %zu is code, not %zu", examples[i].at, found.at);
    }
}

#define CHECK(examples) check(examples, sizeof examples / sizeof *examples)

/* The script of a shell is found, whatever options stand before it, by whatever path the shell is called. */
TEST(test_shells) {
    static const example examples[] = {
        {{"sh", "-c", "work {item}"}, 2},
        {{"sh", "-c", "{item}"}, 2},
        {{"/bin/bash", "-ec", "work '{item}'"}, 2},
        {{"bash", "-lc", "work \"{item}\""}, 2},
        {{"dash", "-c", "--", "work {item}"}, 3},
        {{"sh", "-c", "-", "work {item}"}, 3},
        {{"sh", "-c", "-e", "work {item}"}, 3},
        {{"bash", "-e", "-u", "-o", "pipefail", "-c", "work {item}"}, 6},
        {{"bash", "-euo", "pipefail", "-c", "work {item}"}, 4},
        {{"bash", "-euco", "pipefail", "work {item}"}, 3},
        {{"bash", "-O", "extglob", "+o", "posix", "-c", "work {item}"}, 6},
        {{"bash", "--norc", "--rcfile", "/dev/null", "-c", "work {item}"}, 5},
        {{"zsh", "-fc", "work {item}"}, 2},
        {{"ksh93", "-c", "work {item}"}, 2},
        {{"fish", "-c", "work {item}"}, 2},
        {{"fish", "--command=work {item}"}, 1},
        {{"fish", "-cwork {item}"}, 1},
    };
    CHECK(examples);
}

/* So it is behind programs that run another one, known or not. */
TEST(test_wrapped_shells) {
    static const example examples[] = {
        {{"env", "sh", "-c", "work {item}"}, 3},
        {{"/usr/bin/env", "-i", "PATH=/bin", "bash", "-c", "work {item}"}, 5},
        {{"busybox", "sh", "-c", "work {item}"}, 3},
        {{"timeout", "-k", "5", "1h", "sh", "-c", "work {item}"}, 6},
        {{"docker", "exec", "-it", "box", "sh", "-c", "work {item}"}, 6},
        {{"find", ".", "-exec", "sh", "-c", "work {item}", ";"}, 5},
        {{"sudo", "-u", "worker", "bash", "-lc", "work {item}"}, 5},
        {{"su", "worker", "-c", "work {item}"}, 3},
        {{"su", "-", "worker", "-c", "work {item}"}, 4},
        {{"su", "worker", "--command=work {item}"}, 2},
        {{"script", "-qec", "work {item}", "/dev/null"}, 2},
        {{"flock", "/run/lock/x", "-c", "work {item}"}, 3},
        {{"sg", "workers", "work {item}"}, 2},
        {{"ssh", "-p", "22", "host", "./work", "{item}"}, 5},
        {{"env", "-S", "work {item}"}, 2},
        {{"env", "--split-string=work {item}"}, 1},
        {{"sh", "-c", "exec \"$@\"", "sh", "bash", "-c", "work {item}"}, 6},
    };
    CHECK(examples);
}

/* So is the code of other interpreters. */
TEST(test_others) {
    static const example examples[] = {
        {{"python3", "-c", "work('{item}')"}, 2},
        {{"/usr/bin/python3.11", "-I", "-W", "error", "-c", "work('{item}')"}, 5},
        {{"perl", "-e", "work('{item}')"}, 2},
        {{"perl", "-MList::Util=max", "-lne", "print '{item}'"}, 3},
        {{"perl", "-e", "a()", "-e", "work('{item}')"}, 4},
        {{"ruby", "-rjson", "-e", "work '{item}'"}, 3},
        {{"node", "-e", "work('{item}')"}, 2},
        {{"node", "--require", "x", "-pe", "work('{item}')"}, 4},
        {{"node", "--eval=work('{item}')"}, 1},
        {{"php", "-d", "x=y", "-r", "work('{item}');"}, 4},
        {{"lua5.4", "-e", "work('{item}')"}, 2},
        {{"awk", "-F", ":", "/{item}/ {print}"}, 3},
        {{"gawk", "-e", "/{item}/", "/etc/passwd"}, 2},
        {{"sed", "-n", "s/x/{item}/e"}, 2},
        {{"sed", "-ne", "s/x/{item}/"}, 2},
        {{"nice", "-n", "5", "perl", "-e", "work('{item}')"}, 5},
        {{"env", "-u", "LANG", "X=1", "awk", "{item}"}, 5},
    };
    CHECK(examples);
}

/* An option of a wrapper's may have its value in the next word, by its long name or behind other letters, or not. */
TEST(test_options_of_wrappers) {
    static const example examples[] = {
        {{"timeout", "--signal", "KILL", "5", "python3", "-c", "work('{item}')"}, 6},
        {{"timeout", "--kill-after", "5", "--signal=KILL", "1h", "perl", "-e", "work('{item}')"}, 7},
        {{"timeout", "-vk", "5", "1h", "python3", "-c", "work('{item}')"}, 6},
        {{"timeout", "-sKILL", "1h", "python3", "-c", "work('{item}')"}, 5},
        {{"timeout", "--foreground", "1h", "python3", "-c", "work('{item}')"}, 5},
        {{"sudo", "-nu", "worker", "python3", "-c", "work('{item}')"}, 5},
        {{"sudo", "--user", "worker", "--", "python3", "-c", "work('{item}')"}, 6},
        {{"env", "--unset", "LANG", "awk", "{item}"}, 4},
        {{"ionice", "--class", "2", "nice", "--adjustment", "5", "awk", "{item}"}, 7},
        {{"flock", "--timeout", "5", "/run/lock/x", "awk", "{item}"}, 5},
        {{"xargs", "-i", "python3", "-c", "work('{item}')"}, 4},
        {{"timeout", "--signal", "KILL", "5", "./worker.sh", "-c", "{item}"}, 0},
    };
    CHECK(examples);
}

/* An item that is a word of its own is data to them, and so is what other programs get. */
TEST(test_safe) {
    static const example examples[] = {
        {{"./worker.sh", "{item}"}, 0},
        {{"sh", "worker.sh", "{item}"}, 0},
        {{"sh", "-e", "worker.sh", "-c", "{item}"}, 0},
        {{"sh", "{item}"}, 0},
        {{"bash", "-o", "errexit", "worker.sh", "{item}"}, 0},
        {{"sh", "-c", "work \"$1\"", "sh", "{item}"}, 0},
        {{"sh", "-c", "work \"$@\"", "sh", "-c", "{item}"}, 0},
        {{"bash", "-c", "work \"$DIVVY_ITEM\""}, 0},
        {{"bash", "-c"}, 0},
        {{"python3", "worker.py", "-c", "{item}"}, 0},
        {{"python3", "-m", "worker", "-c", "{item}"}, 0},
        {{"python3", "-c", "work()", "-c", "{item}"}, 0},
        {{"perl", "-e", "work($ARGV[0])", "{item}"}, 0},
        {{"perl", "-i", "-pe", "s/a/b/", "{item}"}, 0},
        {{"node", "worker.js", "-e", "{item}"}, 0},
        {{"awk", "-v", "item={item}", "/x/", "/etc/passwd"}, 0},
        {{"awk", "-f", "work.awk", "{item}"}, 0},
        {{"awk", "--file", "work.awk", "{item}"}, 0},
        {{"sed", "-n", "s/a/b/", "{item}"}, 0},
        {{"env", "ITEM={item}", "worker"}, 0},
        {{"timeout", "1h", "./worker.sh", "sed", "{item}"}, 0},
        {{"./worker.sh", "perl", "-e", "{item}"}, 0},
        {{"flock", "/run/{item}", "./worker.sh", "-c", "{item}"}, 0},
        {{"env"}, 0},
        {{"x", "sh"}, 0},
    };
    CHECK(examples);
}

/* The advice says how the program's own language has the item. */
TEST(test_instead) {
    const char *const shell[] = {"env", "bash", "-c", "{item}", NULL}, *const python[] = {"python3", "-c{item}", NULL},
                      *const sed[] = {"sed", "{item}", NULL};
    dv_code_word found = dv_code_word_find(shell, "{item}");
    assert_string_equal(found.program, "bash");
    assert_non_null(strstr(found.instead, "\"$DIVVY_ITEM\""));
    found = dv_code_word_find(python, "{item}");
    assert_int_equal(found.at, 1);
    assert_string_equal(found.instead, "os.environ[\"DIVVY_ITEM\"]");
    assert_null(dv_code_word_find(sed, "{item}").instead);
}
