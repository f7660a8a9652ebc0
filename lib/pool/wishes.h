/* Wishes: the asks that stand in the plan afterwards (D48). SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_POOL_WISHES_H
#define DV_POOL_WISHES_H

#include "pool/errand.h"

/* As dv_ask_rule.find: the item, or an undo's wish, is there; the member, too; the items, or the prefix; nothing. */
int dv_wish_find_item(dv_errand *errand);
int dv_wish_find_pin(dv_errand *errand);
int dv_wish_find_move(dv_errand *errand);
int dv_wish_find_needy(dv_errand *errand);
int dv_wish_find_option(dv_errand *errand);
/* As dv_ask_rule.is_so and .tell. */
bool dv_wish_stands(dv_errand *errand);
void dv_wish_tell(dv_errand *errand);

/* Returns the place of an item in the plan's set, or SIZE_MAX. */
size_t dv_pool_item(const dv_plan *plan, const char *item);
/* Returns NULL, or why an option cannot have that value: a text that completes "the option ...". */
const char *dv_pool_option_check(const char *name, const char *value);

#endif
