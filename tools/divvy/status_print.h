/* The display of a pool. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_STATUS_PRINT_H
#define DV_STATUS_PRINT_H

#include "format.h"
#include "status_pool.h"
#include "table.h"

/* The columns of the page: with what the plan says of members and items, too; and with what its rules do. */
typedef enum { DV_PAGE_PLAIN, DV_PAGE_PLANNED, DV_PAGE_RULED } dv_status_page_kind;

/* The page for people, and the tables in it, with which the next page is compared. */
typedef struct {
    dv_table *members, *items;
    dv_status_page_kind kind;
} dv_status_page;

/* Makes the page, on lines of `columns` columns (columns.h), with marks of what differs from `before` where `marks`.
 * Text to free(), or NULL when an allocation fails. The former contents of `page` are freed. */
char *dv_status_page_print(const dv_status *status, dv_status_page *page, const dv_status_page *before, bool marks,
                           size_t columns);
void dv_status_page_free(dv_status_page *page);

/* The same as one JSON object on one line. */
char *dv_status_page_json(const dv_status *status);

/* The same by a template: items, or members. */
extern const dv_format_kind dv_status_formats[];
char *dv_status_page_format(const dv_status *status, const dv_format *format);

#endif
