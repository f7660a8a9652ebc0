// Colours of owners, as a graph is coloured: pure. SPDX-License-Identifier: Apache-2.0

export const HUES = 8, PATTERNS = 4, LOOKS = HUES * PATTERNS;

// The looks that owners have: name -> 0 to LOOKS - 1, the hue and, HUES apart, the pattern. Kept while the page is
// open.
const looks = new Map();

// Who must look different from whom: owner -> owner -> how much it matters.
function conflictsOf(lanes) {
  const conflicts = new Map();
  const clash = (a, b, weight) => {
    if (a === b) return;
    for (const [one, other] of [[a, b], [b, a]]) {
      if (!conflicts.has(one)) conflicts.set(one, new Map());
      const of = conflicts.get(one);
      of.set(other, Math.max(weight, of.get(other) ?? 0));
    }
  };
  for (const lane of lanes) {
    const owners = [...new Set(lane)];
    owners.forEach((a, i) => {
      if (!conflicts.has(a)) conflicts.set(a, new Map());
      for (const b of owners.slice(i + 1)) clash(a, b, 1000);
    });
    for (let i = 1; i < lane.length; i++) clash(lane[i - 1], lane[i], 1000000);
  }
  return conflicts;
}

function costOf(look, owner, conflicts, placed) {
  let cost = look; // Plain ones first.
  for (const [other, used] of placed) {
    if (used !== look || other === owner) continue;
    cost += 100 + (conflicts.get(owner).get(other) ?? 0);
  }
  return cost;
}

// Gives each owner in the lanes a look. Each lane is a list of names, in the order of time. Those that had one keep it,
// unless it clashes: neighbours never look the same, nor do two in one lane, as far as LOOKS go.
export function colour(lanes) {
  const conflicts = conflictsOf(lanes), placed = new Map();
  const owners = [...conflicts.keys()];
  const known = owners.filter((owner) => looks.has(owner)), fresh = owners.filter((owner) => !looks.has(owner));
  fresh.sort((a, b) => conflicts.get(b).size - conflicts.get(a).size);
  for (const owner of known) {
    const look = looks.get(owner);
    const clashes = [...placed].some(([other, used]) => used === look && conflicts.get(owner).has(other));
    if (clashes) fresh.push(owner);
    else placed.set(owner, look);
  }
  for (const owner of fresh) {
    let best = 0, least = Infinity;
    for (let look = 0; look < LOOKS; look++) {
      const cost = costOf(look, owner, conflicts, placed);
      if (cost < least) [best, least] = [look, cost];
    }
    placed.set(owner, best);
    looks.set(owner, best);
  }
  return placed;
}
