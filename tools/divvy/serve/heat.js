// The heat map of members: by items, or by load, each member's as a part of its fair share. SPDX-License-Identifier: Apache-2.0
import {$, element, shape, unknown} from "./dom.js";
import {ask, view} from "./model.js";
import {count, middle, number} from "./text.js";

const HEIGHT_MOST = 300, GAP = 3, WIDE_MOST = 72;
const glyphs = {stale: "!", absent: "×", gone: "×", away: "×", fenced: "#", drained: "∅", leaving: "→"};
const glyphOf = (state) => state ? glyphs[state] ?? "?" : "";
let told = null, byLoad = false, choose = () => {};

function memberOf([name, items, planned, state, weight, zone, load]) {
  return {name, items, planned, state, weight, zone, load};
}

const isLoad = (load) => typeof load === "number";

// The share that is fair for a member: what the plan gives it, or its part by weight.
function shareOf(member, fair, weight) {
  return member.planned ?? fair * (member.weight ?? weight) / (weight || 1);
}

// One of seven shades, from nothing to more than twice the fair share; the fourth is the fair one.
function shadeOf(ratio) {
  const shade = [0, 0.5, 0.8999, 1.1, 1.5, 2].findIndex((most) => ratio <= most);
  return shade < 0 ? 6 : shade;
}

// Sizes of cells: wide ones with names for few members, squares for many.
function layoutOf(members, width) {
  if (members <= WIDE_MOST) {
    const columns = Math.max(1, Math.min(members, Math.floor((width + GAP) / (104 + GAP))));
    return {columns, wide: true, cell: Math.min(220, (width + GAP) / columns - GAP), height: 42};
  }
  let columns = Math.ceil(Math.sqrt(members * width / HEIGHT_MOST));
  columns = Math.max(columns, Math.ceil(width / 44));
  const cell = Math.max(6, Math.floor((width + GAP) / columns) - GAP);
  return {columns: Math.max(1, Math.floor((width + GAP) / (cell + GAP))), wide: false, cell, height: cell};
}

function textsOf(member, layout, x, y, shade) {
  const value = byLoad ? member.load : member.items;
  const text = isLoad(value) ? byLoad ? value.toFixed(2) : number(value) : "–";
  const glyph = glyphOf(member.state);
  if (layout.wide) {
    const label = middle(member.name, Math.floor((layout.cell - 14) / 7.2));
    return [shape("text", {class: `heat-name s${shade}`, x: x + 7, y: y + 16}, label),
            shape("text", {class: `heat-value s${shade}`, x: x + 7, y: y + 34}, text),
            glyph ? shape("text", {class: `heat-glyph s${shade}`, x: x + layout.cell - 8, y: y + 34,
                                   "text-anchor": "end"}, `${glyph} ${member.state}`) : null];
  }
  const shown = glyph && layout.cell < 34 ? glyph : glyph ? `${glyph}${text}` : text;
  if (layout.cell < 12 || shown.length * 6.8 > layout.cell - 2) return [];
  return [shape("text", {class: `heat-value s${shade} small`, x: x + layout.cell / 2, y: y + layout.height / 2 + 4,
                         "text-anchor": "middle"}, shown)];
}

function describe(member, share) {
  const fair = number(Math.round(share * 10) / 10);
  const parts = [`${member.name}: ${count(member.items, "item")}, ${fair} would be fair`];
  if (member.planned !== null && member.planned !== undefined) parts.push(`planned ${number(member.planned)}`);
  if (isLoad(member.load)) parts.push(`load ${member.load.toFixed(2)} of its fair share`);
  if (member.zone) parts.push(`zone ${member.zone}`);
  if (member.state) parts.push(member.state);
  return parts.join(", ");
}

function draw() {
  const svg = $("heat-map"), width = svg.clientWidth || 900;
  const members = told.members.map(memberOf);
  const layout = layoutOf(members.length, width - 2);
  const weights = members.filter((m) => m.weight).map((m) => m.weight);
  const weight = weights.length ? weights.reduce((a, b) => a + b, 0) / weights.length : 1;
  const made = document.createDocumentFragment();
  members.forEach((member, i) => {
    const x = i % layout.columns * (layout.cell + GAP) + 1;
    const y = Math.floor(i / layout.columns) * (layout.height + GAP) + 1;
    const share = shareOf(member, told.fair, weight);
    const ratio = byLoad ? member.load ?? 0 : share ? member.items / share : member.items ? 3 : 1;
    const shade = shadeOf(ratio);
    const cell = shape("g", {class: `cell ${member.state ? "odd" : ""}`}, undefined, describe(member, share));
    cell.dataset.member = member.name;
    cell.append(shape("rect", {class: `s${shade}`, x, y, width: layout.cell, height: layout.height,
                               rx: layout.wide ? 5 : 2}),
                ...textsOf(member, layout, x, y, shade).filter(Boolean));
    made.append(cell);
  });
  const height = Math.ceil(members.length / layout.columns) * (layout.height + GAP) + 2;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren(made);
}

function drawLegend() {
  const words = [["s0", "none"], ["s1", "to half"], ["s2", "less"], ["s3", "fair"], ["s4", "more"],
                 ["s5", "to twice"], ["s6", "above"]];
  const states = new Map();
  for (const [, , , state] of told.members) if (state) states.set(state, (states.get(state) ?? 0) + 1);
  $("heat-legend").replaceChildren(
    ...words.map(([shade, word]) => element("span", {}, element("span", {class: `key ${shade}`}), word)),
    ...[...states].map(([state, n]) =>
      element("span", {class: "member-state"}, `${glyphOf(state)} ${state}: ${number(n)}`)));
}

// Draws again what was told last, as after a change of the width.
export function redrawHeat() {
  if (!told?.members.length || $("heat").hidden) return;
  draw();
  drawLegend();
}

// Asks for the members, and draws them.
export async function showHeat() {
  const asked = view.pool;
  try {
    const answer = await ask("/heat", {pool: asked});
    if (asked !== view.pool) return;
    told = answer;
    $("heat-unknown").replaceChildren();
  } catch (error) {
    told = null;
    $("heat-unknown").replaceChildren(unknown("How items are spread is", error));
  }
  const some = Boolean(told?.members.length);
  const loads = some && told.members.some((m) => isLoad(m[6]));
  byLoad &&= loads;
  $("heat-load-label").hidden = !loads;
  $("heat").hidden = Boolean(told) && !some;
  $("heat-map").toggleAttribute("hidden", !some);
  $("heat-legend").hidden = !some;
  if (!some) return;
  const more = told.more ? `, and ${number(told.more)} more` : "";
  $("heat-map").setAttribute("aria-label", `${count(told.members.length, "member")}${more}, shaded by ` +
    `${byLoad ? "load" : "items"}; the table of members says the same`);
  $("heat-note").textContent = `${number(Math.round(told.fair * 10) / 10)} items for each are fair${more}`;
  redrawHeat();
}

// Says what is done when a member is clicked.
export function makeHeat(action) {
  choose = action;
  $("heat-map").addEventListener("click", (event) => {
    const member = event.target.closest("[data-member]")?.dataset.member;
    if (member !== undefined) choose(member);
  });
  $("heat-load").addEventListener("change", () => {
    byLoad = $("heat-load").checked;
    showHeat();
  });
}
