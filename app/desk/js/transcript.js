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

// `text` takes a text of the trace and how to show it, and returns its element.
function renderTask(trace, text, quotesIn) {
  const inputs = trace.inputs.map((input) => {
    const quotes = quotesIn(`input:${input.name}`);
    return el(
      "details", { class: "input", open: input.text.text.length <= 600 || quotes.length > 0 },
      el("summary", {}, el("span", { class: "mono", text: input.name }),
        el("span", { class: "detail", text: `${plural(lineCount(input.text.text), "line")}, ${size(input.text.text)}` })),
      text(input.text, { className: "code", quotes }),
    );
  });
  const goals = trace.sub_goals.map((goal) =>
    el("li", {}, text(goal.text, { className: "goal", prose: true, whole: true }),
      !goal.matters && el("span", { class: "tag", text: "minor" })),
  );
  return [
    heading("Task", trace.workflow),
    text(trace.prompt, { className: "prose task", prose: true, quotes: quotesIn("prompt") }),
    ...inputs,
    goals.length > 0 && el("h3", { text: "Sub-goals" }),
    goals.length > 0 && el("ol", { class: "goals" }, ...goals),
  ].filter(Boolean);
}

// A step comes as its frame; `paint` fills it, at once or when it is near or the page is idle.
function renderStep(step, number, text, quotes, unpainted) {
  const role = step.role || "step";
  const known = knownRole(role);
  const shell = stop({
    class: `stop step ${known}${step.error ? " failed" : ""} unpainted`,
    "data-stop": step.step_id, "data-step": step.step_id,
    "aria-label": `Step ${number}, ${role}${step.tool ? `, ${step.tool}` : ""}`,
  });
  const part = (name, field, options) => field && [
    name && el("div", { class: "part", text: name }), text(field, { quotes, ...options }, shell)];
  // The texts are made now, for the search; their elements when they are painted.
  const fields = [
    part("", step.content, { className: known === "tool" ? "code" : "prose", prose: ["user", "assistant"].includes(known) }),
    part("Arguments", step.arguments, { className: "code" }),
    part("Result", step.result, { className: "code" }),
  ].filter(Boolean).flat().filter(Boolean);
  unpainted.set(shell, () => shell.append(
    el("header", {},
      el("span", { class: "number", text: String(number) }),
      el("span", { class: "role", text: role }),
      step.tool && el("span", { class: "mono tool", text: step.tool }),
      step.error && el("span", { class: "tag error", text: "error" }),
      el("span", { class: "spacer" }),
      step.at !== null && el("span", { class: "detail", text: `+${seconds(step.at)}` }),
      el("button", {
        type: "button", class: "step-id detail mono", tabindex: "-1", "data-cite": step.step_id,
        title: "Copy this step id, or put it into the field at hand", text: step.step_id,
      })),
    ...(fields.length > 0 ? fields.map((field) => (field instanceof Field ? field.element() : field))
      : [el("div", { class: "none", text: "No content" })]),
  ));
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
  const steps = trace.steps.map((step, index) =>
    renderStep(step, index + 1, known, quotesIn(step.step_id), transcript.unpainted));
  const response = stop({ class: "stop response", "data-stop": "response", "data-step": "response", "aria-label": "Final response" });
  response.append(...renderResponse(trace, at(response), quotesIn("response")));
  return [
    task,
    el("div", { class: "transcript-title" }, heading("Transcript", plural(trace.steps.length, "step"))),
    ...steps, response,
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
