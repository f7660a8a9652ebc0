// What the page knows, and what it shows. SPDX-License-Identifier: Apache-2.0
import {durationText} from "./text.js";

export const model = {pools: [], locks: 0, services: 0, sequence: 0, offset_ms: 0, root: "", started_ms: 0,
                      trouble: null, connected: false};
export const view = {pool: 0, tab: "items", offset: 0, owner: ""};

// The time that is shown. `span` 0 is all there is; `end` null is now, and follows it; `moment` null is now, too.
export const time = {span: 300000, end: null, moment: null};
export const RANGES = [{id: "1m", title: "1 min", span: 60000}, {id: "5m", title: "5 min", span: 300000},
                       {id: "1h", title: "1 h", span: 3600000}, {id: "all", title: "all", span: 0}];
export const SPAN_MIN = 1000, LIFE_MIN = 15000;

export const now = () => Date.now() + model.offset_ms;
export const pool = () => model.pools[view.pool];

// The word for a pool's state, as divvy serve tells it.
export function stateOf(p) {
  if (model.trouble || p.trouble) return "trouble";
  return p.state ?? (!p.read ? "reading" : !p.found ? "absent" : p.unowned ? "unowned" : p.moving ? "moving" : "well");
}

// From when until when is shown. What follows now does not begin before divvy serve did, but for LIFE_MIN.
export function shown() {
  const to = time.end ?? now(), life = Math.max(LIFE_MIN, to - model.started_ms);
  const span = time.span && time.end !== null ? time.span : Math.min(time.span || life, life);
  return {from: to - span, to};
}

// ---- the address ----

// Writes into the address what is shown, so that it can be sent to somebody else.
export function writeAddress() {
  const range = RANGES.find((r) => r.span === time.span)?.id ?? String(Math.round(time.span));
  const parts = [view.tab];
  if (model.pools.length > 1 && pool()) parts.push(`pool=${encodeURIComponent(pool().path)}`);
  if (view.owner) parts.push(`owner=${encodeURIComponent(view.owner)}`);
  if (range !== "5m") parts.push(`range=${range}`);
  if (time.end !== null) parts.push(`to=${Math.round(time.end)}`);
  if (time.moment !== null) parts.push(`at=${Math.round(time.moment)}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

function momentIn(told) {
  const ms = Number(told);
  return told !== null && ms > 0 && Number.isSafeInteger(ms) && ms < 8e15 ? ms : null;
}

// Reads the address; returns the tab and the path of the pool that it names.
export function readAddress() {
  const [tab, ...rest] = location.hash.slice(1).split("&");
  const told = new URLSearchParams(rest.join("&"));
  const range = told.get("range") ?? "5m", span = Number(range);
  time.span = RANGES.find((r) => r.id === range)?.span ?? (span >= SPAN_MIN && span < 8e15 ? span : 300000);
  view.owner = (told.get("owner") ?? "").slice(0, 1000);
  time.end = momentIn(told.get("to"));
  time.moment = momentIn(told.get("at"));
  if (time.moment !== null && time.end === null) time.end = time.moment;
  return {tab, path: told.get("pool")};
}

// ---- asking ----

// Asks divvy serve. Throws an error whose message says why there is no answer.
export async function ask(path, question = {}) {
  const asked = Object.entries(question).filter(([, value]) => value !== "" && value !== undefined);
  const query = new URLSearchParams(asked);
  const answer = await fetch(query.size ? `${path}?${query}` : path);
  if (answer.ok) return answer.json();
  const why = (await answer.text()).trim();
  const error = new Error(why.slice(0, 300) || `${path} answered ${answer.status}`);
  error.status = answer.status;
  throw error;
}

// Returns a function that calls `action` at most once in `pause` ms, not while another call of it is under way, and not
// while nobody sees the page: then it is called when somebody does.
export function paced(action, pause) {
  let timer = null, running = false, wanted = false, last = -Infinity;
  const start = async () => {
    timer = null;
    if (running || document.hidden) {
      wanted = true;
      return;
    }
    [running, wanted, last] = [true, false, performance.now()];
    try {
      await action();
    } finally {
      running = false;
      if (wanted) soon();
    }
  };
  const soon = () => {
    timer ??= setTimeout(start, Math.max(0, last + pause - performance.now()));
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && wanted) soon();
  });
  return soon;
}

export const ageText = (ms) => durationText(now() - ms);
