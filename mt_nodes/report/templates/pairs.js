/* SPDX-License-Identifier: Apache-2.0 */
/* All pairs of the run: filter, search, sort, one page at a time; each opens by its own link. */
(async () => {
  const PAGE = 50, ANY = "";
  const store = document.getElementById("pair-data"), one = (name) => document.querySelector(name);
  if (!store || typeof DecompressionStream === "undefined") return;
  const told = await unpacked(store.content.textContent);
  const all = Uint32Array.from({ length: told.count }, (_, i) => i);
  const text = (name, i) => told.texts[name][told[name][i]];
  const number = (value, unit = "") => (Number.isFinite(value) ? `${+value.toPrecision(6)}${unit && ` ${unit}`}` : "");
  const idOf = (i) => `${told.episode[i]}/${told.bundle[i] < 0 ? "-" : told.bundle[i]}/${text("relation", i)}/${text("draw", i)}`;
  const linkOf = (i) => `#pair=${encodeURI(idOf(i))}`;
  const whereOf = (i) => `episode ${told.episode[i]}${told.bundle[i] < 0 ? "" : `, frame ${told.bundle[i]}`}`;
  const classesOf = told.texts.object_class.map((joined) => (joined ? joined.split(";") : ["unknown"]));
  let known = null;
  const ids = () => (known ??= Array.from(all, (i) => idOf(i).toLowerCase()));

  /* --- filters, order, page */

  const wanted = { words: "", judged_for: ANY, arm: ANY, outcome: ANY, episode: ANY, object_class: ANY, near: NaN, far: NaN };
  let order = { by: "worst", down: false }, orders = new Map(), found = all, page = 0, opened = -1, close = () => {};

  function filters() {
    const tests = [];
    const number_of = (name, value) => told.texts[name].indexOf(value);
    for (const name of ["judged_for", "outcome"]) {
      const code = number_of(name, wanted[name]);
      if (wanted[name] !== ANY) tests.push((i) => told[name][i] === code);
    }
    if (wanted.arm !== ANY) tests.push((i) => told.arm[i] === Number(wanted.arm));
    if (wanted.episode !== ANY) tests.push((i) => told.episode[i] === Number(wanted.episode));
    if (wanted.object_class !== ANY) {
      const has = classesOf.map((classes) => classes.includes(wanted.object_class));
      tests.push((i) => has[told.object_class[i]]);
    }
    if (!Number.isNaN(wanted.near)) tests.push((i) => told.range_m[i] >= wanted.near);
    if (!Number.isNaN(wanted.far)) tests.push((i) => told.range_m[i] <= wanted.far);
    for (const word of wanted.words.toLowerCase().split(/\s+/).filter(Boolean)) {
      const said = told.texts.reason.map((reason) => reason.toLowerCase().includes(word)), named = ids();
      tests.push((i) => said[told.reason[i]] || named[i].includes(word));
    }
    return tests;
  }

  /* Rows in the order of a column; rows without a value come last either way. */
  function sorted({ by, down }) {
    const key = `${by} ${down}`;
    if (orders.has(key)) return orders.get(key);
    let values = told[by];
    if (by in told.texts) {
      const place = new Map([...told.texts[by]].sort().map((value, at) => [value, at])), ranks = told.texts[by].map((value) => place.get(value));
      values = Float64Array.from(values, (code) => ranks[code]);
    } else if (by === "worst") {
      values = Float64Array.from(values, (value) => (value < 0 ? NaN : value));
    } else if (by === "pair") {
      values = all;
    }
    const side = down ? -1 : 1;
    const made = all.slice().sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return side * (x - y) || a - b;
    });
    orders.set(key, made);
    return made;
  }

  function look() {
    const tests = filters();
    found = sorted(order).filter((i) => tests.every((test) => test(i)));
    page = 0;
    show();
  }

  /* --- the table */

  const COLUMNS = [
    ["pair", "pair", (i) => made("a", { href: linkOf(i) }, ...breakable(idOf(i)))],
    ["outcome", "outcome", (i) => made("span", { class: `outcome ${text("outcome", i)}` }, text("outcome", i))],
    ["lost", "lost", (i) => String(told.lost[i])],
    ["gained", "gained", (i) => String(told.gained[i])],
    ["measured", "measured", (i) => number(told.measured[i], text("unit", i))],
    ["margin", "margin", (i) => number(told.margin[i])],
    ["object_class", "class", (i) => text("object_class", i).replaceAll(";", ", ")],
    ["range_m", "range (m)", (i) => number(told.range_m[i])],
    ["reason", "reason", (i) => text("reason", i)],
  ];
  /* Drives lose and gain nothing, and not every check says whom it is about. */
  const driven = told.bundle.every((bundle) => bundle < 0);
  const empty = { lost: driven, gained: driven, object_class: told.texts.object_class.every((name) => !name), range_m: !told.range_m.some(Number.isFinite) };
  const columns = COLUMNS.filter(([by]) => !empty[by]);
  const breakable = (id) => id.split("/").flatMap((part, at) => (at ? ["/", document.createElement("wbr"), part] : [part]));
  const body = made("tbody"), count = made("p", { class: "count", "aria-live": "polite" }), heads = made("tr");
  for (const [by, name] of columns) {
    heads.append(made("th", { scope: "col", "data-by": by }, made("button", {
      type: "button",
      click: () => { order = { by, down: order.by === by && !order.down }; look(); },
    }, name)));
  }
  const turn = (name, label, to) => made("button", { type: "button", class: name, "aria-label": label, click: () => { page = to(); show(); } }, { first: "« first", back: "‹ previous", on: "next ›", last: "last »" }[name]);
  const pages = () => Math.max(1, Math.ceil(found.length / PAGE)), at = made("span");
  const pager = made("nav", { class: "pager", "aria-label": "pages of pairs" },
    turn("first", "first page", () => 0), turn("back", "previous page", () => page - 1), at, turn("on", "next page", () => page + 1), turn("last", "last page", () => pages() - 1));

  function show() {
    const grouped = (value) => value.toLocaleString("en");
    page = Math.max(0, Math.min(pages() - 1, page));
    body.replaceChildren(...Array.from(found.slice(page * PAGE, (page + 1) * PAGE), (i) => made("tr", { "aria-current": i === opened },
      ...columns.map(([by, name, cell]) => made("td", { "data-label": by === "pair" ? null : name, class: by }, cell(i))))));
    count.textContent = `${grouped(found.length)} of ${grouped(told.count)} pair${told.count === 1 ? "" : "s"}`;
    at.textContent = `page ${grouped(page + 1)} of ${grouped(pages())}`;
    for (const [name, ends] of [["first", page === 0], ["back", page === 0], ["on", page + 1 >= pages()], ["last", page + 1 >= pages()]]) pager.querySelector(`.${name}`).disabled = ends;
    for (const head of heads.children) {
      if (head.dataset.by === order.by) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  /* --- the filters */

  function choice(name, label, values) {
    const select = made("select", { name, change: () => { wanted[name] = select.value; look(); } }, made("option", { value: ANY }, "all"));
    for (const [value, words] of values) select.append(made("option", { value }, words));
    return made("label", {}, label, select);
  }
  const alike = (values) => values.map((value) => [value, value]);
  const field = (name, label, more, read) => made("label", { class: name }, label, made("input", { name, ...more, input: (event) => { wanted[name] = read(event.target.value); look(); } }));
  const length = (value) => (value === "" ? NaN : Number(value));
  const episodes = [...new Set(told.episode)], classes = [...new Set(classesOf.flat())].sort();
  const form = made("form", { role: "search", "aria-label": "filter pairs", submit: (event) => event.preventDefault() },
    field("words", "search", { type: "search", placeholder: "pair or reason" }, (value) => value),
    choice("judged_for", "relation", alike([...told.texts.judged_for].sort())),
    choice("arm", "arm", told.arms.map((arm, i) => [i, arm])),
    choice("outcome", "outcome", alike([...told.texts.outcome].sort())),
    choice("object_class", "class", alike(classes)),
    field("near", "range from (m)", { type: "number", min: 0, step: "any" }, length),
    field("far", "to (m)", { type: "number", min: 0, step: "any" }, length),
    choice("episode", "episode", episodes.map((episode) => [episode, `${episode}`])),
    made("button", { type: "reset" }, "all pairs"));
  form.addEventListener("reset", () => {
    Object.assign(wanted, { words: "", judged_for: ANY, arm: ANY, outcome: ANY, episode: ANY, object_class: ANY, near: NaN, far: NaN });
    order = { by: "worst", down: false };
    look();
  });

  /* --- one pair */

  const panel = one("#opened");

  const typed = (prefix, i) => { const id = idOf(i); return `${prefix} ${/^[\w@%+=:,.\/-]+$/.test(id) ? id : `'${id.replaceAll("'", `'"'"'`)}'`}`; };
  const command = (words) => made("p", {}, made("code", { class: "command" }, words), " ", copying(words, "copy"));
  function facts(i) {
    const unit = text("unit", i), list = made("dl", { class: "verdict" });
    const rows = [["measured", number(told.measured[i], unit)], ["bound", number(told.bound[i], unit)], ["margin", number(told.margin[i], unit)],
      ["lost / gained", driven ? "" : `${told.lost[i]} / ${told.gained[i]}`], ["class", text("object_class", i).replaceAll(";", ", ")], ["range", number(told.range_m[i], "m")],
      ["commanded", told.source && Number.isFinite(told.source[i]) ? `${number(told.source[i])} expected, ${number(told.followup[i]) || "none"} in the follow-up` : ""]];
    for (const [name, value] of rows) if (value) list.append(made("div", {}, made("dt", {}, name), made("dd", {}, value)));
    return list;
  }
  const step = (by, label) => made("button", { type: "button", class: by < 0 ? "before" : "after", click: () => { const to = found[found.indexOf(opened) + by]; if (to !== undefined) location.hash = linkOf(to); } }, label);

  function evidence(i) {
    if (!told.evidence[i]) return [];
    const name = `evidence/${idOf(i).replaceAll("/", "_")}.mcap`;
    return [made("p", {}, "Both inputs and both outputs, for Foxglove: ", made("a", { href: encodeURI(name), download: true }, name)), command(`ros2 bag play ${name}`)];
  }

  /* The relation in the neighbouring frames, with the commands where the check has them. */
  function course(box, i) {
    const same = ["judged_for", "arm", "episode", "relation", "draw"];
    const rows = all.filter((k) => same.every((name) => told[name][k] === told[name][i])).sort((a, b) => told.bundle[a] - told.bundle[b]);
    if (rows.length < 2) return;
    const x = Array.from(rows, (k) => told.bundle[k]), of = (name) => Array.from(rows, (k) => told[name][k]), violated = [...rows.keys()].filter((k) => told.worst[rows[k]] >= 0);
    const shared = { x, xName: "frame", marks: violated, picked: told.bundle[i] }, unit = text("unit", i);
    if (told.source) chart(box, { ...shared, title: `commanded (${unit})`, lines: [{ kind: "source", name: "source, as expected", values: of("source") }, { kind: "followup", name: "follow-up", values: of("followup") }] });
    chart(box, { ...shared, title: `measured (${unit})`, lines: [{ kind: "measured", name: "measured", values: of("measured") }, { kind: "bound", name: "bound", values: of("bound") }] });
  }

  async function views(box, i) {
    const packed = [...document.querySelectorAll("template[data-view]")].find((each) => each.dataset.view === idOf(i));
    const drive = [...document.querySelectorAll(".episode")].find((each) => each.dataset.pair === idOf(i));
    if (drive) box.append(made("button", { type: "button", click: () => { drive.scrollIntoView(); drive.focus({ preventScroll: true }); } }, "show the drive"));
    if (!packed && told.evidence[i]) box.append(made("p", { class: "note" }, "To show inputs and outputs of both arms here, type: "), command(typed(told.picture, i)));
    if (!packed) return () => {};
    const data = await unpacked(packed.content.textContent);
    if (opened !== i) return () => {};
    if (data.outputs) seriesView(box, data);
    if (data.source_image) cameraView(box, data);
    return data.kept ? cloudView(box, data) : () => {};
  }

  async function open(i) {
    close();
    close = () => {};
    opened = i;
    const arm = told.arms[told.arm[i]], mark = text("outcome", i), seen = made("div", { class: "views" }), around = made("div", { class: "around" });
    const head = made("h3", { tabindex: -1 }, `${text("relation", i)}, ${whereOf(i)}`, arm === "relation" ? "" : ` (${arm} of ${text("judged_for", i)})`);
    panel.hidden = false;
    panel.replaceChildren(made("header", {}, made("span", { class: `outcome ${mark}` }, mark), head,
      made("span", { class: "steps" }, step(-1, "‹ previous"), step(1, "next ›"), made("button", { type: "button", class: "close", click: shut }, "close"))),
      made("p", {}, text("reason", i)), facts(i), command(typed(told.reproduce, i)), ...evidence(i), seen, around,
      made("p", { class: "note" }, "Link to this pair: ", made("a", { href: linkOf(i) }, linkOf(i)), " ", copying(new URL(linkOf(i), location.href).href, "copy")));
    show();
    panel.scrollIntoView();
    head.focus({ preventScroll: true });
    course(around, i);
    const done = await views(seen, i);
    if (opened === i) { close = done; panel.dataset.ready = idOf(i); } else done();
  }

  function shut() {
    close();
    close = () => {};
    opened = -1;
    panel.hidden = true;
    delete panel.dataset.ready;
    history.replaceState(null, "", location.pathname + location.search);
    show();
    one("#pairs").scrollIntoView();
  }

  function follow() {
    if (!location.hash.startsWith("#pair=")) return;
    let id = location.hash.slice(6);
    try { id = decodeURIComponent(id); } catch { /* Use it unchanged. */ }
    const i = ids().indexOf(id.toLowerCase());
    if (i >= 0) { open(i); return; }
    panel.hidden = false;
    panel.replaceChildren(made("p", {}, `This run has no pair '${id}'.`));
  }

  /* --- replaces what is shown without JavaScript */

  one("#explorer").append(form, count, made("div", { class: "scroll-x" }, made("table", { class: "stack all-pairs" }, made("thead", {}, heads), body)), pager);
  one("#explorer").hidden = false;
  document.querySelectorAll("[data-no-script]").forEach((part) => { part.hidden = true; });
  document.querySelectorAll("[data-pair][id]").forEach((part) => {
    part.removeAttribute("id");
    if (!part.matches(".violation")) return;
    part.querySelector("h3").append(" ", made("a", { href: `#pair=${encodeURI(part.dataset.pair)}` }, "cloud" in part.dataset ? "open in 3D" : "open"));
  });
  addEventListener("hashchange", follow);
  look();
  follow();
  document.documentElement.dataset.pairs = "ready";
})();
