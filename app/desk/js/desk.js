// Puts the parts together: one desk a page, however often Streamlit runs this module again.

let view = null;
const desks = new Map();
const TYPED_MS = 1000; // a rationale is kept when the typing pauses

class View {
  constructor(root) {
    this.root = root;
    const around = root.getRootNode();
    if (!around.adoptedStyleSheets.includes(STYLE)) around.adoptedStyleSheets.push(STYLE);
    this.mode = "state"; // answer | evidence | skip | note | goals | lesson | settle | state
    this.trace = null;
    this.ready = false;
    this.quietUntil = 0;
    this.parts = panelSkeleton();
    this.traceArea = el("main", { class: "trace", tabindex: "0", "aria-label": "Trace" });
    this.traceHead = el("div", {});
    this.search = new Search(this);
    this.reading = el("div", { class: "reading" }, this.traceHead, this.search.box, this.traceArea);
    this.frame = el("div", { class: "desk" }, this.reading, panelElement(this.parts));
    root.append(this.frame);
    this.painted = [];
    this.listen();
    this.fit();
  }

  listen() {
    this.stopping = new AbortController();
    const options = { signal: this.stopping.signal };
    window.addEventListener("keydown", (e) => handleKey(this, e), { ...options, capture: true });
    window.addEventListener("resize", () => this.fit(), options);
    for (const name of ["pointerdown", "wheel", "pointermove"]) {
      this.frame.addEventListener(name, () => this.active(), { ...options, passive: true });
    }
    this.frame.addEventListener("scroll", () => this.active(), { ...options, capture: true, passive: true });
    listenMarks(this, options);
    // A selection with the mouse goes into an open quote box, and what is typed goes on there.
    let fromTrace = false;
    window.addEventListener("pointerdown", (e) => {
      fromTrace = e.composedPath().includes(this.traceArea);
    }, { ...options, capture: true });
    window.addEventListener("mouseup", () => fromTrace && window.setTimeout(() => this.overlay?.take?.(selectionInTrace(this))), options);
    this.frame.addEventListener("click", (e) => this.clicked(e), options);
    this.traceArea.addEventListener("painted", () => this.search.repaint(), options);
    this.traceArea.addEventListener("reform", () => this.search.opened && this.search.find(true), options);
    this.parts.rationale.addEventListener("input", () => {
      if (!this.trace) return;
      this.desk.workOn(this.trace.trace_id).rationale = this.parts.rationale.value.replace(/\s*\n\s*/g, " ");
      this.desk.saveDraft(this.trace.trace_id, TYPED_MS);
    }, options);
    this.clock = window.setInterval(() => this.tick(), 1000);
  }

  close() {
    this.stopping.abort();
    this.transcript?.stop();
    window.clearTimeout(this.preparing);
    window.clearInterval(this.clock);
    this.desk?.stop();
    this.frame.remove();
  }

  // The desk takes what the window has left below its own top edge.
  fit() {
    const top = this.frame.getBoundingClientRect().top + (document.scrollingElement?.scrollTop || 0);
    this.frame.style.height = `${Math.max(420, window.innerHeight - Math.max(0, top) - 22)}px`;
  }

  active() {
    this.lastActive = performance.now();
  }

  tick() {
    const now = performance.now();
    const working = this.trace && this.ready && !["lesson", "settle"].includes(this.mode) && !document.hidden;
    if (working && now - (this.lastActive || 0) < IDLE_MS) {
      const work = this.desk.workOn(this.trace.trace_id);
      work.seconds += 1;
      if (work.seconds % 5 === 0) this.desk.keep();
    }
    if (this.desk?.unsaved()) renderStatus(this);
    this.mark();
  }

  clicked(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const named = button.dataset.key === "Enter" ? "Enter" : button.dataset.key?.toLowerCase();
    const key = button.dataset.answer ? button.dataset.answer[0] : named;
    if (!key) return;
    const action = this.help ? null : deskAction(this, key, { repeat: false, timeStamp: event.timeStamp });
    this.active();
    this.focusTrace();
    action?.();
  }

  update(desk, data, send) {
    if (desk !== this.desk) {
      this.desk?.stop();
      this.desk = desk;
      this.trace = null;
    }
    desk.send = send;
    desk.typing = () => ["evidence", "note"].includes(this.mode);
    const undone = desk.receive(data);
    this.settle(undone);
    if (this.ready) this.prepare();
    if (!["lesson", "settle"].includes(this.mode)) renderFlag(this);
    this.modal?.render?.();
    renderStatus(this);
    this.mark();
  }

  // Decides what is on the desk: the current trace while it is open, else the next one.
  settle(undone = false) {
    const { desk } = this;
    if (this.mode === "lesson") {
      renderLesson(this);
      return;
    }
    if (desk.reopening()) {
      this.showState("reopening");
      return;
    }
    if (desk.data.adjudication && settleStep(this)) return;
    const queue = desk.openQueue();
    const same = !undone && this.trace && queue.some((t) => t.trace_id === this.trace.trace_id);
    if (same) return;
    if (queue.length > 0) this.show(queue[0]);
    else this.showState(desk.outbox.length > 0 || desk.data.state === "open" ? "loading" : desk.data.state);
  }

  show(trace) {
    this.trace = trace;
    this.desk.currentId = trace.trace_id;
    this.ready = false;
    this.mode = "answer";
    this.overlay = null;
    this.parts.tagField.value = "";
    const work = this.desk.workOn(trace.trace_id);
    this.parts.rationale.value = work.rationale;
    this.read(this.prepared?.trace === trace ? this.prepared : new Transcript(trace));
    this.prepared = null;
    this.frame.querySelector(".panel").scrollTop = 0;
    renderQuestion(this);
    this.focusTrace();
    this.fit();
    this.mark();
    // Two frames later the browser has drawn it: only from then on do keys count.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (this.trace !== trace) return;
      this.ready = true;
      this.quietUntil = performance.now() + QUIET_MS;
      this.active();
      this.painted.push(trace.trace_id);
      this.mark();
      this.prepare();
    }));
  }

  read(transcript) {
    this.search.reset();
    this.transcript?.stop();
    this.transcript = transcript;
    transcript.view = this;
    transcript.show(this.traceArea, this.traceHead);
  }

  // Builds the next trace while the reviewer reads this one.
  prepare() {
    window.clearTimeout(this.preparing);
    this.preparing = window.setTimeout(() => {
      const next = this.desk.openQueue().find((t) => t.trace_id !== this.trace?.trace_id);
      if (next && this.trace && this.prepared?.trace !== next) {
        this.prepared = new Transcript(next);
      }
    }, 120);
  }

  showState(state) {
    if (this.mode === "state" && this.state === state) return;
    this.trace = null;
    this.desk.currentId = null;
    this.ready = false;
    this.mode = "state";
    this.state = state;
    this.overlay = null;
    this.search.reset();
    this.transcript?.stop();
    this.transcript = null;
    this.traceHead.replaceChildren();
    renderState(this, state);
  }

  // For people who look at the page from outside, such as tests.
  mark() {
    const { dataset } = this.frame;
    dataset.trace = this.trace?.trace_id || "";
    dataset.ready = String(this.ready);
    dataset.state = this.mode === "state" ? this.state : this.mode;
    dataset.unsaved = String(this.desk ? this.desk.unsaved() : 0);
    dataset.painted = this.painted.join(" ");
    const deciding = ["answer", "evidence"].includes(this.mode);
    this.parts.rationaleBox.hidden = !deciding;
    this.parts.marks.hidden = !deciding;
    this.parts.crumbs.hidden = ["state", "lesson", "settle"].includes(this.mode) || !this.parts.crumbs.firstChild;
  }

  answer(answer) {
    const work = this.desk.workOn(this.trace.trace_id);
    const node = this.desk.question(work.answers);
    const against = goalAgainst(this, node, answer);
    if (against) {
      work.asked = true; // once: the next answer counts
      this.quietUntil = performance.now() + QUIET_MS;
      renderQuestion(this, against);
    } else if (node.evidence_on === answer) openEvidence(this, answer);
    else this.commit(answer);
    this.mark();
  }

  commit(answer) {
    const { desk, trace } = this;
    const work = desk.workOn(trace.trace_id);
    work.answers[desk.question(work.answers).id] = answer;
    desk.notice = "";
    if (!desk.leaf(work.answers)) {
      desk.saveDraft(trace.trace_id);
      renderQuestion(this);
      this.focusTrace();
    } else {
      desk.put({ kind: "label", ...desk.decided(trace.trace_id) });
      if (desk.data.purpose === "practice") this.mode = "lesson";
      this.settle();
    }
    renderStatus(this);
    this.mark();
  }

  // Leaves the lesson of a practice trace for the next trace.
  goOn() {
    if (!this.desk.lessonOn(this.trace.trace_id)) return;
    this.mode = "answer";
    this.lessonShown = null;
    this.settle();
    renderStatus(this);
    this.mark();
  }

  skip(reason) {
    this.desk.notice = "";
    this.desk.put({ kind: "skip", trace_id: this.trace.trace_id, reason });
    this.settle();
    renderStatus(this);
    this.mark();
  }

  // One question back; with no answer to take back, the last label or skip.
  back() {
    const { desk, trace } = this;
    desk.notice = "";
    if (trace && this.asked) {
      renderQuestion(this);
      return;
    }
    const work = trace ? desk.workOn(trace.trace_id) : null;
    const path = work ? desk.path(work.answers) : [];
    if (path.length > 0) {
      desk.forget(trace.trace_id, path[path.length - 1]);
      desk.saveDraft(trace.trace_id);
      renderQuestion(this);
    } else {
      this.takeBack();
      return;
    }
    renderStatus(this);
    this.mark();
  }

  // The last label or skip; of an adjudicator, the last adjudication or skip.
  takeBack() {
    const { desk, trace } = this;
    if (!desk.reopening() && desk.last()) {
      desk.put({ kind: "undo", trace_id: trace?.trace_id || "", undoes: desk.last().trace_id });
      this.settle();
    }
    renderStatus(this);
    this.mark();
  }

  dismiss() {
    this.desk.notice = "";
    renderStatus(this);
  }

  focusTrace() {
    this.traceArea.focus({ preventScroll: true });
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!view || view.root !== parentElement || !view.frame.isConnected) {
    view?.close();
    view = new View(parentElement);
  }
  const id = `${data.reviewer}\n${data.batch}`;
  if (!desks.has(id)) desks.set(id, new Desk(data));
  const desk = desks.get(id);
  const mounted = view;
  mounted.update(desk, data, (outbox) => setTriggerValue("outbox", outbox));
  if (!desk.timer) desk.flush();
  return () => {
    mounted.close();
    if (view === mounted) view = null;
  };
}
