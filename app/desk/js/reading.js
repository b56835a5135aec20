// One trace on the desk: which step is at hand, which are painted, where the keys lead.

const PAINTED_FIRST = 12; // steps; with the task they fill a screen, the others follow when idle
const OWN_SCROLL_MS = 300;
const HOLD_MS = 800;
const HOLD_FRAMES = 8;
const GIVE_UP_MS = 15_000;

const whenIdle = window.requestIdleCallback
  ? (work) => window.requestIdleCallback(work, { timeout: 500 })
  : (work) => window.setTimeout(() => work({ timeRemaining: () => 8 }), 16);

class Transcript {
  // `evidence` holds quotes to set off, by the place they stand in.
  constructor(trace, evidence = []) {
    this.trace = trace;
    this.fields = []; // of every text, painted or not: {field, stop}
    this.unpainted = new Map(); // shell -> what paints it
    this.at = 0;
    this.ownScroll = 0;
    this.cards = cardsOf(trace.steps); // the places of the steps in each card
    this.stops = renderTrace(this, evidence); // task, cards, response
    const quoted = new Set(evidence.map((e) => e.step_id));
    this.stops.forEach((stop, index) => {
      if (index <= PAINTED_FIRST || this.stepsAt(index).some((step) => quoted.has(step.step_id))) this.fill(stop);
    });
    this.head = renderHead(this);
  }

  stepsAt(index) {
    return (this.cards[index - 1] || []).map((place) => this.trace.steps[place]);
  }

  // To the card with the step of this number.
  moveToStep(number) {
    this.moveTo(1 + this.cards.findIndex((card) => card.includes(number - 1)));
  }

  fill(stop) {
    const paint = this.unpainted.get(stop);
    if (!paint) return;
    this.unpainted.delete(stop);
    this.near?.unobserve(stop);
    stop.classList.remove("unpainted");
    paint();
  }

  show(area, headArea) {
    this.area = area;
    area.replaceChildren(...this.stops);
    headArea.replaceChildren(this.head);
    area.scrollTop = 0;
    this.stopping = new AbortController();
    area.addEventListener("scroll", () => this.scrolled(), { passive: true, signal: this.stopping.signal });
    area.addEventListener("click", (e) => this.cite(e), { signal: this.stopping.signal });
    area.addEventListener("mousedown", (e) => {
      if (e.target.closest(".step-id")) e.preventDefault(); // a field that is typed in keeps the focus
    }, { signal: this.stopping.signal });
    this.near = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.fill(entry.target);
    }, { root: area, rootMargin: "900px 0px" });
    for (const stop of this.unpainted.keys()) this.near.observe(stop);
    this.goOn();
    this.highlight();
  }

  goOn() {
    if (this.unpainted.size === 0 || this.stopped) return;
    whenIdle((deadline) => {
      if (this.stopped) return;
      do {
        const next = this.unpainted.keys().next();
        if (next.done) return;
        this.fill(next.value);
      } while (deadline.timeRemaining() > 4);
      this.goOn();
    });
  }

  stop() {
    this.stopped = true;
    this.stopping?.abort();
    this.near?.disconnect();
  }

  move(by) {
    this.moveTo(this.at + by);
  }

  moveTo(index) {
    this.hold(index);
    const stop = this.stops[this.at];
    const put = () => {
      if (this.at === 0) this.area.scrollTop = 0;
      else stop.scrollIntoView({ block: this.at === this.stops.length - 1 ? "end" : "start" });
    };
    this.keepInView(put, () => this.stops[this.at] === stop);
  }

  // Scrolls now, and again for a while: steps that come into view are laid out only then and may
  // push the place away, on a slow machine some frames later. The reader's own scrolling ends it.
  keepInView(put, wanted) {
    this.holding?.abort();
    const letGo = this.holding = new AbortController();
    for (const own of ["wheel", "pointerdown", "touchstart"]) {
      this.area.addEventListener(own, () => {
        letGo.abort();
        this.ownScroll = 0;
      }, { signal: letGo.signal, passive: true });
    }
    const end = performance.now() + HOLD_MS;
    let frames = 0;
    put();
    const again = () => {
      const now = performance.now();
      const atRest = now > end && ++frames > HOLD_FRAMES;
      if (atRest || now > end + GIVE_UP_MS || !wanted() || this.stopped) letGo.abort();
      if (letGo.signal.aborted) return;
      this.ownScroll = Math.max(this.ownScroll, performance.now() + 100);
      const before = this.area.scrollTop;
      put();
      if (this.area.scrollTop !== before) frames = 0; // pushed away: not at rest yet
      requestAnimationFrame(again);
    };
    requestAnimationFrame(again);
  }

  // Makes a step the one at hand without scrolling to it.
  hold(index) {
    this.at = Math.max(0, Math.min(index, this.stops.length - 1));
    this.ownScroll = performance.now() + OWN_SCROLL_MS;
    this.fill(this.stops[this.at]);
    this.stops.forEach((stop, i) => stop.classList.toggle("here", i === this.at));
    this.highlight();
  }

  moveToError(by) {
    const n = this.stops.length;
    for (let i = 1; i <= n; i += 1) {
      const index = (this.at + by * i + n * i) % n;
      if (this.stepsAt(index).some((step) => step.error)) {
        this.moveTo(index);
        return;
      }
    }
  }

  // The step at hand follows the wheel and the scroll bar.
  scrolled() {
    if (performance.now() < this.ownScroll || this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (this.stopped) return;
      const { area } = this;
      const most = Math.max(1, area.scrollHeight - area.clientHeight);
      const line = area.getBoundingClientRect().top + area.clientHeight * Math.min(1, area.scrollTop / most);
      let low = 0;
      let high = this.stops.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.stops[middle].getBoundingClientRect().bottom < line) low = middle + 1;
        else high = middle;
      }
      if (low === this.at) return;
      this.at = low;
      this.stops.forEach((stop) => stop.classList.remove("here"));
      this.highlight();
    });
  }

  highlight() {
    const here = this.cards[this.at - 1] || [];
    this.marks.forEach((mark, index) => {
      if (here.includes(index)) mark.setAttribute("aria-current", "step");
      else mark.removeAttribute("aria-current");
    });
  }

  // Opens every long text of the step at hand, or closes them when all are open.
  toggleStep() {
    const own = this.fields.filter((f) => f.stop === this.stops[this.at] && f.field.long).map((f) => f.field);
    const open = own.some((field) => !field.open);
    own.forEach((field) => field.expand(open));
  }

  // Shows the step at hand as it came, or in its usual form when all of it is.
  toggleRaw() {
    const own = this.fields.filter((f) => f.stop === this.stops[this.at] && f.field.forms.length > 1).map((f) => f.field);
    const raw = own.some((field) => !field.raw);
    own.forEach((field) => field.choose(raw ? "Raw" : field.forms[0]));
  }

  // A click on the id of a step: into an open evidence box or the field at hand, else copied.
  async cite(event) {
    const button = event.target.closest(".step-id");
    if (!button) return;
    const id = button.dataset.cite;
    const root = this.area.getRootNode();
    const field = root.activeElement;
    if (this.view?.overlay?.cite) {
      this.view.overlay.cite(id);
    } else if (isTyping(field) && !field.closest(".search")) {
      field.setRangeText(id, field.selectionStart, field.selectionEnd, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    } else {
      let said = "copied";
      try {
        await navigator.clipboard.writeText(id);
      } catch {
        said = "Not copied: the browser does not allow it.";
      }
      button.dataset.said = said;
      window.setTimeout(() => delete button.dataset.said, 1500);
    }
  }
}
