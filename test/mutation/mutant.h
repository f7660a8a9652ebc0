/* The mutant of this process: included by the copies of lib/ that test/mutation makes. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef DV_MUTATION_MUTANT_H
#define DV_MUTATION_MUTANT_H

extern unsigned dv_mutant;               /* the number of DIVVY_MUTANT, 0 of none */
extern unsigned char *dv_mutant_reached; /* the bytes of the file DIVVY_MUTANT_MAP, one for each mutant, or NULL */

/* Returns whether mutant `number` is the one of this process. Notes that it was reached. */
static inline _Bool dv_mutant_at(unsigned number) {
    if (__builtin_expect(dv_mutant_reached != 0, 0)) dv_mutant_reached[number] = 1;
    return __builtin_expect(dv_mutant == number, 0);
}

#endif
