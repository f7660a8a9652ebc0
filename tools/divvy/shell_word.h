/* Names as words of the commands that are printed for an operator to copy. SPDX-License-Identifier: Apache-2.0
 *
 * A name has any bytes, so a shell could run it, or a program take it for an option. */
#ifndef DV_SHELL_WORD_H
#define DV_SHELL_WORD_H

enum { DV_SHELL_WORD_BYTES = 400 };

/* Writes a text of printf()'s format as one word of a shell: as it is where no shell sees more in it than letters; else
 * in single quotes; else, where terminals would not show it, as $'a\012b', which bash, zsh and ksh know. All that is
 * written can be shown. A cut name would be another's, so `otherwise`, as "ITEM", stands for one that is too long.
 * Returns `out`. */
__attribute__((format(printf, 3, 4))) const char *dv_shell_word(char out[DV_SHELL_WORD_BYTES], const char *otherwise,
                                                                const char *format, ...);

/* Likewise a name that is the last word of a command: "--" is in front where the name would be taken for an option. */
const char *dv_shell_operand(char out[DV_SHELL_WORD_BYTES], const char *otherwise, const char *name);

#endif
