// Paints one trace. Text of a trace enters the page through textContent only.

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

function knownRole(role) {
  return ["user", "assistant", "tool", "system"].includes(role) ? role : "other";
}

const TASK_LINES = { most: 6, preview: 4 };
const FOLDED = { most: 2, preview: 1 };

// `text` takes a text of the trace and how to show it, and returns its element.
function renderTask(trace, text, quotesIn) {
  const inputs = trace.inputs.map((input) => {
    const quotes = quotesIn(`input:${input.name}`);
    return el(
      "details", { class: "input", open: input.text.text.length <= 300 || quotes.length > 0 },
      el("summary", {}, el("span", { class: "mono", text: input.name }),
        el("span", { class: "detail", text: `${plural(lineCount(input.text.text), "line")}, ${size(input.text.text)}` })),
      text(input.text, { className: "code", quotes }),
    );
  });
  const goals = trace.sub_goals.map((goal) =>
    el("li", {}, text(goal.text, { className: "goal", whole: true }),
      !goal.matters && el("span", { class: "tag", text: "minor" })),
  );
  const what = trace.simulated_user ? [trace.workflow, "instructions to the simulated user"] : [trace.workflow];
  return [
    heading("Task", what.join(" · ")),
    text(trace.prompt, { className: "prose task", prose: true, lines: TASK_LINES, quotes: quotesIn("prompt") }),
    ...inputs,
    goals.length > 0 && el("h3", { text: "Sub-goals" }),
    goals.length > 0 && el("ol", { class: "goals" }, ...goals),
  ].filter(Boolean);
}

const isCall = (step) => step.tool !== null && step.result === null;
const isResult = (step) => step.tool !== null && step.arguments === null && step.result !== null;
const isSystem = (step) => ["system", "developer"].includes(step.role);

// The steps of each card: a call and its result share one, unless something was said in between.
// A result names its call; where the file has no ids, it answers the oldest open call of its tool.
function cardsOf(steps) {
  const places = new Map(steps.map((step, index) => [step.step_id, index]));
  const waiting = [];
  const answered = new Map();
  steps.forEach((step, index) => {
    if (isCall(step)) waiting.push(index);
    if (!isResult(step)) return;
    const own = (at) => steps[at].tool === step.tool && (steps[at].role === "user") === (step.role === "user");
    const call = step.call === undefined ? waiting.find(own) : places.get(step.call);
    if (!waiting.includes(call)) return;
    waiting.splice(waiting.indexOf(call), 1);
    const between = steps.slice(call + 1, index);
    if (between.every((other) => other.tool !== null && !other.content)) answered.set(call, index);
  });
  const results = new Set(answered.values());
  return [...steps.keys()].filter((index) => !results.has(index))
    .map((index) => (answered.has(index) ? [index, answered.get(index)] : [index]));
}

function roleName(step) {
  if (isSystem(step)) return "System prompt";
  if (isResult(step)) return "Result";
  return step.role || "step";
}

// The words of a step, or its call, on the right of who it was. The card stands for its first step.
function stepRow(step, number, fields, first) {
  const usual = step.step_id === `s${number}`;
  const { content, call, result } = fields;
  return el("div", { class: "row-of-step", "data-step": first ? null : step.step_id },
    el("header", {},
      !usual && el("span", { class: "number", text: String(number) }),
      usual && citeButton(step),
      el("span", { class: "role", text: roleName(step) }),
      step.agent && el("span", { class: "detail specialist", text: step.agent }),
      !usual && citeButton(step)),
    el("div", { class: "body" },
      el("div", { class: "meta" },
        step.error && el("span", { class: "tag error", text: "error" }),
        first && step.at !== null && el("span", { class: "detail", text: `+${seconds(step.at)}` })),
      content?.element(),
      step.tool && !isResult(step) && el("div", { class: "call" }, el("span", { class: "mono tool", text: step.tool }), call?.element()),
      step.tool && isResult(step) && !fields.paired && el("div", { class: "mono tool", text: step.tool }),
      result?.element(),
      !content && !step.tool && !result && el("div", { class: "none", text: "No content" })));
}

function citeButton(step) {
  return el("button", {
    type: "button", class: "step-id detail mono", tabindex: "-1", "data-cite": step.step_id,
    title: "Copy this step id, or insert it into the open field", text: step.step_id,
  });
}

// A card comes as its frame; `paint` fills it, at once or when it is near or the page is idle.
function renderCard(trace, indexes, text, quotesIn, unpainted) {
  const steps = indexes.map((index) => trace.steps[index]);
  const [first] = steps;
  const number = (place) => indexes[place] + 1;
  const shell = stop({
    class: `stop step ${isSystem(first) ? "system" : knownRole(first.role)}${first.tool ? " uses" : ""}${steps.some((s) => s.error) ? " failed" : ""} unpainted`,
    "data-stop": first.step_id, "data-step": first.step_id,
    "aria-label": `Step ${indexes.map((index) => index + 1).join(" and ")}, ${roleName(first)}${first.tool ? `, ${first.tool}` : ""}`,
  });
  // The texts are made now, for the search; their elements when they are painted.
  const fields = steps.map((step) => {
    const quotes = quotesIn(step.step_id);
    const part = (field, options) => field && text(field, { quotes, ...options }, shell);
    const said = knownRole(step.role) !== "tool";
    // What stands below as the final response need not be read twice.
    const folded = isSystem(step) || (step.content && step === trace.steps.at(-1) && step.content.text === trace.response?.text);
    return {
      content: part(step.content, { className: said ? "prose" : "code", prose: said, lines: folded ? FOLDED : undefined }),
      call: part(step.arguments, { className: "code arguments" }),
      result: part(step.result, { className: "code" }),
      paired: steps.length > 1,
    };
  });
  unpainted.set(shell, () => shell.append(...steps.map((step, place) =>
    stepRow(step, number(place), fields[place], place === 0))));
  return shell;
}

// A run may end with tool calls after its last words: then those words are not the end of it.
function stepsAfterResponse(trace) {
  const said = trace.response?.text;
  const at = said ? trace.steps.findLastIndex((step) => step.content?.text === said) : -1;
  return at < 0 ? 0 : trace.steps.length - 1 - at;
}

function renderResponse(trace, text, quotes) {
  const later = stepsAfterResponse(trace);
  return [
    heading("Final response", trace.status ? `status: ${trace.status}` : ""),
    later > 0 && el("div", { class: "detail", text: `The run went on after this: ${plural(later, "more step")}.` }),
    trace.response && trace.response.text
      ? text(trace.response, { className: "prose", prose: true, whole: true, quotes })
      : el("div", { class: "none", text: "The run ended without a response." }),
  ].filter(Boolean);
}

function renderTrace(transcript, evidence) {
  const { trace } = transcript;
  const quotesIn = (place) => evidence.filter((e) => e.step_id === place).map((e) => e.quote);
  const known = (field, options, shell) => {
    const made = new Field(field, options);
    transcript.fields.push({ field: made, stop: shell });
    return made;
  };
  const at = (shell) => (field, options) => known(field, options, shell).element();
  const task = stop({ "data-stop": "task", "aria-label": "Task" });
  task.append(...renderTask(trace, at(task), quotesIn));
  const steps = transcript.cards.map((card) => renderCard(trace, card, known, quotesIn, transcript.unpainted));
  const response = stop({ class: "stop response", "data-stop": "response", "data-step": "response", "aria-label": "Final response" });
  response.append(...renderResponse(trace, at(response), quotesIn("response")));
  return [task, ...steps, response];
}

// The steps in which a quote stands literally, with the response last; of words that the agent is
// to have invented, not those that instruct it.
function findQuote(trace, quote, invented = false) {
  // A selection may come with other line ends than the text it was taken from.
  const plain = (text) => text.replaceAll("\r\n", "\n");
  const stands = (field) => field !== null && plain(field.text).includes(plain(quote));
  const found = trace.steps
    .filter((step) => !(invented && isSystem(step)))
    .filter((step) => [step.content, step.arguments, step.result].some(stands))
    .map((step) => step.step_id);
  if (stands(trace.response)) found.push("response");
  return found;
}
