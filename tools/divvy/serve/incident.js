// The first screen of the bad hour: what is wrong, who holds whom up, what changed last.
// SPDX-License-Identifier: Apache-2.0
import {$, age, button, copyable, element, icon, isNarrow, link, nameOf, quiet, refill, unknown} from "./dom.js";
import {ask, now, pool, time, view} from "./model.js";
import {count, number, remedyParts, shortText, whenText} from "./text.js";

const HELD_UP = 20, NAME_MOST = 24;
const levels = {error: ["bad", "Error"], warning: ["warn", "Warning"], note: ["note", "Note"]};
const open = {findings: false, notes: false, holdups: false, changes: false};
let found = null, foundError = null, holdups = null, holdupsError = null, changes = null, changesError = null;
let drawn = "", actions = {};

export const findings = () => found;
const timeOf = (change) => Date.parse(change.at) || 0;
const markOf = (change) => ({ms: timeOf(change), text: `plan ${change.generation}: ${change.reason}`});
export const planChanges = () => (changes ?? []).map(markOf);

export function makeIncident(given) {
  actions = given;
}

// Shows the first of many, and a button for the rest.
function fewer(list, most, part, again) {
  if (list.length <= most + 1) return [list, null];
  const text = open[part] ? "Show fewer" : `Show ${number(list.length - most)} more`;
  const more = button(text, () => {
    open[part] = !open[part];
    again();
  }, "link more", {"aria-expanded": String(open[part])});
  return [open[part] ? list : list.slice(0, most), more];
}

// ---- what is wrong now ----

function remedy(text) {
  const made = element("p", {class: "remedy"});
  for (const part of remedyParts(text)) {
    const words = part.text?.replace(/^[,;:] */, "").trim();
    if (part.command) made.append(copyable(part.command));
    else if (words) made.append(element("span", {}, words));
  }
  return made;
}

function findingOf(f) {
  const [kind, word] = levels[f.level];
  const made = element("li", {class: `finding ${kind}`});
  made.dataset.check = f.check;
  const elsewhere = f.where && f.where !== pool()?.path;
  const where = elsewhere ? element("span", {class: "where"}, nameOf(f.where, 40), ": ") : null;
  made.append(element("p", {class: "finding-head"}, icon(kind), element("strong", {class: "level"}, word), " ", where,
                      element("span", {class: "what"}, f.what)));
  if (f.why) made.append(element("p", {class: "why"}, f.why));
  if (f.do) made.append(remedy(f.do));
  return made;
}

function notesOf(notes) {
  if (!notes.length) return null;
  const made = element("details", open.notes ? {open: ""} : {}, element("summary", {}, count(notes.length, "note")),
                       element("ul", {class: "findings"}, ...notes.map(findingOf)));
  made.addEventListener("toggle", () => { open.notes = made.open; });
  return made;
}

function drawFindings() {
  const target = $("findings-list");
  if (!found) {
    refill(target, !pool() ? quietLine("There is no pool to examine.")
      : foundError ? unknown("What is wrong is", foundError) : waiting("being examined"));
    $("findings-note").textContent = "";
    $("findings").className = "panel incident";
    return;
  }
  const wrong = found.findings.filter((f) => f.level === "error" || f.level === "warning");
  const notes = found.findings.filter((f) => f.level === "note");
  $("findings").className = `panel incident ${found.errors ? "bad" : found.warnings ? "warn" : "calm"}`;
  $("findings-note").replaceChildren("examined ", age(found.read_at_ms), " ago");
  const [shown, more] = fewer(wrong, isNarrow() ? 2 : 4, "findings", drawFindings);
  const none = pool()?.unowned
    ? calmLine("wait", "Nothing else was found: the items without an owner are on their way, or wait.")
    : calmLine("good", "Nothing is wrong.");
  const list = wrong.length ? element("ul", {class: "findings"}, ...shown.map(findingOf)) : none;
  refill(target, list, more, notesOf(notes));
}

// Asks what is wrong, and shows it; draws again only if something has changed.
export async function showFindings() {
  const asked = view.pool;
  try {
    const told = await ask("/findings", {pool: asked});
    if (asked !== view.pool) return;
    [found, foundError] = [told, null];
  } catch (error) {
    if (asked !== view.pool) return;
    [found, foundError] = [null, error];
  }
  const text = JSON.stringify([asked, found?.findings, foundError?.message, Boolean(pool()?.unowned)]);
  if (text !== drawn) drawFindings();
  else if (found) $("findings-note").replaceChildren("examined ", age(found.read_at_ms), " ago");
  drawn = text;
}

// ---- who holds whom up ----

function holdupOf(h) {
  const member = (name) => link(name, () => actions.member(name), NAME_MOST);
  const waiter = h.waiter === null ? quiet("nobody: no plan gives it on") : member(h.waiter);
  const first = link(h.first, () => actions.item(h.first), NAME_MOST);
  const since = h.since_ms ? element("span", {class: "since"}, "for ", age(h.since_ms)) : null;
  return element("li", {class: "holdup"},
                 element("span", {class: "pair"}, member(h.holder),
                         element("span", {class: "arrow"}, element("span", {class: "hidden"}, " holds up "),
                                 element("span", {"aria-hidden": "true"}, " → ")), waiter),
                 element("span", {class: "held"}, count(h.items, "item"), ", ", first), since);
}

const calmLine = (kind, text) => element("p", {class: "calm-line"}, icon(kind), text);
const quietLine = (text) => element("p", {class: "calm-line quiet"}, text);
const waiting = (text) => element("p", {class: "unknown"}, icon("wait"), text);

function drawHoldups() {
  const rows = holdups ?? [];
  const [shown, more] = fewer(rows, isNarrow() ? 2 : 4, "holdups", drawHoldups);
  const total = rows.reduce((sum, h) => sum + h.items, 0);
  $("holdups-note").textContent = rows.length ? `${count(total, "item")} ${total === 1 ? "waits" : "wait"}` : "";
  const none = !pool() ? quietLine("There is no pool.") : holdupsError ? unknown("Who holds whom up is", holdupsError)
    : holdups ? calmLine("good", "Nobody holds anybody up.") : waiting("being asked for");
  refill($("holdups-list"), rows.length ? element("ul", {class: "rows"}, ...shown.map(holdupOf)) : none, more);
}

export async function showHoldups() {
  const asked = view.pool;
  let told = null, failed = null;
  try {
    told = (await ask("/rows", {table: "holdups", pool: asked, limit: HELD_UP})).rows;
  } catch (error) {
    failed = error;
  }
  if (asked !== view.pool) return;
  [holdups, holdupsError] = [told, failed];
  drawHoldups();
}

// ---- what changed last ----

function whoOf(word, who, died) {
  if (!who?.count) return null;
  const made = element("span", {class: "who"}, element("span", {class: "sign"}, `${word} `));
  who.names.slice(0, 3).forEach((name, i) => {
    const dead = died?.find((d) => d.name === name);
    made.append(i ? ", " : "", nameOf(name, NAME_MOST), dead ? element("strong", {class: "died"}, " died") : "");
  });
  const rest = who.count - Math.min(3, who.names.length);
  if (rest > 0) made.append(who.names.length ? ` and ${number(rest)} more` : count(rest, "member"));
  return made;
}

function tookOf(c) {
  if (c.under_way) return element("span", {class: "took warn-text"}, "under way");
  return c.took_ms === null ? null : element("span", {class: "took"}, `took ${shortText(c.took_ms)}`);
}

function changeOf(c) {
  const ms = timeOf(c), title = "Show the pool at this moment";
  const when = ms ? button(whenText(ms, now()), () => actions.moment(ms), "link when", {title}) : quiet("?");
  const took = tookOf(c), known = c.moved !== null;
  const moved = known ? element("span", {class: "moved"}, `${number(c.moved)} moved`) : null;
  return element("li", {class: "change"}, when,
                 element("span", {class: "reason"}, element("strong", {}, c.reason), quiet(` plan ${c.generation}`)),
                 element("span", {class: "people"}, whoOf("came", c.joined), whoOf("went", c.left, c.left?.died)),
                 element("span", {class: "effect"}, moved, moved && took ? ", " : null, took),
                 c.told ? element("span", {class: "told"}, c.told) : null);
}

function noChanges() {
  const p = pool();
  if (changesError) return unknown("What changed is", changesError);
  if (!p || (p.read && !p.found)) return quietLine("There is no pool, and no change of one.");
  if (!hasPlan(p)) return quietLine("The pool has no plan: its members deal by names, and write no changes down.");
  if (!changes) return waiting("being asked for");
  return quietLine(time.moment === null ? "No change is written down." : "No change of before is written down.");
}

const hasPlan = (p) => Boolean(p.generation || p.unusable);

function drawChanges() {
  const known = changes ?? [];
  const newest = known.filter((c) => time.moment === null || timeOf(c) <= time.moment).toReversed();
  const [shown, more] = fewer(newest, isNarrow() ? 2 : 5, "changes", drawChanges);
  $("changes-title").textContent = time.moment === null ? "What changed last" : "What had changed by then";
  refill($("changes-list"), newest.length ? element("ul", {class: "rows"}, ...shown.map(changeOf)) : noChanges(), more);
}

// Asks for the changes of the plan, if there is one. Returns whether the last one is still under way.
export async function showChanges() {
  const asked = view.pool;
  let told = null, failed = null;
  try {
    if (hasPlan(pool())) told = (await ask("/changes", {pool: asked})).changes;
  } catch (error) {
    failed = error;
  }
  if (asked !== view.pool) return false;
  [changes, changesError] = [told, failed];
  drawChanges();
  return Boolean(changes?.at(-1)?.under_way);
}

// Forgets what was told of another pool.
export function forgetIncident() {
  [found, foundError, holdups, holdupsError, changes, changesError, drawn] = [null, null, null, null, null, null, ""];
  redrawIncident();
}

export function redrawIncident() {
  drawFindings();
  drawHoldups();
  drawChanges();
  for (const id of ["findings-now", "holdups-now"]) $(id).hidden = time.moment === null;
}
