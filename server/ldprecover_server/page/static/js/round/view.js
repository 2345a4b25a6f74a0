// The live view of a round: state, alarms, frequencies, recoveries, suspects and series.

import { isDue, knownAlarms, test } from "../alarms.js";
import { get, isAbort, onKey, poll, roundPath, sentenceOf } from "../api.js";
import { announce, fill, h, notice } from "../dom.js";
import { askForKey } from "../key.js";
import { overTime, roundsOf } from "../series.js";
import { certificatePanel } from "./certificate.js";
import { controls } from "./controls.js";
import { header } from "./header.js";
import { columns, itemsChart } from "./items.js";
import { alarmStrip, methodNotes, suspectsPanel } from "./panels.js";
import { isFast, recoveries } from "./recoveries.js";
import { methodsOf, question, read, reasonAgainst, write } from "./settings.js";
import { truthPanel } from "./truth.js";

const SECONDS = 3;
const STATE_EVERY = 5; // polls of the number of reports for each poll of the round, which has all labels
const GONE_SECONDS = 60; // between polls of a deleted round
const COUNTS_SECONDS = 6; // between two reads of all counts while reports arrive: many people may watch

export async function show(context) {
  const { main, id, signal } = context;
  const said = h("div", {}, h("p", { class: "quiet" }, "The round is being read."));
  fill(main, said);
  const begin = async () => {
    try {
      const round = await get(roundPath(id), { signal });
      await get(roundPath(round.id, "stats"), { signal }); // fails early without read access
      document.title = `${round.name} – LDPRecover`;
      await live(context, round);
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      const needsKey = error.status === 401 || error.status === 403;
      fill(
        main,
        h("h1", {}, id),
        notice("bad", sentenceOf(error)),
        needsKey &&
          h("button", { type: "button", class: "main", onclick: askForKey }, "Give a key"),
        h("p", {}, h("a", { href: "#/rounds" }, "All rounds")),
      );
      return false;
    }
  };
  if (!(await begin())) onKey((has) => has && begin(), signal);
}

async function live({ main, query, signal }, round) {
  const settings = read(query, round.items.length);
  const head = header(round, signal);
  const said = h("div", {});
  const alarms = alarmStrip(() => testAlarms(true));
  const items = itemsChart(round, signal, toggle);
  const panel = controls(settings, items.labels, changed);
  const certificate = certificatePanel(round, settings, changed, signal);
  const notes = methodNotes();
  const truth = truthPanel(round.items, () => draw());
  const suspects = suspectsPanel(round, (indices) => {
    settings.targets = new Set(indices);
    changed("targets");
  });
  const history = round.series ? overTime(round.series, signal) : null;
  const none = h(
    "p",
    { class: "notice", hidden: true },
    "There are no reports yet. This page shows them as they come.",
  );
  const shown = h(
    "div",
    { hidden: true },
    panel.root,
    certificate.root,
    items.root,
    notes.root,
    truth.root,
    suspects.root,
    history?.root,
  );
  items.plot.before(panel.shown);
  fill(main, head.root, said, none, alarms.root, shown);

  const known = recoveries(round.id, () => later(), signal);
  let methods = [];
  let estimates = null;
  let suspected = new Map();
  let frame = 0;

  function later() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  }

  function toggle(index) {
    if (settings.targets.has(index)) settings.targets.delete(index);
    else settings.targets.add(index);
    announce(
      `${items.labels[index]} is ${settings.targets.has(index) ? "a target" : "no target any more"}.`,
    );
    changed("targets");
  }

  function changed(what) {
    write(settings);
    if (what === "targets") panel.show();
    if (what !== "shown") askAll(what);
    if (what === "targets" && history) drawHistory();
    later();
  }

  /** Request the shown recoveries: closed forms after each change, others once and on demand. */
  function askAll(why) {
    if (!estimates?.n) return;
    certificate.ask(estimates.n);
    for (const name of methodsOf(settings)) {
      const method = methods.find((each) => each.name === name);
      if (!method) continue;
      if (reasonAgainst(method, settings) !== null) continue;
      const asked = question(method, settings);
      const last = known.get(name);
      const isSame = last?.asked && JSON.stringify(last.asked) === JSON.stringify(asked);
      if (
        isFast(method)
          ? !(isSame && last.n === estimates.n)
          : !last || (why !== "counts" && !isSame)
      )
        known.ask(method, asked);
    }
  }

  const isLong = (name) => methods.some((each) => each.name === name && !isFast(each));

  function suspicion(index) {
    if (suspected.has(index)) return 1e6 + suspected.get(index);
    const answer = known.get(settings.method)?.answer;
    const named = answer?.conclusions?.suspects.find((each) => each.item === index);
    if (named) return 1e3 + named.probability;
    const recovered = answer?.recovered[index] ?? 0;
    return (estimates.frequencies[index] - recovered) / estimates.standard_errors[index];
  }

  function draw() {
    none.hidden = !estimates || estimates.n > 0;
    shown.hidden = !estimates?.n;
    if (!estimates?.n || signal.aborted) return;
    const names = methodsOf(settings);
    const recovered = names
      .map((name) => ({ name, answer: known.get(name)?.answer }))
      .filter((each) => each.answer);
    items.draw({
      estimates,
      recovered,
      certified: certificate.get(),
      pending: certificate.isPending() || names.some(known.isPending),
      truth: truth.get(),
      settings,
      suspicion,
    });
    notes.show(names, known, (name) => (isLong(name) ? estimates.n : 0), {
      again: (name) => {
        known.forget(name);
        askAll("again");
      },
      cancel: known.cancel,
    });
    if (truth.get()) truth.show(columns(estimates, recovered, null), settings.targets);
  }

  async function testAlarms(now) {
    if (now || isDue(round)) {
      try {
        await test(round, signal);
      } catch (error) {
        if (!isAbort(error)) throw error;
      }
    }
    alarms.show(round, knownAlarms(round.id));
  }

  async function drawHistory() {
    try {
      const rounds = await roundsOf(round.series, signal);
      await history.draw(rounds, [...settings.targets]);
    } catch (error) {
      if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
    }
  }

  /** Request the suspects, if there are earlier rounds to compare with. */
  async function findSuspects() {
    if (!round.series)
      return suspects.wait(
        "This round belongs to no series, so that there is nothing to compare it with.",
      );
    try {
      const rounds = await roundsOf(round.series, signal);
      const mine = rounds.findIndex((each) => each.id === round.id);
      const earlier = rounds.slice(0, Math.max(0, mine)).filter((each) => each.state === "closed");
      panel.setEarlier(earlier);
      if (earlier.length === 0)
        return suspects.wait("No earlier round of the series is closed and has reports.");
      const found = await get(roundPath(round.id, "suspects"), { signal });
      suspected = new Map(found.suspects.map((each) => [each.item, each.z]));
      suspects.show(found);
      later();
    } catch (error) {
      if (!isAbort(error)) suspects.fail(error);
    }
    return undefined;
  }

  async function readCounts() {
    const began = performance.now();
    estimates = await get(roundPath(round.id, "frequencies"), { signal });
    if (estimates.n > 0 && methods.length === 0) {
      methods = (await get(roundPath(round.id, "methods"), { signal })).methods;
      panel.setMethods(methods);
    }
    askAll("counts");
    draw();
    return (performance.now() - began) / 1000;
  }

  let ticks = 0;
  let seen = null; // number of reports at the last poll
  let readAt = 0;
  let last = null; // {n, state} of the shown suspects and history
  poll(
    async () => {
      try {
        const stats = await get(roundPath(round.id, "stats"), { signal });
        if (ticks++ % STATE_EVERY === 0 && ticks > 1)
          Object.assign(round, await get(roundPath(round.id), { signal }));
        fill(said);
        let took = 0;
        const rests = stats.reports === seen;
        seen = stats.reports;
        if (
          !estimates ||
          (estimates.n !== seen && (rests || performance.now() - readAt > 1000 * COUNTS_SECONDS))
        ) {
          took = await readCounts();
          readAt = performance.now();
        }
        round.n = seen;
        head.show(round, stats);
        if (estimates.n > 0) {
          const grown = !last || round.state !== last.state || estimates.n >= 1.1 * last.n;
          await testAlarms(false);
          if (grown) {
            last = { n: estimates.n, state: round.state };
            await findSuspects();
            if (history) await drawHistory();
          }
        } else alarms.show(round, null);
        return Math.max(SECONDS, 4 * took);
      } catch (error) {
        if (isAbort(error)) return SECONDS;
        fill(said, notice("bad", sentenceOf(error)));
        return error.status === 404 ? GONE_SECONDS : 2 * SECONDS;
      }
    },
    SECONDS,
    signal,
  );
}
