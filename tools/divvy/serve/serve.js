// The page of divvy serve: shows what it is told, and asks for nothing but that. SPDX-License-Identifier: Apache-2.0
//
// Names come from ZooKeeper, where anybody may have put anything: they are set as text, never as HTML.
"use strict";

const PAGE_ROWS = 100, LANES = 12, RELOAD_MS = 1000;
const $ = (id) => document.getElementById(id);
const tabs = [
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
const model = {pools: [], locks: 0, services: 0, sequence: 0, offset_ms: 0, root: ""};
const view = {pool: 0, tab: tabs[0], offset: 0, rows: new Map(), asked: 0};

const now = () => Date.now() + model.offset_ms;
const number = (n) => n.toLocaleString("en");
const pool = () => model.pools[view.pool];

// ---- elements ----

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const cell = (content, kind) => element("td", kind ? {class: kind} : {}, content ?? "");
const link = (text, action) => {
  const button = element("button", {type: "button", class: "link"}, text);
  button.addEventListener("click", action);
  return button;
};

function age(ms) {
  if (!ms) return element("span", {class: "quiet"}, "–");
  const time = element("time", {datetime: new Date(ms).toISOString(), title: new Date(ms).toString()});
  time.dataset.ms = ms;
  time.textContent = durationText(now() - ms);
  return time;
}

function badge(word) {
  const kinds = {owned: "good", healthy: "good", moving: "warn", kept: "warn", stranger: "bad", unowned: "bad", stale: "bad",
                 absent: "warn", gone: "bad", fenced: "bad", drained: "warn", leaving: "warn"};
  return element("span", {class: `badge ${kinds[word] ?? ""}`}, word);
}

// ---- rows ----

const holderText = (h) => h.persistent ? `${h.who} (persistent)` : h.who;
const nobody = () => element("span", {class: "quiet"}, "nobody");

const tables = {
  items: {
    heads: ["Item", "State", "Owner", "Goes to", "Since", "Token", "Waiting"], numbers: [5, 6], key: (r) => r.item,
    cells: (r) => [cell(link(r.item, () => showItem(r))), cell(badge(r.state)), cell(r.owner ?? nobody()), cell(r.next),
                   cell(age(r.since_ms), "time"), cell(r.token, "number"), cell(number(r.waiting), "number")],
  },
  members: {
    heads: ["Member", "State", "Items", "Planned", "Weight", "Zone", "Kind", "Host", "Process", "Since"], numbers: [2, 3, 4, 8],
    key: (r) => r.node,
    cells: (r) => [cell(link(r.member, () => showItemsOf(r.member))), cell(badge(r.state || (r.live ? "live" : "away"))),
                   cell(number(r.items), "number"), cell(r.planned === undefined ? "" : number(r.planned), "number"),
                   cell(r.weight === undefined ? "" : number(r.weight), "number"), cell(r.zone), cell(r.kind), cell(r.host),
                   cell(r.pid === null ? "" : String(r.pid), "number"),
                   cell(age(r.since ? Date.parse(r.since) || 0 : 0), "time")],
  },
  timeline: {heads: ["When", "What", "From", "To"], numbers: [], key: (r) => String(r.number), cells: eventCells},
  locks: {
    heads: ["Name", "Kind", "Holders", "Held", "Limit", "Waiting", "Since"], numbers: [3, 4, 5],
    key: (r) => `${r.kind}/${r.name}`,
    cells: (r) => [cell(r.name), cell(r.kind), cell(r.holders.map(holderText).join(", ") || nobody()),
                   cell(number(r.held), "number"), cell(r.limit === undefined ? "" : number(r.limit), "number"),
                   cell(number(r.waiting), "number"), cell(age(r.since_ms), "time")],
  },
  services: {
    heads: ["Role", "Id", "Health", "Load", "Address", "Last heartbeat", "Lives for"], numbers: [3, 6],
    key: (r) => `${r.role}/${r.id}`,
    cells: (r) => [cell(r.role), cell(r.id), cell(badge(r.health)), cell(String(r.load), "number"), cell(r.address),
                   cell(age(r.beat_ms), "time"), cell(r.ttl_s === undefined ? "" : `${r.ttl_s} s`, "number")],
  },
};

const isOfItem = (r) => r.kind === "item" || (r.kind === "restarted" && r.to !== undefined);

function eventCells(r) {
  const when = element("time", {datetime: new Date(r.ms).toISOString(), title: durationText(now() - r.ms)}, clockText(r.ms));
  const what = {joined: `${r.what} joined`, left: `${r.what} left`, restarted: `${r.what} restarted`,
                died: `${r.what} died, and its session ended ${r.to} later`,
                plan: `plan ${r.what}: ${r.to}`}[r.kind];
  if (!isOfItem(r)) return [cell(when, "time"), element("td", {colspan: 3, class: "quiet"}, what)];
  const name = cell(link(r.what, () => showItem({item: r.what})));
  if (r.from && r.from === r.to) {
    const again = r.kind === "restarted" ? "restarted" : "took it again";
    return [cell(when, "time"), name, element("td", {colspan: 2}, `${r.to} ${again}`)];
  }
  return [cell(when, "time"), name, cell(r.from ?? nobody()), cell(r.to ?? nobody())];
}

function rowOf(table, r) {
  const row = element("tr", {}, ...table.cells(r));
  return row;
}

function fillTable(target, table, caption, rows) {
  const head = element("tr", {}, ...table.heads.map((text, i) =>
    element("th", {scope: "col", ...(table.numbers.includes(i) ? {class: "number"} : {})}, text)));
  const made = rows.map((r) => [table.key(r), rowOf(table, r)]);
  target.replaceChildren(element("caption", {class: "hidden"}, caption), element("thead", {}, head),
                         element("tbody", {}, ...made.map(([, row]) => row)));
  return new Map(made);
}

// ---- asking ----

async function ask(path, question = {}) {
  const query = new URLSearchParams(Object.entries(question).filter(([, value]) => value !== ""));
  const answer = await fetch(query.size ? `${path}?${query}` : path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let reloading = null;

// Asks for the shown rows again, at most once in a while.
function reloadSoon() {
  reloading ??= setTimeout(() => {
    reloading = null;
    reload();
  }, RELOAD_MS);
}

async function reload() {
  if (!pool()) return;
  const tab = view.tab, asked = ++view.asked;
  const question = {table: tab.table, pool: view.pool, text: $("text").value, offset: view.offset, limit: PAGE_ROWS,
                    state: tab.state ?? (tab.id === "items" ? $("state").value : ""),
                    order: tab.id === "items" ? $("order").value : ""};
  let told;
  try {
    told = await ask("/rows", question);
  } catch {
    return; // The stream says that the connection is gone.
  }
  if (asked !== view.asked) return;
  if (view.offset && view.offset >= told.matched) {
    view.offset = 0;
    reload();
    return;
  }
  showRows(tab, told);
}

function showRows(tab, told) {
  const focused = document.activeElement?.closest?.("#table") ? document.activeElement.textContent : null;
  view.rows = fillTable($("table"), tables[tab.table], `${tab.title} of ${pool().path}`, told.rows);
  $("table").hidden = !told.rows.length;
  $("explanation").hidden = told.rows.length > 0;
  $("explanation").textContent = $("text").value ? "No row matches the filter." : tab.none ?? "There are no rows.";
  const last = view.offset + told.rows.length;
  $("matched").textContent = told.matched === told.total ? `${number(told.total)} rows`
                                                         : `${number(told.matched)} of ${number(told.total)} rows match`;
  $("position").textContent = told.matched ? `${number(view.offset + 1)} to ${number(last)} of ${number(told.matched)}` : "";
  $("first").disabled = $("previous").disabled = view.offset === 0;
  $("next").disabled = last >= told.matched;
  $("pager").hidden = told.matched <= PAGE_ROWS;
  if (focused) [...$("table").querySelectorAll("button")].find((b) => b.textContent === focused)?.focus();
  $("lanes").toggleAttribute("hidden", tab.id !== "timeline" || !told.rows.length);
  if (tab.id === "timeline") showLanes();
}

// ---- the timeline ----

function lanesOf(events, most) {
  const items = new Map();
  for (const event of events) { // the newest first
    if (!isOfItem(event)) continue;
    if (!items.has(event.what) && items.size < most) items.set(event.what, []);
    items.get(event.what)?.unshift(event);
  }
  return items;
}

async function showLanes() {
  const told = await ask("/rows", {table: "timeline", pool: view.pool, text: $("text").value, limit: 500}).catch(() => null);
  if (!told || view.tab.id !== "timeline") return;
  const items = lanesOf(told.rows, LANES), end = now();
  const oldest = Math.min(end - 60000, ...[...items.values()].map((events) => events[0].ms - 5000));
  const from = Math.max(oldest, model.started_ms);
  drawLanes($("lanes"), [...items].map(([name, events]) => ({name, spans: spansOf(events, from, end)})), from, end);
  $("lanes").setAttribute("aria-label", `Who owned the ${items.size} items that changed last; the table says the same`);
  $("lanes").toggleAttribute("hidden", items.size === 0);
}

async function showItem(row) {
  const question = {pool: view.pool, exact: row.item};
  const [current, history] = await Promise.all([ask("/rows", {...question, table: "items", limit: 1}),
                                                ask("/rows", {...question, table: "timeline", limit: 200})]);
  const item = current.rows[0] ?? {item: row.item, state: "unowned", owner: null, waiting: 0};
  const facts = [["State", badge(item.state)], ["Owner", item.owner ?? "nobody"], ["Goes to", item.next],
                 [item.seen || !item.owner ? "Since" : "Queued", item.since_ms ? age(item.since_ms) : "not known"],
                 ["Token", item.token], ["Waiting", number(item.waiting)]];
  $("item-title").textContent = item.item;
  $("item-facts").replaceChildren(...facts.filter(([, value]) => value)
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  fillTable($("item-events"), tables.timeline, "Its changes", history.rows);
  if (!$("item").open) $("item").showModal();
  const events = history.rows.filter(isOfItem).reverse(), end = now();
  const from = Math.max(model.started_ms, Math.min(end - 60000, events.length ? events[0].ms - 5000 : end));
  const spans = events.length ? spansOf(events, from, end) : [{owner: item.owner, from, to: end}];
  drawLanes($("item-lane"), [{name: item.item, spans}], from, end);
}

function showItemsOf(member) {
  $("text").value = member;
  $("state").value = "";
  choose(tabs[0]);
}

// ---- the summary ----

function showSummary() {
  const p = pool();
  const plan = p.unusable ? `the plan is ${p.unusable}` : !p.generation ? "none: members deal by names"
    : `${p.reason}${p.in_force ? "" : ", not in force"}`;
  const planned = p.planned_ms && p.generation ? age(p.planned_ms) : "";
  const tiles = [
    ["Members", number(p.members), p.away ? `${number(p.away)} away` : p.strays ? `${number(p.strays)} strays` : "in the party",
     p.members ? "" : "bad"],
    ["Items", number(p.items), `${number(p.owned)} owned`, ""],
    ["Unowned", number(p.unowned), p.items ? `${(100 * p.unowned / p.items).toFixed(1)} % of all` : "", p.unowned ? "bad" : ""],
    ["Moving", number(p.moving), p.strangers ? `${number(p.strangers)} held by strangers` : "on their way", p.moving ? "warn" : ""],
    ["Items for each", p.least === p.most ? number(p.least) : `${number(p.least)} – ${number(p.most)}`,
     `${number(p.waiting)} waiting`, ""],
    ["Plan", p.generation ? number(p.generation) : "–", element("span", {}, plan, planned ? ", " : "", planned),
     p.unusable ? "bad" : ""],
  ];
  $("summary").replaceChildren(...tiles.map(([name, value, more, kind]) =>
    element("div", kind ? {class: kind} : {}, element("dt", {}, name), element("dd", {}, value), element("dd", {}, more))));
  for (const tab of tabs) {
    if (tab.count) $(`tab-${tab.id}`).querySelector("span").textContent = number(tab.count(p));
  }
  document.title = `${p.unowned ? `(${p.unowned} unowned) ` : ""}${p.path} – divvy`;
  const trouble = model.trouble ? `ZooKeeper could not be read: ${model.trouble}. What is shown is of before.`
    : !p.read ? `${p.path} is being read for the first time.` : !p.found ? `There is no pool at ${p.path} yet.` : "";
  $("trouble").textContent = trouble;
  $("trouble").hidden = !trouble;
}

const showCounts = () => pool()?.samples && drawCounts($("counts"), pool().samples, now());

async function loadSamples() {
  const p = pool();
  if (!p) return;
  p.samples = (await ask("/samples", {pool: view.pool})).samples;
  showCounts();
}

function showPools() {
  const names = model.pools.map((p, i) => element("option", {value: i}, p.path));
  $("pool").replaceChildren(...names);
  view.pool = Math.min(view.pool, model.pools.length - 1);
  $("pool").value = view.pool;
  $("since").textContent = `Looked at since ${new Date(model.started_ms).toLocaleString()}. ` +
    `Locks and registry: below ${model.root}. Figures for Prometheus: /metrics.`;
}

// ---- changes ----

function takeRows(kind, rows, key) {
  if (view.tab.table !== kind) return;
  for (const r of rows) {
    const old = view.rows.get(key(r));
    if (!old || old.contains(document.activeElement)) {
      reloadSoon();
      continue;
    }
    const fresh = rowOf(tables[kind], r);
    fresh.className = "changed";
    old.replaceWith(fresh);
    view.rows.set(key(r), fresh);
  }
}

function takePool(change) {
  const p = model.pools[change.pool], f = change.figures;
  if (!p) return;
  Object.assign(p, f, {read: true});
  p.samples?.push([change.ms, p.items, p.unowned, p.moving, p.members]);
  if (p.samples?.length > 800) p.samples.shift();
  if (change.pool !== view.pool) return;
  showSummary();
  showCounts();
  takeRows("items", change.items ?? [], tables.items.key);
  takeRows("members", change.members_changed ?? [], tables.members.key);
  const filtered = view.tab.state || (view.tab.id === "items" && ($("state").value || $("order").value));
  if (change.gone || change.items_changed || (change.events && view.tab.id === "timeline") || (change.items && filtered)) reloadSoon();
}

function take(text) {
  const change = JSON.parse(text);
  if (change.pool !== undefined) {
    takePool(change);
    return;
  }
  Object.assign(model, change);
  showSummary();
  if (["locks", "services"].includes(view.tab.table)) reloadSoon();
}

async function begin() {
  const state = await ask("/state");
  Object.assign(model, state);
  model.offset_ms = state.now_ms - Date.now();
  showPools();
  showSummary();
  await loadSamples();
  await reload();
}

// Listens to the stream. Events that come before the state wait, and are taken if the state is older.
function listen() {
  const stream = new EventSource("/events");
  let waiting = null;
  stream.addEventListener("open", async () => {
    waiting = [];
    try {
      await begin();
      $("live").textContent = "connected";
      $("live").className = "live";
    } catch {
      $("live").textContent = "not read";
    }
    for (const event of waiting) if (Number(event.lastEventId) > model.sequence) take(event.data);
    waiting = null;
  });
  stream.addEventListener("message", (event) => waiting ? waiting.push(event) : take(event.data));
  stream.addEventListener("error", () => {
    $("live").textContent = "not connected, trying again";
    $("live").className = "live off";
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  });
}

// ---- the controls ----

function choose(tab) {
  view.tab = tab;
  view.offset = 0;
  for (const other of tabs) {
    $(`tab-${other.id}`).setAttribute("aria-selected", String(other === tab));
    $(`tab-${other.id}`).tabIndex = other === tab ? 0 : -1;
  }
  $("view").setAttribute("aria-labelledby", `tab-${tab.id}`);
  $("state-label").hidden = $("order-label").hidden = tab.id !== "items";
  $("lanes").toggleAttribute("hidden", true);
  history.replaceState(null, "", `#${tab.id}`);
  reload();
}

function makeTabs() {
  for (const tab of tabs) {
    const button = element("button", {type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": "view"},
                           `${tab.title} `, element("span"));
    button.addEventListener("click", () => choose(tab));
    $("tabs").append(button);
  }
  $("tabs").addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1, Home: -tabs.length, End: tabs.length}[event.key];
    if (!step) return;
    const at = tabs.indexOf(view.tab) + step;
    const tab = Math.abs(step) > 1 ? tabs.at(step > 0 ? -1 : 0) : tabs.at(at % tabs.length);
    event.preventDefault();
    choose(tab);
    $(`tab-${tab.id}`).focus();
  });
}

function makeControls() {
  let typed = null;
  const again = () => {
    view.offset = 0;
    reload();
  };
  $("text").addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(again, 150);
  });
  $("filter").addEventListener("submit", (event) => event.preventDefault());
  $("state").addEventListener("change", again);
  $("order").addEventListener("change", again);
  $("pool").addEventListener("change", () => {
    view.pool = Number($("pool").value);
    showSummary();
    loadSamples().catch(() => {});
    again();
  });
  for (const [id, step] of [["first", -Infinity], ["previous", -PAGE_ROWS], ["next", PAGE_ROWS]]) {
    $(id).addEventListener("click", () => {
      view.offset = Math.max(0, view.offset + step);
      reload();
    });
  }
}

makeTabs();
makeControls();
choose(tabs.find((tab) => `#${tab.id}` === location.hash) ?? tabs[0]);
listen();
window.addEventListener("resize", () => {
  showCounts();
  if (view.tab.id === "timeline") showLanes();
});
setInterval(() => {
  for (const time of document.querySelectorAll("time[data-ms]")) time.textContent = durationText(now() - Number(time.dataset.ms));
}, 1000);
setInterval(showCounts, 5000);
