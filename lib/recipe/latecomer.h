/* Latecomer: a node that R1 took for never made, and that may come yet. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, R3. */
#ifndef DV_LATECOMER_H
#define DV_LATECOMER_H

#include "recipe/node.h"

/* Looks for the node again on later connections, for a while, and deletes it if it stands. Nobody may make a node of
 * this name from then on. Does nothing for a latecomer itself, and where memory is short. */
void dv_latecomer_expect(const dv_node *node, int64_t now);

#endif
