/* From a part to the whole that it stands in. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CONTAINER_H
#define DV_CONTAINER_H

#include <stddef.h>

#define DV_CONTAINER(part, type, member) ((type *)(void *)((char *)(part)-offsetof(type, member)))

#endif
