// All pools, the worst first. SPDX-License-Identifier: Apache-2.0
import {$, age, badge, button, element, isNarrow, link, nameOf, refill, unknown} from "./dom.js";
import {ask, model, stateOf, view} from "./model.js";
import {number} from "./text.js";

const FEW = 6;
let whole = false, choose = () => {}, rows = [];

const wordOf = (state) => ({absent: "no pool", reading: "being read"})[state] ?? state;

// The state of a pool as a badge.
export function poolBadge(state) {
  const made = badge(state);
  made.lastChild.replaceWith(wordOf(state));
  return made;
}

function rowOf(row) {
  const cell = (head, ...content) => element("td", {"data-head": head, role: "cell"}, ...content);
  const count = (head, n, kind = "") =>
    element("td", {"data-head": head, role: "cell", class: `number ${n ? kind : "zero"}`}, number(n));
  const name = row.pool === view.pool ? nameOf(row.path) : link(row.path, () => choose(row.pool));
  return element("tr", {role: "row", ...(row.pool === view.pool ? {"aria-current": "true"} : {})}, cell("", name),
                 cell("State", poolBadge(row.state)), count("Members", row.members), count("Items", row.items),
                 count("Unowned", row.unowned, "bad-text"), count("Moving", row.moving, "warn-text"),
                 cell("Changed", age(row.changed_ms)));
}

function draw() {
  const few = isNarrow() ? FEW / 2 : FEW, most = whole || rows.length <= few + 1 ? rows.length : few;
  const shown = rows.filter((row, i) => i < most || row.pool === view.pool);
  const heads = ["Pool", "State", "Members", "Items", "Unowned", "Moving", "Changed"];
  const head = element("tr", {role: "row"}, ...heads.map((text, i) =>
    element("th", {scope: "col", role: "columnheader", ...(i > 1 && i < 6 ? {class: "number"} : {})}, text)));
  const table = element("table", {role: "table", class: "cards pools"},
                        element("caption", {class: "hidden"}, "All pools"),
                        element("thead", {role: "rowgroup"}, head),
                        element("tbody", {role: "rowgroup"}, ...shown.map(rowOf)));
  const beyond = model.more_pools ? `; ${number(model.more_pools)} more are not followed` : "";
  const bad = rows.filter((row) => !["well", "moving"].includes(row.state)).length;
  const all = number(rows.length);
  const note = (bad ? `${number(bad)} of ${all} need a look` : `all ${all} are in order`) + beyond;
  const more = shown.length < rows.length || whole
    ? button(whole ? "Show the worst alone" : `Show all ${number(rows.length)} pools`, () => {
      whole = !whole;
      draw();
    }, "link") : null;
  refill($("pools-list"), table, more);
  $("pools-note").textContent = note;
}

// Asks how all pools are, if there is more than one. Returns the number of the worst one.
export async function showPools() {
  $("pools").hidden = model.pools.length < 2;
  if (model.pools.length < 2) return 0;
  try {
    const told = await ask("/rows", {table: "pools", limit: 500});
    rows = told.rows;
  } catch (error) {
    if (error.status !== 400) {
      $("pools-list").replaceChildren(unknown("How all pools are is", error));
      return view.pool;
    }
    rows = model.pools.map((p, i) => ({pool: i, ...p, state: stateOf(p)}));
  }
  draw();
  return rows[0]?.pool ?? 0;
}

export function redrawPools() {
  if (rows.length > 1) draw();
}

export function makePools(action) {
  choose = action;
}
