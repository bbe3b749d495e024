// The rounds received so far, and what a message changes. Knows nothing of the page.
// Gradio may drop a value that another follows quickly: every message tells how many rounds there are, so a gap shows.

class Store {
  constructor() { this.left = new Set(); this.clear(null); }

  clear(run) {
    this.run = run;
    this.rounds = [];
    this.count = 0;
    this.live = false;
    this.asked = {};
  }

  // Whether a message is about a run that the reader left for another: rounds that were on their way then, or that
  // still come while an earlier run is looked at. Only a reset brings such a run back.
  elsewhere(message) { return message.op !== 'reset' && message.run !== this.run && this.left.has(message.run); }

  // Returns whether a new run began.
  receive(message) {
    const fresh = message.op === 'reset' || message.run !== this.run;
    if (fresh) {
      if (this.run !== null) this.left.add(this.run);
      this.left.delete(message.run);
      this.clear(message.run);
    }
    for (const round of message.rounds || []) {
      const held = this.rounds[round.index];
      if (held && round.all) held.all = round.all;  // what was asked for on top of a round that is being looked at
      else if (!held) this.rounds[round.index] = round;
    }
    this.count = Math.max(this.count, message.count || 0, this.rounds.length);
    if (message.live !== undefined) this.live = message.live;
    return fresh;
  }

  // The first stretch of rounds that were never received and not asked for a moment ago, or null.
  missing(now) {
    for (let from = 0; from < this.count; from++) {
      if (this.rounds[from]) continue;
      let to = from;
      while (to + 1 < this.count && !this.rounds[to + 1]) to++;
      const key = `${from}-${to}`;
      if (now - (this.asked[key] ?? -Infinity) < 4000) return null;
      this.asked[key] = now;
      return { run: this.run, from, to };
    }
    return null;
  }
}

// Where a reader is: a round and one of its phases. All movement is here.
class Cursor {
  constructor(store) { this.store = store; this.round = 0; this.phase = 0; }

  phases(round = this.round) { return this.store.rounds[round] ? this.store.rounds[round].phases : []; }

  get atEnd() { return this.round >= this.store.count - 1 && this.phase >= this.phases().length - 1; }

  goto(round, phase) {
    this.round = Math.max(0, Math.min(round, this.store.count - 1));
    const steps = this.phases();
    const named = typeof phase === 'string' ? steps.findIndex(step => step.name === phase) : phase;
    const wanted = phase === 'first' ? 0 : phase === 'last' || named < 0 ? steps.length - 1 : named;
    this.phase = Math.max(0, Math.min(wanted, steps.length - 1));
  }

  step(by) {
    const phase = this.phase + by;
    if (phase >= 0 && phase < this.phases().length) this.phase = phase;
    else if (by > 0 && this.round < this.store.count - 1) this.goto(this.round + 1, 'first');
    else if (by < 0 && this.round > 0) this.goto(this.round - 1, 'last');
    else return false;
    return true;
  }

  // Another round, in the same phase where it has one.
  jump(by) {
    const name = (this.phases()[this.phase] || {}).name;
    const round = this.round + by;
    if (round < 0 || round >= this.store.count) return false;
    this.goto(round, this.phases(round).some(step => step.name === name) ? name : 'last');
    return true;
  }
}
