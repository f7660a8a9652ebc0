// The state of the pool at the top, and its figures. SPDX-License-Identifier: Apache-2.0
import {$, age, element, icon, refill} from "./dom.js";
import {model, now, pool, stateOf, time} from "./model.js";
import {count, number} from "./text.js";

const move = (p) => p.moving === 1 ? "moves" : "move";
const alsoMove = (p) => p.moving ? `, ${number(p.moving)} ${move(p)}` : "";

// What is told of each state: a word, a kind of icon, and a sentence.
const states = {
  trouble: (p) => ["Not read", "bad", `${model.trouble ? "ZooKeeper" : p.path} could not be read: ` +
                   `${model.trouble ?? p.trouble ?? "it failed"}. What is shown is of before.`],
  reading: (p) => ["Reading", "wait", `${p.path} is being read for the first time.`],
  absent: (p) => ["No pool", "warn", `There is no pool at ${p.path} yet.`],
  unowned: (p) => ["Unowned", "bad", `${number(p.unowned)} of ${count(p.items, "item")} ` +
                   `${p.unowned === 1 ? "has" : "have"} no owner${alsoMove(p)}.`],
  moving: (p) => ["Moving", "moving", `${count(p.moving, "item")} ${move(p)}; each has an owner.`],
  well: (p) => ["Well", "good", p.items ? `Each of ${count(p.items, "item")} has its owner.`
                                        : "The pool has no items."],
};

// How many errors and warnings there are, in words.
function wrongText({errors, warnings}) {
  const parts = [errors ? count(errors, "error") : "", warnings ? count(warnings, "warning") : ""].filter(Boolean);
  return parts.length ? ` ${parts.join(", ")}.` : "";
}

// The findings make a word of it that is worse than by the counts alone.
function judged(p, found) {
  const state = stateOf(p), [word, kind, sentence] = (states[state] ?? states.well)(p);
  if (!found) return [state, word, kind, sentence];
  const told = sentence + wrongText(found);
  if ((state === "well" || state === "moving") && found.errors) return ["errors", "Trouble", "bad", told];
  if (state === "well" && found.warnings) return ["warnings", "Attention", "warn", told];
  return [state, word, kind, told];
}

// Shows the state as a word with an icon and a sentence. `found` are the findings, as far as they are known.
export function showState(found) {
  const p = pool();
  if (!p) return;
  const [state, word, kind, sentence] = judged(p, found);
  const target = $("state");
  if (target.dataset.sentence !== `${state} ${sentence}`) {
    target.className = `state ${kind}`;
    target.dataset.state = state;
    target.dataset.sentence = `${state} ${sentence}`;
    target.replaceChildren(icon(kind), element("strong", {}, word), element("span", {}, sentence));
  }
  const title = state === "well" ? "" : state === "unowned" ? `(${p.unowned} unowned) ` : `(${word.toLowerCase()}) `;
  document.title = `${title}${p.path} – divvy`;
}

function planTile(p) {
  if (p.unusable) return ["Plan", "–", `the plan is ${p.unusable}`, "bad"];
  if (!p.generation) return ["Plan", "–", "none: members deal by names", ""];
  const more = element("span", {}, `${p.reason}${p.in_force ? "" : ", not in force"}`);
  if (p.planned_ms) more.append(", ", age(p.planned_ms));
  return ["Plan", number(p.generation), more, p.in_force ? "" : "warn"];
}

function tilesOf(p) {
  const beside = p.away ? `${number(p.away)} away` : p.strays ? `${number(p.strays)} strays` : "in the party";
  const part = p.items ? `${(100 * p.unowned / p.items).toFixed(1)} % of all` : "";
  const moving = p.strangers ? `${number(p.strangers)} held by strangers` : "on their way";
  return [
    ["Members", number(p.members), beside, p.members ? "" : "bad"],
    ["Items", number(p.items), `${number(p.owned)} owned${p.paused ? `, ${number(p.paused)} paused` : ""}`, ""],
    ["Unowned", number(p.unowned), part, p.unowned ? "bad" : ""],
    ["Moving", number(p.moving), moving, p.moving ? "warn" : ""],
    ["Items for each", p.least === p.most ? number(p.least) : `${number(p.least)} – ${number(p.most)}`,
     `${number(p.waiting)} waiting`, ""],
    planTile(p),
  ];
}

// Of the past the samples know four figures; `sample` is null where nothing is known.
function tilesThen(sample) {
  const part = sample && sample[1] ? `${(100 * sample[2] / sample[1]).toFixed(1)} % of all` : "";
  const figure = (at) => sample ? number(sample[at]) : "–";
  return [["Members", figure(4), "then", ""], ["Items", figure(1), "then", ""],
          ["Unowned", figure(2), part || "then", sample?.[2] ? "bad" : ""],
          ["Moving", figure(3), "then", sample?.[3] ? "warn" : ""]];
}

export function showFigures(sample) {
  const p = pool();
  if (!p) return;
  const tiles = time.moment === null || time.moment > now() ? tilesOf(p) : tilesThen(sample);
  refill($("summary"), ...tiles.map(([name, value, more, kind]) =>
    element("div", kind ? {class: kind} : {}, element("dt", {}, name), element("dd", {}, value),
            element("dd", {}, more))));
}
