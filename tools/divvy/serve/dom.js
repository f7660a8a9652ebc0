// Elements of the page. Names come from ZooKeeper, where anybody may have put anything: they are set as text, never as
// HTML. SPDX-License-Identifier: Apache-2.0
import {ageText} from "./model.js";
import {middle} from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const narrow = matchMedia("(max-width: 640px)");

export const $ = (id) => document.getElementById(id);
export const isNarrow = () => narrow.matches;
export const onNarrow = (action) => narrow.addEventListener("change", action);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Makes an element of a drawing.
export function shape(name, attributes = {}, text, title) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (title !== undefined) made.append(shape("title", {}, title));
  return made;
}

// ---- icons ----

const circle = "M8 1a7 7 0 1 1 0 14a7 7 0 0 1 0-14z";
const icons = {
  bad: [circle, "M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6"],
  warn: ["M8 1.2l7.2 13.3H.8z", "M8 5.6v4.2M8 11.6v1"],
  moving: [circle, "M4 6.4h7M9 4.2l2.2 2.2M12 9.8H5M7 12L4.8 9.8"],
  note: [circle, "M8 7v4.6M8 4.2v1.2"],
  good: [circle, "M4.6 8.2l2.4 2.4l4.4-4.8"],
  wait: [circle, "M8 4v4.2l2.8 1.8"],
};

// A sign beside a word that says the same: its form differs, not its colour alone.
export function icon(kind) {
  const svg = shape("svg", {class: `icon ${kind}`, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false"});
  const [plate, sign] = icons[kind] ?? icons.note;
  svg.append(shape("path", {class: "plate", d: plate}), shape("path", {class: "sign", d: sign}));
  return svg;
}

// ---- texts ----

export const quiet = (text) => element("span", {class: "quiet"}, text);
export const nobody = () => quiet("nobody");

export function button(text, action, kind = "", attributes = {}) {
  const made = element("button", {type: "button", ...(kind ? {class: kind} : {}), ...attributes}, text);
  made.addEventListener("click", action);
  return made;
}

const lengthMost = () => narrow.matches ? 26 : 56;

// A name that opens something; shortened in the middle where it is long.
export function link(text, action, most = lengthMost()) {
  const short = middle(text, most);
  return button(short, action, "link", short === text ? {} : {title: text, "aria-label": text});
}

const wholeNames = new Set();

// A name as text. A long one is shortened in the middle, and is shown whole wherever it stands once it was pressed.
export function nameOf(text, most = lengthMost()) {
  const short = middle(text, most);
  if (short === text) return document.createTextNode(text);
  const made = button("", () => {
    if (!wholeNames.delete(text)) wholeNames.add(text);
    show();
  }, "name", {title: text, "aria-label": text});
  const show = () => {
    made.textContent = wholeNames.has(text) ? text : short;
    made.setAttribute("aria-expanded", String(wholeNames.has(text)));
  };
  show();
  return made;
}

export function age(ms) {
  if (!ms) return quiet("–");
  const made = element("time", {datetime: new Date(ms).toISOString(), title: new Date(ms).toString()}, ageText(ms));
  made.dataset.ms = ms;
  return made;
}

// Lets all ages on the page grow.
export function growAges() {
  for (const one of document.querySelectorAll("time[data-ms]")) {
    const text = ageText(Number(one.dataset.ms));
    if (one.textContent !== text) one.textContent = text;
  }
}

const kinds = {owned: "good", settled: "good", healthy: "good", live: "good", well: "good",
               moving: "moving", releasing: "moving", preparing: "moving", taking: "moving", leaving: "moving",
               kept: "warn", paused: "warn", absent: "warn", drained: "warn", away: "warn",
               stranger: "bad", unowned: "bad", stale: "bad", gone: "bad", fenced: "bad", trouble: "bad",
               unreadable: "bad", reading: "wait", waiting: "wait"};
export const kindOf = (word) => kinds[word] ?? "note";

export function badge(word) {
  return element("span", {class: `badge ${kindOf(word)}`}, icon(kindOf(word)), word);
}

// ---- commands to copy ----

function select(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

// A command, and a button that copies it; where the browser does not let it, the text is selected.
export function copyable(command) {
  const code = element("code", {tabindex: "-1"}, command);
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(command);
      copy.textContent = "Copied";
    } catch {
      select(code);
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  }, "copy", {"aria-label": `Copy: ${command}`});
  return element("span", {class: "command"}, code, copy);
}

// Puts other children into a part of the page, and the focus back where it was.
export function refill(target, ...children) {
  const focused = target.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && (focused.getAttribute("aria-label") ?? focused.textContent);
  target.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
  if (!focused) return;
  const again = [...target.querySelectorAll("button, summary, a")]
    .find((one) => (one.getAttribute("aria-label") ?? one.textContent) === name);
  again?.focus({preventScroll: true});
}

// Says that a part of the page is not known, and why.
export function unknown(what, error) {
  return element("p", {class: "unknown"}, icon("wait"), element("span", {}, `${what} not known: ${error.message}`));
}
