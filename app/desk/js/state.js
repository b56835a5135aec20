// What is being labelled, and what the store has not confirmed yet. No DOM in this part.
//
// Every decision becomes an event with a token of its own. Events stay in the outbox, in this
// tab's session storage and, drafts aside, in the browser's storage until the store says that it
// holds (or refuses) their token: a reload, a lost rerun, a stopped server or a closed tab loses
// nothing and doubles nothing.

const RESEND_MS = 1500; // doubled while no answer comes: a busy server must not get more to do
const RESEND_MOST_MS = 12000;
const DRAFT_DELAY_MS = 250;
const POLL_MS = 10000;
const IDLE_MS = 30000; // without a key, a pointer or a scroll: nobody is working
const AFTER_PAINT_MS = 30; // the next trace is drawn first, then the label is sent
const REMEMBERED_TRACES = 60;

class Desk {
  constructor(data) {
    const owner = [data.store, data.adjudication ? "adjudicate" : "label", data.reviewer];
    // Another desk finds what this one leaves behind: each has a key of its own.
    this.leavings = `asr-outbox:${owner.map(encodeURIComponent).join(":")}:`;
    this.leavingsKey = this.leavings + newToken();
    this.storageKey = `asr-desk:${[...owner, data.batch].map(encodeURIComponent).join(":")}`;
    this.outbox = [];
    this.left = []; // what a closed tab left of other batches
    this.settling = {}; // per trace: answers, cause and rationale of an adjudication
    this.work = {}; // per trace: answers, evidence, rationale, confidence, tags, goals, seconds
    this.notice = "";
    this.currentId = null;
    this.traces = new Map(); // traces that came in full; the server then sends only their id
    this.missing = false;
    this.guide = null; // tree, handbook and catalogue of tags, which the server then leaves out too
    this.listing = false; // the list of own labels was asked for and has not come yet
    this.send = () => {};
    this.watchdog = new Watchdog();
    this.typing = () => false;
    this.sendings = 0;
    this.resendMs = RESEND_MS;
    this.restore();
    this.adopt(data.batch);
    this.data = { ...data, queue: [] };
  }

  restore() {
    try {
      const kept = JSON.parse(window.sessionStorage.getItem(this.storageKey) || "{}");
      if (Array.isArray(kept.outbox)) this.outbox = kept.outbox;
      this.settling = kept.settling || {};
      for (const [id, work] of Object.entries(kept.work || {})) this.work[id] = emptyWork(work);
    } catch {
      this.notice = "This browser cannot keep unsaved answers: do not reload before everything is saved.";
    }
  }

  // Takes over what closed tabs left. That of a tab that is still open is sent twice, under the
  // same tokens, and stored once.
  adopt(batch) {
    try {
      const known = new Set(this.outbox.map((event) => event.token));
      const keys = Object.keys(window.localStorage).filter((key) => key.startsWith(this.leavings));
      for (const event of keys.flatMap(leftAt)) {
        if (known.has(event.token)) continue;
        known.add(event.token);
        this.left.push(event);
      }
      const here = this.left.filter((event) => event.batch === batch);
      this.left = this.left.filter((event) => event.batch !== batch);
      this.outbox.unshift(...here.map(({ batch: _, ...event }) => event));
      this.keepForOthers(batch);
      for (const key of keys) window.localStorage.removeItem(key);
    } catch {
      // No storage, or one that is full: what was found is sent all the same.
    }
  }

  keepForOthers(batch) {
    const events = this.outbox.filter((event) => event.kind !== "draft").map((event) => ({ ...event, batch }));
    if (events.length + this.left.length === 0) window.localStorage.removeItem(this.leavingsKey);
    else window.localStorage.setItem(this.leavingsKey, JSON.stringify([...this.left, ...events]));
  }

  keep() {
    try {
      this.keepForOthers(this.data.batch);
    } catch {
      // full or switched off: the session storage may still take it
    }
    try {
      window.sessionStorage.setItem(
        this.storageKey,
        JSON.stringify({ outbox: this.outbox, work: this.work, settling: this.settling }),
      );
      return true;
    } catch {
      return false; // storage is full or switched off; the outbox in memory still goes to the store
    }
  }

  // Takes in what the server says. Returns true when an undo was settled, so that the
  // reopened trace, now first in the queue, replaces whatever is shown.
  receive(data) {
    this.watchdog.answered();
    this.resendMs = RESEND_MS;
    // The list stays until it is asked for anew: an answer to something else has none.
    const own_labels = data.own_labels ?? this.data?.own_labels ?? null;
    const filled = this.fill(data.settle ? [...data.queue, data.settle.trace] : data.queue);
    const queue = filled.slice(0, filled.length - (data.settle && this.traces.has(data.settle.trace_id) ? 1 : 0));
    if (data.guide.tree) this.guide = data.guide;
    const { tree, handbook, patterns } = this.guide;
    this.data = { ...data, queue, own_labels, tree, handbook, patterns };
    if (data.settle) {
      const trace = this.traces.get(data.settle.trace_id);
      this.data.settle = trace ? { ...data.settle, trace } : null;
    }
    if (data.own_labels) this.listing = false;
    const settled = new Set(data.acked);
    const refused = new Map(data.refused.map((r) => [r.token, r.why]));
    let undone = false;
    for (const event of this.outbox) {
      if (settled.has(event.token) && event.kind === "undo") undone = true;
      if (!refused.has(event.token)) continue;
      settled.add(event.token);
      if (event.kind === "undo") undone = true;
      if (event.kind !== "draft") this.refuse(event, refused.get(event.token));
    }
    this.outbox = this.outbox.filter((event) => !settled.has(event.token));
    this.left = this.left.filter((event) => {
      if (refused.has(event.token)) this.refuse(event, refused.get(event.token));
      return !refused.has(event.token) && !settled.has(event.token);
    });
    const alive = new Set([...this.data.queue.map((t) => t.trace_id), this.currentId]);
    for (const id of Object.keys(this.work)) {
      if (!alive.has(id) && !this.outbox.some((e) => e.trace_id === id)) delete this.work[id];
    }
    this.keep();
    return undone;
  }

  // Puts the remembered traces in place of those that the server left out.
  fill(queue) {
    for (const trace of queue) if (!trace.held) this.traces.set(trace.trace_id, trace);
    const filled = queue.map((trace) => this.traces.get(trace.trace_id)).filter(Boolean);
    this.missing = filled.length < queue.length;
    if (this.missing) this.flush();
    const needed = new Set(queue.map((trace) => trace.trace_id));
    for (const id of this.traces.keys()) {
      if (this.traces.size <= REMEMBERED_TRACES) break;
      if (!needed.has(id)) this.traces.delete(id);
    }
    return filled;
  }

  refuse(event, why) {
    const what = { label: "A label", skip: "A skip", undo: "The undo", flag: "A flag", settle: "The adjudication" }[event.kind] || "An event";
    this.notice = `${what}${event.batch ? ` of ${event.batch}` : ""} was not stored: ${why}.`;
    if (event.kind !== "label" || event.batch) return;
    const evidence = (event.evidence || []).map((e) => ({ node: "", ...e }));
    const { rationale, confidence, tags, sub_goals: goals, seconds_active: seconds, violations } = event;
    this.work[event.trace_id] = emptyWork({ rationale, confidence, tags, goals, seconds, evidence, violations });
  }

  // The queue of the store, less what this tab has decided since.
  openQueue() {
    const decided = new Set(
      this.outbox.filter((e) => e.kind === "label" || e.kind === "skip").map((e) => e.trace_id),
    );
    return this.data.queue.filter((trace) => !decided.has(trace.trace_id));
  }

  current() {
    return this.data.queue.find((trace) => trace.trace_id === this.currentId) || null;
  }

  // The canonical label of a practice trace; the server gives it once the label is stored.
  lessonOn(id) {
    return this.data.lesson?.trace_id === id ? this.data.lesson : null;
  }

  // The trace that was decided blind, with its labels; null once its settlement is on the way.
  settleDue() {
    const due = this.data.settle;
    return due && !this.outbox.some((e) => e.kind === "settle" && e.trace_id === due.trace_id) ? due : null;
  }

  reopening() {
    return this.outbox.some((event) => event.kind === "undo");
  }

  unsaved() {
    return this.left.length + this.outbox.filter((event) => event.kind !== "draft").length;
  }

  progress() {
    const { done, skipped, total } = this.data.progress;
    const pending = (kind) => this.outbox.filter((e) => e.kind === kind).length;
    return { done: done + pending("label"), skipped: skipped + pending("skip"), total };
  }

  // What one undo would take back: {trace_id, outcome}; a skip has no outcome.
  last() {
    // A blind decision whose answers were shown stands: the adjudication is what is taken back.
    const made = this.data.adjudication ? "settle" : "label";
    const decided = this.outbox.filter((e) => e.kind === made || e.kind === "skip");
    const event = decided[decided.length - 1];
    if (!event) return this.data.last;
    return { trace_id: event.trace_id, outcome: event.kind === made ? this.leaf(event.answers) : null };
  }

  workOn(id) {
    if (!this.work[id]) {
      const draft = this.data.drafts[id] || {};
      const given = draft.answers || {};
      const answers = Object.fromEntries(this.path(given).map((node) => [node.id, given[node.id]]));
      const evidence = (draft.evidence || []).map((e) => ({ node: "", ...e }));
      const work = emptyWork({
        answers, rationale: draft.rationale, confidence: draft.confidence, tags: draft.tags,
        goals: draft.sub_goals, seconds: draft.seconds_active, violations: draft.violations,
      });
      this.work[id] = work;
      // A label that was reopened: its answers are shown, and the last question is asked again.
      if (this.leaf(answers)) {
        work.before = { ...answers };
        this.forget(id, this.path(answers).at(-1));
      }
      // Evidence is part of the answer: without it the question is asked again.
      for (const node of this.path(answers)) {
        if (node.evidence_on && answers[node.id] === node.evidence_on) this.forget(id, node);
      }
      work.evidence = evidence;
    }
    return this.work[id];
  }

  // Everything decided on a trace so far, as a draft or a label holds it.
  decided(id) {
    const work = this.workOn(id);
    return {
      trace_id: id, answers: { ...work.answers }, rationale: work.rationale.trim(),
      evidence: work.evidence.map(({ step_id, quote }) => ({ step_id, quote })),
      confidence: work.confidence, tags: [...work.tags], sub_goals: { ...work.goals },
      violations: asksForViolations(this) ? work.violations.map((v) => ({ ...v })) : null,
      seconds_active: Math.round(work.seconds),
    };
  }

  saveDraft(id, delay = DRAFT_DELAY_MS) {
    this.put({ kind: "draft", ...this.decided(id) }, delay);
  }

  forget(id, node) {
    const work = this.work[id];
    const path = this.path(work.answers);
    for (const later of path.slice(path.indexOf(node))) delete work.answers[later.id];
    work.evidence = work.evidence.filter((e) => !e.node || e.node in work.answers);
  }

  // The reviewer's own flag on a trace: its reason, an empty text, or null.
  flagOn(id) {
    const event = this.outbox.findLast((e) => e.kind === "flag" && e.trace_id === id);
    if (event) return event.flagged ? event.reason : null;
    return this.data.flags[id] ?? null;
  }

  // The tags to offer: those of the reviewer's own labels of this batch and of this tab, then those
  // of the catalogue.
  tagsKnown() {
    const here = Object.values(this.work).flatMap((work) => work.tags || []);
    const sent = this.outbox.flatMap((event) => event.tags || []);
    const catalogue = (this.data.patterns || []).map((pattern) => pattern.tag);
    return [...new Set([...this.data.tags, ...sent, ...here, ...catalogue])];
  }

  // What the catalogue says of a tag; undefined where it is not in it.
  pattern(tag) {
    return (this.data.patterns || []).find((known) => known.tag.toLowerCase() === tag.toLowerCase());
  }

  // Minutes that what is left will take at one's own pace; null while the pace is not known.
  minutesLeft() {
    const { done, skipped, total } = this.progress();
    const pace = this.data.pace_s;
    return pace ? Math.max(1, Math.round(((total - done - skipped) * pace) / 60)) : null;
  }

  node(id) {
    return this.data.tree.nodes.find((node) => node.id === id) || null;
  }

  // The questions that `answers` walk through, first one first.
  path(answers) {
    const visited = [];
    let node = this.node(this.data.tree.root);
    while (node && answers[node.id]) {
      visited.push(node);
      node = this.node(node[answers[node.id]]);
    }
    return visited;
  }

  question(answers) {
    const path = this.path(answers);
    const last = path[path.length - 1];
    return this.node(last ? last[answers[last.id]] : this.data.tree.root);
  }

  leaf(answers) {
    const path = this.path(answers);
    const last = path[path.length - 1];
    return last && !this.node(last[answers[last.id]]) ? last[answers[last.id]] : null;
  }

  // The classes that can still be reached from the current question.
  reachable(answers) {
    const found = new Set();
    const walk = (id) => {
      const node = this.node(id);
      if (node) [node.yes, node.no].forEach(walk);
      else found.add(id);
    };
    walk(this.question(answers)?.id ?? this.leaf(answers));
    return found;
  }

  put(event, delay = event.kind === "draft" ? DRAFT_DELAY_MS : AFTER_PAINT_MS) {
    if (event.kind === "draft") {
      this.outbox = this.outbox.filter((e) => e.kind !== "draft" || e.trace_id !== event.trace_id);
    } else if (event.kind === "label") {
      this.outbox = this.outbox.filter((e) => e.kind !== "draft" || e.trace_id !== event.trace_id);
      delete this.work[event.trace_id];
    }
    if (event.kind === "undo") delete this.work[event.undoes];
    this.outbox.push({ token: newToken(), ...event });
    this.keep();
    this.flush(this.unsaved() > 0 ? AFTER_PAINT_MS : delay); // a draft never holds up a label
  }

  askForList() {
    this.listing = true;
    this.flush();
  }

  // Sends the whole outbox now or shortly, and again until every event is settled.
  flush(delay = 0) {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const waiting = this.data.state !== "open" && this.openQueue().length === 0;
      if (this.pending() || waiting) {
        this.watchdog.check(() => !this.typing() && this.keep());
        this.watchdog.sent();
        this.send({
          reviewer: this.data.reviewer, batch: this.data.batch, events: [...this.left, ...this.outbox],
          held: [...this.traces.keys()], guide: this.guide?.key || "", listing: this.listing,
          number: ++this.sendings,
        });
      }
      this.flush(this.pending() ? this.resendDelay() : POLL_MS);
    }, delay);
  }

  pending() {
    return this.left.length + this.outbox.length > 0 || this.missing || this.listing;
  }

  resendDelay() {
    const delay = this.resendMs;
    this.resendMs = Math.min(2 * delay, RESEND_MOST_MS);
    return delay * (0.75 + Math.random() / 2); // so that the tabs of a team do not send at once
  }

  stop() {
    window.clearTimeout(this.timer);
    this.timer = 0;
  }
}

function emptyWork(known = {}) {
  return {
    answers: known.answers || {}, evidence: known.evidence || [], rationale: known.rationale || "",
    confidence: known.confidence ?? null, tags: [...(known.tags || [])],
    goals: { ...known.goals }, seconds: known.seconds || 0, violations: [...(known.violations || [])],
  };
}

// What a tab left, or nothing where it cannot be read.
function leftAt(key) {
  try {
    const events = JSON.parse(window.localStorage.getItem(key));
    return Array.isArray(events) ? events.filter((event) => typeof event?.token === "string") : [];
  } catch {
    return [];
  }
}

function newToken() {
  if (window.crypto.randomUUID) return window.crypto.randomUUID();
  // randomUUID needs a secure context; plain http on a local network is none.
  const bytes = window.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
