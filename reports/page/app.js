// Tables, charts and the list of episodes. Text of agents reaches the page as text nodes only.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const [RUN, ID, TASK, ATTEMPT, OUTCOME, SCORE, REASON, CALLS, TOOLS, PROMPT, COMPLETION, SECONDS, SHARD] =
  Array.from({ length: 13 }, (_, n) => n);

// ---------- theme

const root = document.documentElement;

function setTheme(theme) {
  root.dataset.theme = theme;
  drawn.forEach(draw);
}

document.getElementById("theme").addEventListener("click", () => {
  const theme = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("anyharness-theme", theme); } catch { /* storage may be off */ }
  setTheme(theme);
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  let chosen = null;
  try { chosen = localStorage.getItem("anyharness-theme"); } catch { /* storage may be off */ }
  if (!chosen) setTheme(event.matches ? "dark" : "light");
});

// ---------- charts

const drawn = new Set();

/** A copy of a figure with each var(--name) replaced by its value in the theme. */
function coloured(value, style) {
  if (typeof value === "string" && value.startsWith("var(--")) {
    return style.getPropertyValue(value.slice(4, -1)).trim();
  }
  if (Array.isArray(value)) return value.map((item) => coloured(item, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
  }
  return value;
}

function merged(base, over) {
  const out = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const both = value && out[key] && typeof value === "object" && !Array.isArray(value);
    out[key] = both ? merged(out[key], value) : value;
  }
  return out;
}

const AXIS = {
  gridcolor: "var(--line)", linecolor: "var(--line)", zerolinecolor: "var(--line)",
  tickfont: { color: "var(--soft)" }, automargin: true, fixedrange: true,
};
const LAYOUT = {
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: { family: "system-ui, sans-serif", size: 13, color: "var(--text)" },
  margin: { l: 8, r: 16, t: 8, b: 40 },
  xaxis: AXIS, yaxis: AXIS,
  legend: { orientation: "h", y: -0.16, yanchor: "top", x: 0 },
  hoverlabel: { bgcolor: "var(--raised)", bordercolor: "var(--line)", font: { color: "var(--text)" } },
};

function draw(place) {
  const figure = data.figures[place.dataset.figure];
  const style = getComputedStyle(root);
  const layout = coloured(merged(LAYOUT, figure.layout), style);
  Plotly.react(place, coloured(figure.data, style), layout, { displayModeBar: false, responsive: true });
  if (!drawn.has(place)) {
    drawn.add(place);
    place.on("plotly_click", ({ points }) => {
      const index = points[0].customdata;
      if (Number.isInteger(index)) location.hash = `episode/${index}`;
    });
  }
}

addEventListener("load", () => {
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "600px" });
  document.querySelectorAll("[data-figure]").forEach((place) => watcher.observe(place));
});

// ---------- tables

const collator = new Intl.Collator("en", { numeric: true });

/** Numbers before texts, absent values last, whatever the direction. */
function compare(a, b, direction) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const numbers = [Number(a), Number(b)];
  const order = numbers.some(Number.isNaN) ? collator.compare(a, b) : numbers[0] - numbers[1];
  return order * direction;
}

/** Turns the direction of a heading round, and says so to screen readers. */
function turn(heading) {
  const next = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", next);
  return next === "ascending" ? 1 : -1;
}

function sortable(table) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const direction = turn(heading);
      const key = (row) => row.cells[column].dataset.v ?? "";
      body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b), direction)));
    });
  });
}

function searchable(input) {
  const rows = [...document.getElementById(input.dataset.search).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, n) => { row.hidden = !words.every((word) => texts[n].includes(word)); });
  });
}

document.querySelectorAll("table.sortable").forEach(sortable);
document.querySelectorAll("input[data-search]").forEach(searchable);

// ---------- episodes

const PAGE = 100;
const filters = document.getElementById("filters");
const list = document.getElementById("list");
const COLUMNS = [
  ["Episode", (e) => e[ID], "text"],
  ["Run", (e) => data.runs[e[RUN]].label, "text"],
  ["Outcome", (e) => e[OUTCOME], "text"],
  ["Score", (e) => e[SCORE], "number"],
  ["Reason", (e) => e[REASON], "text"],
  ["Calls", (e) => e[CALLS], "number"],
  ["Tool calls", (e) => e[TOOLS], "number"],
  ["Tokens", (e) => e[PROMPT] + e[COMPLETION], "number"],
  ["Seconds", (e) => e[SECONDS], "number"],
];
const haystack = data.episodes.map((e) => `${e[ID]} ${e[REASON]} ${data.runs[e[RUN]].label} ${e[OUTCOME]}`.toLowerCase());
let order = data.episodes.map((_, index) => index);
let matching = order;
let shown = PAGE;

function options(name, values) {
  const select = filters.elements[name];
  for (const value of [...new Set(values)].sort(collator.compare)) select.append(new Option(value, value));
  select.closest("label").hidden = select.options.length < 3;
}

function wanted(index) {
  const e = data.episodes[index];
  const { run, harness, outcome, task, text } = filters.elements;
  return (!run.value || data.runs[e[RUN]].label === run.value)
    && (!harness.value || data.runs[e[RUN]].harness === harness.value)
    && (!outcome.value || e[OUTCOME] === outcome.value)
    && (!task.value || e[TASK] === task.value)
    && text.value.toLowerCase().split(/\s+/).every((word) => haystack[index].includes(word));
}

function episodeRow(index) {
  const e = data.episodes[index];
  return h("tr", {},
    h("th", { scope: "row", class: "episode" }, h("a", { href: `#episode/${index}` }, e[ID])),
    h("td", { class: "short" }, data.runs[e[RUN]].label),
    h("td", {}, badge(e[OUTCOME])),
    h("td", { class: "n" }, e[SCORE] === null ? "–" : e[SCORE].toFixed(2)),
    h("td", { class: "reason", dir: "auto" }, h("span", {}, e[REASON])),
    ...COLUMNS.slice(5, 8).map(([, value]) => h("td", { class: "n" }, value(e).toLocaleString("en"))),
    h("td", { class: "n" }, e[SECONDS].toFixed(1)));
}

function refresh() {
  matching = order.filter(wanted);
  const count = matching.length === data.episodes.length ? "" : ` of ${data.episodes.length.toLocaleString("en")}`;
  document.getElementById("count").textContent = `${matching.length.toLocaleString("en")}${count} episodes`;
  list.tBodies[0].replaceChildren(...matching.slice(0, shown).map(episodeRow));
  document.getElementById("more").hidden = matching.length <= shown;
}

COLUMNS.forEach(([label, value, kind]) => {
  const button = h("button", { type: "button" }, label);
  const heading = h("th", { scope: "col", class: kind === "number" ? "n" : "" }, button);
  button.addEventListener("click", () => {
    const direction = turn(heading);
    const keys = data.episodes.map((e) => String(value(e) ?? ""));
    order = order.toSorted((a, b) => compare(keys[a], keys[b], direction));
    refresh();
  });
  list.tHead.rows[0].append(heading);
});

options("run", data.runs.map((run) => run.label));
options("harness", data.runs.map((run) => run.harness));
options("outcome", data.episodes.map((e) => e[OUTCOME]));
options("task", data.episodes.map((e) => e[TASK]));
filters.addEventListener("input", () => { shown = PAGE; refresh(); });
filters.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("more").addEventListener("click", () => { shown += PAGE; refresh(); });
refresh();

addEventListener("hashchange", route);
route();
