// The tables: items, what moves, members, the timeline, locks and the registry. SPDX-License-Identifier: Apache-2.0
import {$, age, badge, element, link, nameOf, nobody} from "./dom.js";
import {ask, model, now, paced, pool, shown, time, view, writeAddress} from "./model.js";
import {durationText, middle, number, whenText} from "./text.js";
import {isOfItem} from "./lanes.js";

const PAGE_ROWS = 100, RELOAD_MS = 1000;
let rowsShown = new Map(), asked = 0, actions = {}, isRuled = false;

export const tabs = [
  {id: "items", title: "Items", table: "items", count: (p) => p.items},
  {id: "moves", title: "Moves", table: "items", state: "moving", count: (p) => p.moving,
   none: "Nothing moves: each item is where the plan wants it."},
  {id: "members", title: "Members", table: "members", count: (p) => p.members + p.away},
  {id: "timeline", title: "Timeline", table: "timeline",
   none: "Nothing has changed since divvy serve looks at this pool."},
  {id: "locks", title: "Locks", table: "locks", count: () => model.locks, none: "There are no locks or semaphores."},
  {id: "services", title: "Registry", table: "services", count: () => model.services,
   none: "There are no services in the registry."},
];
const tabNow = () => tabs.find((tab) => tab.id === view.tab) ?? tabs[0];

// ---- rows ----

const cell = (content, kind) => element("td", {role: "cell", ...(kind ? {class: kind} : {})}, content ?? "");
const named = (text) => text ? nameOf(text) : "";
const ownerOf = (text) => text ? nameOf(text) : nobody();
const numbered = (n) => cell(n === undefined || n === null ? "" : number(n), n ? "number" : "number zero");
const markOf = (r) => r.rule && r.rule !== r.state ? element("span", {class: "rule", title: r.why}, ` ${r.rule}`) : null;
const stateCell = (r) => {
  const made = cell(badge(r.state)), mark = markOf(r);
  if (mark) made.append(mark);
  return made;
};
const holderText = (h) => h.persistent ? `${h.who} (persistent)` : h.who;

const tables = {
  items: {
    heads: ["Item", "State", "Owner", "Goes to", "Since", "Token", "Waiting"], numbers: [5, 6], key: (r) => r.item,
    cells: (r) => [cell(link(r.item, () => actions.item(r.item))), stateCell(r), cell(ownerOf(r.owner)),
                   cell(named(r.next)), cell(age(r.since_ms), "time"), cell(r.token, "number"), numbered(r.waiting)],
  },
  members: {
    get heads() {
      return ["Member", "State", "Items", "Planned", "Weight", "Zone", "Kind", "Host", "Process", "Since",
              ...(isRuled ? ["Share", "Tags", "Cap"] : [])];
    },
    numbers: [2, 3, 4, 8, 10, 12], key: (r) => r.node,
    cells: (r) => [cell(link(r.member, () => actions.member(r.member))),
                   cell(badge(r.state || (r.live ? "live" : "away"))),
                   numbered(r.items), numbered(r.planned), numbered(r.weight), cell(named(r.zone)), cell(r.kind),
                   cell(named(r.host)), cell(r.pid === null ? "" : String(r.pid), "number"),
                   cell(age(r.since ? Date.parse(r.since) || 0 : 0), "time"),
                   ...(isRuled ? [cell(r.share?.toFixed(2), "number"), cell(named(r.tags)), numbered(r.cap)] : [])],
  },
  timeline: {heads: ["When", "What", "From", "To"], numbers: [], key: (r) => String(r.number), cells: eventCells},
  locks: {
    heads: ["Name", "Kind", "Holders", "Held", "Limit", "Waiting", "Since"], numbers: [3, 4, 5],
    key: (r) => `${r.kind}/${r.name}`,
    cells: (r) => [cell(named(r.name)), cell(r.kind), cell(ownerOf(r.holders.map(holderText).join(", "))),
                   numbered(r.held), numbered(r.limit), numbered(r.waiting), cell(age(r.since_ms), "time")],
  },
  services: {
    heads: ["Role", "Id", "Health", "Load", "Address", "Last heartbeat", "Lives for"], numbers: [3, 6],
    key: (r) => `${r.role}/${r.id}`,
    cells: (r) => [cell(named(r.role)), cell(named(r.id)), cell(badge(r.health)), cell(String(r.load), "number"),
                   cell(named(r.address)), cell(age(r.beat_ms), "time"),
                   cell(r.ttl_s === undefined ? "" : `${r.ttl_s} s`, "number")],
  },
};

function eventCells(r) {
  const when = element("time", {datetime: new Date(r.ms).toISOString(), title: `${durationText(now() - r.ms)} ago`},
                       whenText(r.ms, now()));
  const what = {joined: `${r.what} joined`, left: `${r.what} left`, restarted: `${r.what} restarted`,
                died: `${r.what} died, and its session ended ${r.to} later`,
                plan: `plan ${r.what}: ${r.to}`}[r.kind];
  if (!isOfItem(r)) return [cell(when, "time"), element("td", {colspan: 3, class: "quiet", role: "cell"}, what)];
  const name = cell(link(r.what, () => actions.item(r.what)));
  if (r.from && r.from === r.to) {
    const again = r.kind === "restarted" ? "restarted" : "took it again";
    return [cell(when, "time"), name, element("td", {colspan: 2, role: "cell"}, `${r.to} ${again}`)];
  }
  return [cell(when, "time"), name, cell(ownerOf(r.from)), cell(ownerOf(r.to))];
}

function rowOf(table, r) {
  const cells = table.cells(r);
  if (cells.length === table.heads.length) cells.forEach((one, i) => { one.dataset.head = i ? table.heads[i] : ""; });
  return element("tr", {role: "row"}, ...cells);
}

// Returns whether some member has a share of load, tags or a cap: then its table has columns for them.
const areRuled = (rows) => rows.some((r) => r.share !== undefined || r.tags || r.cap);

export function fillTable(target, name, caption, rows) {
  const table = tables[name];
  if (name === "members") isRuled = areRuled(rows);
  const kindOf = (i) => table.numbers.includes(i) ? {class: "number"} : {};
  const head = element("tr", {role: "row"}, ...table.heads.map((text, i) =>
    element("th", {scope: "col", role: "columnheader", ...kindOf(i)}, text)));
  const made = rows.map((r) => [table.key(r), rowOf(table, r)]);
  target.replaceChildren(element("caption", {class: "hidden"}, caption), element("thead", {role: "rowgroup"}, head),
                         element("tbody", {role: "rowgroup"}, ...made.map(([, row]) => row)));
  return new Map(made);
}

// ---- asking ----

export const reloadSoon = paced(() => reload(), RELOAD_MS);

// The question for the table that is shown. Of the past the items and the timeline are known.
function questionOf(tab) {
  const question = {table: tab.table, pool: view.pool, text: $("text").value, offset: view.offset, limit: PAGE_ROWS,
                    state: tab.state ?? (tab.id === "items" ? $("filter-state").value : ""),
                    order: tab.id === "items" ? $("order").value : "",
                    owner: tab.table === "items" ? view.owner : ""};
  if (tab.table === "items" && time.moment !== null) question.at = Math.round(time.moment);
  if (tab.table === "timeline" && time.end !== null)
    Object.assign(question, {from: Math.round(shown().from), to: Math.round(time.end)});
  return question;
}

export async function reload() {
  if (!pool()) return;
  const tab = tabNow(), mine = ++asked;
  let told;
  try {
    told = await ask("/rows", questionOf(tab));
  } catch (error) {
    if (mine === asked && error.status) showNone(`This table is not known: ${error.message}`);
    return; // Otherwise the stream says that the connection is gone.
  }
  if (mine !== asked) return;
  if (view.offset && view.offset >= told.matched) {
    view.offset = 0;
    reload();
    return;
  }
  showRows(tab, told);
}

function showNone(why) {
  rowsShown = new Map();
  $("table").replaceChildren();
  $("table").hidden = true;
  $("explanation").hidden = false;
  $("explanation").textContent = why;
  $("matched").textContent = "";
  $("pager").hidden = true;
}

// Says of which time the table is.
function timeNote(tab, told) {
  if (time.moment === null) return "";
  if (tab.table === "items") {
    const early = told.oldest_ms !== undefined && time.moment < told.oldest_ms;
    return early ? `Before ${whenText(told.oldest_ms, now())} nothing is known: these are the owners of then.`
                 : `Owners at ${whenText(time.moment, now())}.`;
  }
  if (tab.table === "timeline") return "Changes in the time that the chart shows.";
  return "Of now: of the past only items are known.";
}

function showRows(tab, told) {
  const focused = document.activeElement?.closest?.("#table") ? document.activeElement.textContent : null;
  const filtered = $("text").value || view.owner;
  if (!told.rows.length) showNone(filtered ? "No row matches the filter." : tab.none ?? "There are no rows.");
  else {
    rowsShown = fillTable($("table"), tab.table, `${tab.title} of ${pool().path}`, told.rows);
    $("table").hidden = false;
    $("explanation").hidden = true;
  }
  const last = view.offset + told.rows.length;
  const [matched, total] = [number(told.matched), number(told.total)];
  $("matched").textContent = told.matched === told.total ? `${total} rows` : `${matched} of ${total} rows match`;
  $("position").textContent = told.matched ? `${number(view.offset + 1)} to ${number(last)} of ${matched}` : "";
  $("first").disabled = $("previous").disabled = view.offset === 0;
  $("next").disabled = last >= told.matched;
  $("pager").hidden = told.matched <= PAGE_ROWS;
  $("time-note").textContent = timeNote(tab, told);
  $("time-note").hidden = time.moment === null;
  if (focused) [...$("table").querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
}

// ---- changes ----

function takeRows(kind, rows) {
  if (tabNow().table !== kind) return;
  const key = tables[kind].key;
  if (kind === "members" && !isRuled && areRuled(rows)) {
    reloadSoon();
    return;
  }
  for (const r of rows) {
    const old = rowsShown.get(key(r));
    if (!old || old.contains(document.activeElement)) {
      reloadSoon();
      continue;
    }
    const fresh = rowOf(tables[kind], r);
    fresh.className = "changed";
    old.replaceWith(fresh);
    rowsShown.set(key(r), fresh);
  }
}

// Takes what the stream tells of the pool that is shown.
export function takeChange(change) {
  const tab = tabNow();
  if (time.moment !== null && tab.table !== "members") return;
  if (!tab.state) takeRows("items", change.items ?? []);
  takeRows("members", change.members_changed ?? []);
  const filtered = tab.state || view.owner || (tab.id === "items" && ($("filter-state").value || $("order").value));
  const told = change.gone || change.items_changed || (change.events && tab.id === "timeline");
  if (told || (change.items && filtered)) reloadSoon();
}

// Takes what the stream tells of locks and the registry.
export function takeRest() {
  if (["locks", "services"].includes(tabNow().table)) reloadSoon();
}

// ---- the controls ----

export function choose(id) {
  const tab = tabs.find((one) => one.id === id) ?? tabs[0];
  view.tab = tab.id;
  view.offset = 0;
  for (const other of tabs) {
    $(`tab-${other.id}`).setAttribute("aria-selected", String(other === tab));
    $(`tab-${other.id}`).tabIndex = other === tab ? 0 : -1;
  }
  $("view").setAttribute("aria-labelledby", `tab-${tab.id}`);
  $("owner").hidden = !view.owner || tab.table !== "items";
  $("owner-name").textContent = middle(view.owner, 30);
  $("owner").title = view.owner;
  $("filter-state-label").hidden = $("order-label").hidden = tab.id !== "items";
  writeAddress();
  reload();
}

// Shows the items of a member.
export function showItemsOf(member) {
  view.owner = member;
  $("text").value = $("filter-state").value = "";
  choose("items");
  $("tables").scrollIntoView({block: "start"});
  $("owner").focus({preventScroll: true});
}

export function showTabCounts() {
  for (const tab of tabs) {
    if (tab.count) $(`tab-${tab.id}`).querySelector("span").textContent = number(tab.count(pool()));
  }
}

function makeTabs() {
  for (const tab of tabs) {
    const made = element("button", {type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": "view"},
                         `${tab.title} `, element("span"));
    made.addEventListener("click", () => choose(tab.id));
    $("tabs").append(made);
  }
  $("tabs").addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1, Home: -tabs.length, End: tabs.length}[event.key];
    if (!step) return;
    const at = tabs.indexOf(tabNow()) + step;
    const tab = Math.abs(step) > 1 ? tabs.at(step > 0 ? -1 : 0) : tabs.at(at % tabs.length);
    event.preventDefault();
    choose(tab.id);
    $(`tab-${tab.id}`).focus();
  });
}

// `given` says what is done when an item or a member is chosen, and when the filter changes.
export function makeTables(given) {
  actions = given;
  makeTabs();
  let typed = null;
  const again = () => {
    view.offset = 0;
    reload();
    actions.filtered();
  };
  $("text").addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(again, 150);
  });
  $("owner").addEventListener("click", () => {
    view.owner = "";
    choose(view.tab);
    $("text").focus({preventScroll: true});
  });
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  $("filter-state").addEventListener("change", again);
  $("order").addEventListener("change", again);
  for (const [id, step] of [["first", -Infinity], ["previous", -PAGE_ROWS], ["next", PAGE_ROWS]]) {
    $(id).addEventListener("click", () => {
      view.offset = Math.max(0, view.offset + step);
      reload();
    });
  }
}
