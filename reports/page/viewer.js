// The viewer: loads an episode from its shard and tells it. All of it is text nodes: nothing is parsed as HTML.
"use strict";

/** An element. Children are text or nodes; null ones are left out. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== "" && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function badge(outcome) {
  return h("span", { class: `badge ${outcome}` }, outcome.replace("_", " "));
}

// ---------- shards

const KEPT = 4; // shards in memory
const shards = new Map();
const waiting = new Map();

/** What a shard's file calls when it is loaded. */
const anyharness = {
  shard(number, episodes, texts) {
    if (shards.size >= KEPT) shards.delete(shards.keys().next().value);
    shards.set(number, { episodes, texts });
    waiting.get(number)?.();
    waiting.delete(number);
  },
};

function load(number) {
  if (shards.has(number)) return Promise.resolve(shards.get(number));
  return new Promise((resolve, reject) => {
    const script = h("script", { src: `episodes/${number}.js` });
    waiting.set(number, () => resolve(shards.get(number)));
    script.onload = () => script.remove();
    script.onerror = () => reject(new Error(`episodes/${number}.js is missing: keep the folder beside this page`));
    document.head.append(script);
  });
}

// ---------- pieces

function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function brief(value, length = 110) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

function block(value, kind = "") {
  return h("pre", { class: kind, tabindex: "0", dir: "auto" }, pretty(value));
}

/** Details that are built when they are first opened. */
function folded(summary, build, open = false) {
  const element = h("details", {}, h("summary", {}, ...[summary].flat()));
  element.addEventListener("toggle", () => {
    if (element.open && element.children.length === 1) element.append(...[build()].flat());
  });
  element.open = open;
  return element;
}

function part(title, ...children) {
  return h("section", { class: "part" }, h("h3", {}, title), ...children);
}

function seconds(value) {
  return value < 10 ? `${value.toFixed(2)} s` : `${Math.round(value)} s`;
}

function pictures(names) {
  return (names ?? []).map((name) =>
    h("a", { href: `images/${name}`, target: "_blank", rel: "noopener" },
      h("img", { src: `images/${name}`, alt: "picture", loading: "lazy", class: "thumb" })));
}

function message(spoken, texts) {
  const text = typeof spoken.text === "number" ? texts[spoken.text] : spoken.text;
  const body = [
    spoken.thought ? h("p", { class: "thought", dir: "auto" }, spoken.thought) : null,
    text ? (text.length > 600 ? block(text, "prose") : h("p", { class: "prose", dir: "auto" }, text)) : null,
    ...(spoken.asks ?? []).map((ask) =>
      folded([h("code", {}, ask.name), " ", h("span", { class: "brief" }, brief(ask.arguments))], () => block(ask.arguments))),
    ...pictures(spoken.pictures),
  ];
  return h("div", { class: `message ${spoken.role}` }, h("span", { class: "role" }, spoken.role), ...body);
}

function toolCall(tool) {
  const ok = tool.status < 400;
  const head = [
    h("span", { class: `status ${ok ? "ok" : "bad"}` }, String(tool.status)), " ",
    h("code", {}, tool.name), " ", h("span", { class: "brief" }, brief(tool.arguments)),
    h("span", { class: "aside" }, seconds(tool.seconds)),
  ];
  const body = () => [
    h("h4", {}, "Arguments"), block(tool.arguments), h("h4", {}, "Reply"), block(tool.reply), ...pictures(tool.pictures),
  ];
  return h("li", { class: "tool", id: `tool-${tool.index}` }, folded(head, body));
}

// ---------- timeline

function place(call, calls) {
  if (call.parent === null) return call.index === 0 || call.shared === 0 ? "" : `shares ${call.shared} messages`;
  const parent = calls[call.parent];
  if (parent.branch === call.branch) return "";
  return `branches off call ${parent.index + 1}, keeps ${call.shared} messages`;
}

function modelCall(call, detail, texts) {
  const facts = [
    `${call.tokens[0].toLocaleString("en")} → ${call.tokens[1].toLocaleString("en")} tokens`,
    seconds(call.seconds),
    call.finish,
    call.status === 200 ? "" : `status ${call.status}`,
    call.tries > 1 ? `${call.tries} tries` : "",
    place(call, detail.calls),
  ].filter(Boolean);
  const head = h("div", { class: "head" },
    h("span", { class: "number" }, `${call.index + 1}`),
    h("span", { class: `kind ${call.kind}` }, call.kind),
    h("span", { class: "branch" }, `branch ${call.branch + 1}`),
    h("span", { class: "facts" }, facts.join(" · ")));
  const told = call.heard.length
    ? folded(`Told: ${call.heard.length} new ${call.heard.length === 1 ? "message" : "messages"}`,
      () => call.heard.map((spoken) => message(spoken, texts)))
    : null;
  const said = call.said ? message(call.said, texts) : folded("Reply as received", () => block(call.raw));
  const tools = detail.tools.filter((tool) => tool.call === call.index).map(toolCall);
  return h("li", { class: "call", "data-branch": call.branch % 6, "data-kind": call.kind },
    head, told, said, tools.length ? h("ol", { class: "tools" }, tools) : null);
}

function timeline(detail, texts) {
  const branches = new Set(detail.calls.map((call) => call.branch)).size;
  const kinds = new Map();
  for (const { kind } of detail.calls) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const summary = [...kinds].map(([kind, n]) => `${n} ${kind}`).join(", ");
  const before = detail.tools.filter((tool) => tool.call === null).map(toolCall);
  return part("What happened",
    h("p", { class: "about" }, `${detail.calls.length} model calls (${summary || "none"}) on ` +
      `${branches} ${branches === 1 ? "branch" : "branches"}; ${detail.tools.length} tool calls.`),
    before.length ? h("ol", { class: "tools" }, before) : null,
    h("ol", { class: "calls" }, detail.calls.map((call) => modelCall(call, detail, texts))));
}

// ---------- film strip

function frame(shot, number) {
  const marks = shot.points.map(({ x, y }) =>
    h("span", { class: "mark", style: `left:${100 * x}%;top:${100 * y}%` }));
  const picture = shot.picture
    ? h("a", { href: `images/${shot.picture}`, target: "_blank", rel: "noopener", class: "screen" },
      h("img", { src: `images/${shot.picture}`, alt: `Screen before: ${shot.action}`, loading: "lazy" }), ...marks)
    : h("span", { class: "screen none" }, "no picture yet");
  return h("li", {},
    h("figure", {}, picture, h("figcaption", {},
      h("strong", { dir: "auto" }, `${number + 1}. ${brief(shot.action, 90)}`),
      shot.thought ? h("span", { class: "thought", dir: "auto" }, brief(shot.thought, 240)) : null,
      shot.error ? h("span", { class: "bad" }, brief(shot.error, 160)) : null,
      shot.url ? h("span", { class: "url" }, shot.url) : null)));
}

function film(detail) {
  if (!detail.film.length) return null;
  return part("Screens",
    h("p", { class: "about" }, "Each picture is the screen before the action; the mark is where it pointed."),
    h("ol", { class: "film", tabindex: "0" }, detail.film.map(frame)));
}

// ---------- grade and the rest

function grade(detail) {
  const given = detail.grade;
  const lines = [detail.reason, detail.limit, detail.timed_out ? `timed out after ${detail.timed_out} s` : ""];
  const said = [...new Set([...lines, ...(given?.notes ?? [])])].filter(Boolean);
  const parts = Object.entries(given?.parts ?? {});
  const evidence = given && Object.keys(given.evidence).length
    ? folded("What the judge saw and said", () => block(given.evidence)) : null;
  const trouble = detail.detail ? folded(`What went wrong (${detail.cause || "error"})`, () => block(detail.detail)) : null;
  return part("Grade",
    h("p", {}, given ? `Score ${given.score.toFixed(2)}: ${given.passed ? "passed" : "not passed"}.` : "Not graded."),
    said.length ? h("ul", { class: "reasons" }, said.map((line) => h("li", { dir: "auto" }, line))) : null,
    parts.length ? h("dl", { class: "parts" }, parts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value.toFixed(2))])) : null,
    evidence, trouble);
}

function changes(detail) {
  const rows = detail.changes.map(({ where, what, value }) =>
    folded([h("code", {}, `${where}.${what}`), h("span", { class: "brief" },
      Array.isArray(value) ? ` ${value.length} ${value.length === 1 ? "entry" : "entries"}` : ` ${brief(value)}`)],
    () => block(value)));
  return part("World left behind", rows.length ? rows : h("p", {}, "Nothing was changed, as far as the snapshot tells."),
    folded("Whole snapshot", () => block(detail.world)));
}

function timing(detail) {
  const { total, ...shares } = detail.timing;
  const rest = Math.max(0, total - Object.values(shares).reduce((a, b) => a + b, 0));
  const rows = [...Object.entries(shares), ["harness and waiting", rest], ["total", total]];
  return part("Time", h("dl", { class: "parts" }, rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, seconds(value))])));
}

// ---------- the dialog

const viewer = document.getElementById("viewer");
let current = null;

function heading(index) {
  const e = data.episodes[index];
  const run = data.runs[e[RUN]];
  const step = (by) => {
    const next = matching[matching.indexOf(index) + by];
    const button = h("button", { type: "button", ...(next === undefined ? { disabled: "disabled" } : {}) }, by < 0 ? "Previous" : "Next");
    button.addEventListener("click", () => { location.hash = `episode/${next}`; });
    return button;
  };
  const close = h("button", { type: "button", class: "close", autofocus: "autofocus" }, "Close");
  close.addEventListener("click", () => viewer.close());
  return h("header", {},
    h("div", { class: "controls" }, step(-1), step(1), close),
    h("h2", { id: "viewer-title", tabindex: "-1" }, e[ID]),
    h("p", { class: "facts" }, badge(e[OUTCOME]), ` ${run.label} · attempt ${e[ATTEMPT] + 1} · ` +
      `${(e[PROMPT] + e[COMPLETION]).toLocaleString("en")} tokens · ${e[SECONDS].toFixed(1)} s`));
}

async function show(index) {
  current = index;
  const body = h("div", { class: "body" }, h("p", { class: "about" }, "Loading …"));
  viewer.replaceChildren(heading(index), body);
  if (!viewer.open) viewer.showModal();
  viewer.scrollTop = 0;
  try {
    const { episodes, texts } = await load(data.episodes[index][SHARD]);
    if (current !== index) return;
    const detail = episodes[index];
    body.replaceChildren(...[
      part("Task", h("p", { class: "prose", dir: "auto" }, detail.prompt || "The prompt was not recorded.")),
      part("Answer", h("p", { class: "prose", dir: "auto" }, detail.answer || "No final answer.")),
      grade(detail), film(detail), timeline(detail, texts), changes(detail), timing(detail),
      detail.log ? part("Harness", folded("The end of what it printed", () => block(detail.log))) : null,
    ].filter(Boolean));
  } catch (error) {
    body.replaceChildren(h("p", { class: "note" }, error.message));
  }
}

viewer.addEventListener("close", () => {
  current = null;
  if (location.hash.startsWith("#episode/")) history.replaceState(null, "", "#");
});
viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });

/** Opens the episode that the address names. */
function route() {
  const index = Number(/^#episode\/(\d+)$/.exec(location.hash)?.[1] ?? NaN);
  if (index in data.episodes) show(index);
  else if (viewer.open) viewer.close();
}
