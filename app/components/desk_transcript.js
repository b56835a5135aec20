// Paints one trace. Text of a trace enters the page through textContent only.

const COLLAPSED_ABOVE = 1500;
const COLLAPSED_SHOWS = 700;
const PROSE_COLLAPSED_ABOVE = 6000;

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(Boolean));
  return node;
}

function kbd(key) {
  return el("kbd", { text: key });
}

const count = (n) => n.toLocaleString("en-US");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// A text of any length. Above `limit` it starts with its first lines and a button that shows
// the rest; `more` says how much the server already held back.
//
// Quotes are set off with a mark; a text that holds one is shown whole.
function longText(field, { limit, className, quotes = [] }) {
  const { text, more } = field;
  const box = el("div", { class: "text" });
  const body = el("div", { class: className });
  box.append(body);
  const note = more > 0 ? `${plural(more, "further character")} not shown` : "";
  const quoted = quotes.some((quote) => text.includes(quote));
  if (quoted) {
    body.append(...markedText(text, quotes));
  } else if (text.length > limit) {
    const button = el("button", { class: "expand", type: "button" });
    const paint = (open) => {
      body.textContent = open ? text : `${text.slice(0, COLLAPSED_SHOWS).trimEnd()} …`;
      button.textContent = open ? "Show less" : `Show all ${count(text.length)} characters`;
      button.setAttribute("aria-expanded", String(open));
    };
    button.addEventListener("click", () => paint(button.getAttribute("aria-expanded") !== "true"));
    paint(false);
    box.append(button);
  } else {
    body.textContent = text;
  }
  if (note) box.append(el("div", { class: "note", text: note }));
  return box;
}

function markedText(text, quotes) {
  const nodes = [];
  let at = 0;
  while (at < text.length) {
    const next = quotes
      .map((quote) => ({ quote, start: text.indexOf(quote, at) }))
      .filter((found) => found.start >= 0)
      .sort((a, b) => a.start - b.start)[0];
    if (!next) break;
    nodes.push(text.slice(at, next.start), el("mark", { text: next.quote }));
    at = next.start + next.quote.length;
  }
  return [...nodes, text.slice(at)];
}

function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

function heading(text, detail) {
  return el("h2", {}, el("span", { text }), detail && el("span", { class: "detail", text: detail }));
}

function stop(attributes, ...children) {
  return el("section", { class: "stop", tabindex: "-1", ...attributes }, ...children);
}

function renderTask(trace, quotesIn) {
  const inputs = trace.inputs.map((input) =>
    el(
      "details",
      { class: "input", open: input.text.text.length <= 600 || quotesIn(`input:${input.name}`).length > 0 },
      el("summary", {}, el("span", { class: "mono", text: input.name }),
        el("span", { class: "detail", text: plural(input.text.text.length + input.text.more, "character") })),
      longText(input.text, { limit: 6000, className: "code", quotes: quotesIn(`input:${input.name}`) }),
    ),
  );
  const goals = trace.sub_goals.map((goal) =>
    el("li", {}, el("span", { text: goal.text.text }),
      !goal.matters && el("span", { class: "tag", text: "minor" })),
  );
  return stop(
    { "data-stop": "task", "aria-label": "Task" },
    heading("Task", trace.workflow),
    longText(trace.prompt, { limit: PROSE_COLLAPSED_ABOVE, className: "prose task", quotes: quotesIn("prompt") }),
    ...inputs,
    goals.length > 0 && el("h3", { text: "Sub-goals" }),
    goals.length > 0 && el("ol", { class: "goals" }, ...goals),
  );
}

function renderStep(step, number, quotes) {
  const role = step.role || "step";
  const known = ["user", "assistant", "tool", "system"].includes(role) ? role : "other";
  const head = el(
    "header",
    {},
    el("span", { class: "number", text: String(number) }),
    el("span", { class: "role", text: role }),
    step.tool && el("span", { class: "mono tool", text: step.tool }),
    step.error && el("span", { class: "tag error", text: "error" }),
    el("span", { class: "spacer" }),
    step.at !== null && el("span", { class: "detail", text: `+${seconds(step.at)}` }),
    el("span", { class: "detail mono", text: step.step_id }),
  );
  const quiet = known === "system" || known === "tool";
  const parts = [
    step.content && longText(step.content, {
      limit: quiet ? COLLAPSED_ABOVE : PROSE_COLLAPSED_ABOVE,
      className: known === "tool" ? "code" : "prose",
      quotes,
    }),
    step.arguments && el("div", { class: "part", text: "Arguments" }),
    step.arguments && longText(step.arguments, { limit: COLLAPSED_ABOVE, className: "code", quotes }),
    step.result && el("div", { class: "part", text: "Result" }),
    step.result && longText(step.result, { limit: COLLAPSED_ABOVE, className: "code", quotes }),
  ];
  const empty = !parts.some(Boolean) && el("div", { class: "none", text: "No content" });
  return stop(
    {
      class: `stop step ${known}${step.error ? " failed" : ""}`,
      "data-stop": step.step_id, "data-step": step.step_id,
      "aria-label": `Step ${number}, ${role}${step.tool ? `, ${step.tool}` : ""}`,
    },
    head, ...parts, empty,
  );
}

// A run may end with tool calls after its last words: then those words are not the end of it.
function stepsAfterResponse(trace) {
  const said = trace.response?.text;
  const at = said ? trace.steps.findLastIndex((step) => step.content?.text === said) : -1;
  return at < 0 ? 0 : trace.steps.length - 1 - at;
}

function renderResponse(trace, quotes) {
  const later = stepsAfterResponse(trace);
  return stop(
    { class: "stop response", "data-stop": "response", "data-step": "response", "aria-label": "Final response" },
    heading("Final response", trace.status ? `status: ${trace.status}` : ""),
    later > 0 && el("div", { class: "detail", text: `The run went on after this: ${plural(later, "more step")}.` }),
    trace.response && trace.response.text
      ? longText(trace.response, { limit: 20000, className: "prose", quotes })
      : el("div", { class: "none", text: "The run ended without a response." }),
  );
}

// `evidence` holds quotes to set off, by the place they stand in.
function renderTrace(trace, evidence = []) {
  const quotesIn = (place) => evidence.filter((e) => e.step_id === place).map((e) => e.quote);
  const facts = [
    trace.agent, plural(trace.steps.length, "step"),
    trace.latency_s !== null ? seconds(trace.latency_s) : "", trace.status || "",
  ];
  return [
    el("div", { class: "facts" }, el("span", { class: "mono", text: trace.trace_id }),
      ...facts.filter(Boolean).map((text) => el("span", { text }))),
    renderTask(trace, quotesIn),
    el("div", { class: "transcript-title" }, heading("Transcript", plural(trace.steps.length, "step"))),
    ...trace.steps.map((step, index) => renderStep(step, index + 1, quotesIn(step.step_id))),
    renderResponse(trace, quotesIn("response")),
  ];
}

// The steps in which a quote stands literally, with the response last.
function findQuote(trace, quote) {
  // A selection may come with other line ends than the text it was taken from.
  const plain = (text) => text.replaceAll("\r\n", "\n");
  const stands = (field) => field !== null && plain(field.text).includes(plain(quote));
  const found = trace.steps
    .filter((step) => [step.content, step.arguments, step.result].some(stands))
    .map((step) => step.step_id);
  if (stands(trace.response)) found.push("response");
  return found;
}
