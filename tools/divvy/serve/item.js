// The dialog of an item: what explain says of it, and who owned it. SPDX-License-Identifier: Apache-2.0
import {$, age, badge, copyable, element, nameOf, nobody, quiet, unknown} from "./dom.js";
import {drawLanes, isOfItem, spansOf} from "./lanes.js";
import {ask, LIFE_MIN, model, now, pool, view} from "./model.js";
import {durationText, number, operand, quoted} from "./text.js";
import {fillTable} from "./tables.js";

let opened = null;

const fact = (name, ...content) => [element("dt", {}, name), element("dd", {}, ...content)];

function planOf(plan) {
  if (!plan) return [quiet("none")];
  const to = plan.owner ? [": gives it to ", nameOf(plan.owner)] : [": gives it to nobody"];
  return [`${number(plan.generation)}, ${plan.reason}, ${durationText(plan.age_ms)} ago`,
          ...(plan.in_force ? to : [", not in force"])];
}

const strayOf = (place) => place && !place.in_party ? quiet(", not in the party") : "";

function queueOf(queue) {
  if (queue.length < 2) return [];
  const places = queue.slice(1, 21).map((place) =>
    element("li", {}, nameOf(place.member), `, for ${durationText(place.age_ms)}`, strayOf(place)));
  if (queue.length > 21) places.push(element("li", {class: "quiet"}, `and ${number(queue.length - 21)} more`));
  return fact("Waiting", element("ol", {class: "queue"}, ...places));
}

// Sets the sentences of divvy explain, as of now.
function showExplained(told) {
  const sentences = [["Now", told.now], ["Next", told.next]].filter(([, text]) => text);
  $("item-explained").replaceChildren(
    element("p", {class: "explained-state"}, badge(told.state)),
    ...sentences.map(([word, text]) => element("p", {class: "sentence"}, element("strong", {}, word), " ", text)));
  const first = told.queue[0];
  const owner = told.owner ? [nameOf(told.owner), strayOf(first)] : [nobody()];
  const facts = [...fact("Owner", ...owner), ...(told.owner && first ? fact("Token", first.token) : []),
                 ...fact("Plan", ...planOf(told.plan)), ...queueOf(told.queue)];
  $("item-facts").replaceChildren(...facts);
}

// Sets what the table knows, while explain has not answered, or cannot.
function showKnown(row) {
  const since = row.seen ? "So for" : row.owner ? "In the queue for" : "Its directory made";
  $("item-facts").replaceChildren(
    ...fact("State", row.state ? badge(row.state) : quiet("there no longer")),
    ...fact("Owner", row.owner ? nameOf(row.owner) : nobody()),
    ...(row.next ? fact("Goes to", nameOf(row.next)) : []),
    ...(row.since_ms ? fact(since, age(row.since_ms)) : []));
}

async function explain(item) {
  try {
    const told = await ask("/explain", {pool: view.pool, item});
    if (opened === item) showExplained(told);
  } catch (error) {
    if (opened === item) $("item-explained").replaceChildren(unknown("Why it is there is", error));
  }
}

function showEvents(item, events) {
  const from = Math.max(model.started_ms, now() - 86400000), end = now();
  const mine = events.filter(isOfItem);
  const first = mine.at(-1)?.ms;
  const range = {from: Math.min(end - LIFE_MIN, Math.max(from, (first ?? end) - 5000)), to: end};
  const spans = mine.length ? spansOf(mine.toReversed(), range) : [];
  $("item-lane").toggleAttribute("hidden", !spans.length);
  if (spans.length) drawLanes($("item-lane"), [{name: "", spans}], range);
  fillTable($("item-events"), "timeline", `Changes of ${item}`, mine);
  $("item-events").hidden = !mine.length;
  $("item-none").hidden = mine.length > 0;
}

// Opens the dialog of an item.
export async function showItem(item) {
  opened = item;
  const question = {pool: view.pool, exact: item};
  $("item-title").textContent = item;
  $("item-command").replaceChildren(copyable(`divvy explain --path ${quoted(pool().path)} ${operand(item)}`));
  $("item-explained").replaceChildren(element("p", {class: "unknown"}, "being looked at"));
  $("item-facts").replaceChildren();
  if (!$("item").open) $("item").showModal();
  $("close").focus();
  const known = ask("/rows", {table: "items", limit: 1, ...question}).then((told) => {
    if (opened === item && !$("item-facts").children.length) showKnown(told.rows[0] ?? {});
  });
  const events = ask("/rows", {table: "timeline", limit: 200, ...question}).then((told) => {
    if (opened === item) showEvents(item, told.rows);
  });
  await Promise.allSettled([known, events, explain(item)]);
}

export function makeItem() {
  $("item").addEventListener("close", () => {
    if (!$("item").open) opened = null;
  });
  $("item").addEventListener("click", (event) => {
    if (event.target === $("item")) $("item").close();
  });
}
