/* The findings of `divvy doctor`. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DOCTOR_FINDINGS_H
#define DV_DOCTOR_FINDINGS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum { DV_DOCTOR_OK, DV_DOCTOR_NOTE, DV_DOCTOR_WARNING, DV_DOCTOR_ERROR, DV_DOCTOR_LEVELS } dv_doctor_level;

/* Three words of a shell (shell_word.h) fit into a sentence. */
enum { DV_FINDING_BYTES = 1408 };

/* Sentences for people; "" where there is nothing to say. */
typedef struct {
    dv_doctor_level level;
    const char *check; /* one word, as docs/man/divvy.1 lists them */
    char where[DV_FINDING_BYTES], what[DV_FINDING_BYTES], why[DV_FINDING_BYTES];
    char todo[DV_FINDING_BYTES]; /* one command, or one setting; each name in it is a word of a shell */
} dv_finding;

typedef struct {
    dv_finding *list;
    size_t count, room;
    dv_finding spare; /* takes what there is no memory for */
    bool incomplete;  /* an allocation failed */
} dv_findings;

/* Adds a finding about `where`, whose other texts are still empty. Good until the next one is added. */
dv_finding *dv_findings_add(dv_findings *findings, dv_doctor_level level, const char *check, const char *where);
__attribute__((format(printf, 2, 3))) void dv_finding_what(dv_finding *finding, const char *format, ...);
__attribute__((format(printf, 2, 3))) void dv_finding_why(dv_finding *finding, const char *format, ...);
__attribute__((format(printf, 2, 3))) void dv_finding_todo(dv_finding *finding, const char *format, ...);
void dv_findings_clear(dv_findings *findings);

/* Returns how many there are of a level. */
size_t dv_findings_of(const dv_findings *findings, dv_doctor_level level);
/* Prints all, the worst first. malloc'ed; NULL when an allocation failed. */
char *dv_findings_page(const dv_findings *findings);
/* Adds how many there are, and all of them, the worst first. Returns whether there was memory for it. */
bool dv_findings_put(cJSON *json, const dv_findings *findings);
/* The same as one JSON object on one line. `path` may be NULL. */
char *dv_findings_json(const dv_findings *findings, const char *path);

#endif
