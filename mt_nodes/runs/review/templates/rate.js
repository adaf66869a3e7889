// SPDX-License-Identifier: Apache-2.0
"use strict";
// Shows cases one by one and takes ratings. A server, where there is one, gives cases and keeps ratings; else the page
// holds the cases, and the ratings until they are downloaded.
const given = JSON.parse(document.getElementById("given").textContent);
const $ = (id) => document.getElementById(id);
const made = [];
let rater = "", left = [], shown = "", unsaved = false;

// An order of each rater's own, the same whenever the name is: what comes early is rated otherwise than what comes late.
function inOrder(ids, name) {
  let state = 2166136261;
  for (const letter of `${given.review}/${name}`) state = Math.imul(state ^ letter.codePointAt(0), 16777619) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const order = [...ids];
  for (let at = order.length - 1; at > 0; at -= 1) {
    const other = next() % (at + 1);
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}

async function asked(path, options) {
  const answer = await fetch(path, options).catch(() => {
    throw new Error("the server does not respond. Your saved ratings are kept: when it runs again, open its new address and enter the same name.");
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || answer.statusText);
  return body;
}

const caseOf = (id) => (given.cases ? given.cases[id] : asked(`case/${id}`));
const ratedBy = (name) =>
  given.cases ? made.filter((r) => r.rater === name).map((r) => r.case) : asked(`rated?${new URLSearchParams({ rater: name })}`);

async function keep(rating) {
  if (given.cases) {
    made.push(rating);
    unsaved = true;
    return;
  }
  await asked("ratings", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(rating) });
}

function element(name, text, more = {}) {
  const one = Object.assign(document.createElement(name), more);
  if (text) one.textContent = text;
  return one;
}

function picture(uri, title, name) {
  const figure = element("figure");
  figure.append(element("img", "", { src: uri, alt: `${title}, ${name}` }), element("figcaption", `${title}, ${name}`));
  return figure;
}

function list(lines) {
  const all = element("ul");
  all.append(...(lines.length ? lines : ["no output"]).map((line) => element("li", line)));
  return all;
}

function show(told) {
  $("because").textContent = told.because;
  $("pictures").replaceChildren(
    ...told.pictures.flatMap((p) => [picture(p.before, "source", p.name), picture(p.after, "follow-up", p.name)])
  );
  $("before").replaceChildren(list(told.answers[0]));
  $("after").replaceChildren(list(told.answers[1]));
}

async function next() {
  if (!left.length) {
    $("case").hidden = true;
    $("done").hidden = false;
    $("download").hidden = !given.cases;
    $("count").textContent = `All ${given.ids.length} cases are rated.`;
    shown = "";
    return;
  }
  const id = left[0];
  show(await caseOf(id));
  $("form").reset();
  $("count").textContent = `Case ${given.ids.length - left.length + 1} of ${given.ids.length}`;
  $("case").hidden = false;
  $("case").dataset.case = shown = id;
  $("count").focus();
}

async function trying(what) {
  $("trouble").textContent = "";
  try {
    await what();
  } catch (error) {
    $("trouble").textContent = `Not done: ${error.message}`;
  }
}

$("who").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    rater = $("rater").value.trim();
    const rated = new Set(await ratedBy(rater));
    left = inOrder(given.ids, rater).filter((id) => !rated.has(id));
    await next();
    $("who").hidden = true;
    $("download").hidden = !given.cases;
  });
});

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    const told = new FormData($("form"));
    const realistic = Number(told.get("realistic")) || null;
    const wrong = told.get("wrong") === "unknown" ? null : told.get("wrong");
    await keep({ case: shown, rater, realistic, wrong, comment: told.get("comment") });
    left.shift();
    await next();
  });
});

$("download").addEventListener("click", () => {
  const text = JSON.stringify({ schema: 1, review: given.review, ratings: made }, null, 1);
  const link = element("a", "", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: `ratings_${rater}.json` });
  link.click();
  unsaved = false;
});

addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});
