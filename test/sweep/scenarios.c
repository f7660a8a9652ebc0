/* All scenarios. SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#define ENTRY(group, name, ensemble) {#group, #name, sweep_##group##_##name, !(ensemble)},

const sweep_scenario sweep_scenarios[] = {SWEEP_SCENARIOS(ENTRY){NULL, NULL, NULL, false}};
