// "Methods and tests" of a round: other recoveries, what is proven, alarms, suspects, the truth and the series.

import { get, isAbort, roundPath, sentenceOf } from "../api.js";
import { h, notice, fill } from "../dom.js";
import { overTime, roundsOf } from "../series.js";
import { controls } from "./controls.js";
import { bestEstimate, collected, others } from "./items.js";
import { alarmPanel, methodNotes, suspectsPanel } from "./panels.js";
import { AUTO, isFast } from "./recoveries.js";
import { question, reasonAgainst } from "./settings.js";
import { truthPanel } from "./truth.js";

const GROWTH = 1.1; // tests are repeated after a tenth more reports,
const SECONDS = 30; // and at least this time

/** Make the panels of a round; `core` and the panel of its certificate are the view's. */
export function testsPanel(core, certificate) {
  const { round, settings, labels, known, signal, changed } = core;
  const panel = controls(settings, labels, changed);
  const alarms = alarmPanel(core.findAlarms);
  const notes = methodNotes();
  const truth = truthPanel(round.items, core.later, signal);
  const suspects = suspectsPanel(
    round,
    (indices) => {
      settings.targets = new Set(indices);
      changed("targets");
    },
    signal,
  );
  const history = round.series ? overTime(round.series, signal) : null;
  const said = h("div", {});
  let methods = [];
  let suspected = new Map();
  let tested = null; // {n, at, state} of the last tests

  function askMethods(why) {
    const { n } = core.estimates();
    for (const name of settings.compared) {
      const method = methods.find((each) => each.name === name);
      if (!method || reasonAgainst(method, settings) !== null) continue;
      const body = question(method, settings);
      const last = known.get(name);
      const isSame = last?.asked && JSON.stringify(last.asked) === JSON.stringify(body);
      const isDue = isFast(method)
        ? !(isSame && last.n === n)
        : !last || (why !== "counts" && !isSame);
      if (isDue) known.ask(method, body);
    }
  }

  async function drawHistory() {
    const rounds = await roundsOf(round.series, signal);
    await history.draw(rounds, [...settings.targets]);
    return rounds;
  }

  /** Request the suspects, if there are earlier rounds to compare with, and draw the series. */
  async function compareRounds() {
    if (!round.series) return undefined;
    try {
      const rounds = await drawHistory();
      const mine = rounds.findIndex((each) => each.id === round.id);
      const earlier = rounds.slice(0, Math.max(0, mine)).filter((each) => each.state === "closed");
      panel.setEarlier(earlier);
      if (earlier.length === 0)
        return suspects.wait("No earlier round of the series is closed and has reports.");
      const answer = await get(roundPath(round.id, "suspects"), { signal });
      suspected = new Map(answer.suspects.map((each) => [each.item, each.z]));
      suspects.show(answer);
      core.later();
    } catch (error) {
      if (!isAbort(error)) suspects.fail(error);
    }
    return undefined;
  }

  return {
    root: h(
      "div",
      {},
      said,
      panel.root,
      notes.root,
      certificate.root,
      alarms.root,
      round.series && suspects.root,
      truth.root,
      history?.root,
    ),
    truth: truth.get,
    setTruth: truth.set,
    suspicion: (index) => (suspected.has(index) ? 1e6 + suspected.get(index) : null),
    /** Request what is due. */
    async update() {
      const { n } = core.estimates();
      if (n === 0) return;
      try {
        if (methods.length === 0) {
          methods = (await get(roundPath(round.id, "methods"), { signal })).methods;
          panel.setMethods(methods);
        }
        askMethods("counts");
        const isSame = tested && tested.n === n && tested.state === round.state;
        const isDue =
          !tested ||
          (performance.now() - tested.at > 1000 * SECONDS &&
            (n >= GROWTH * tested.n || round.state !== tested.state));
        if (isSame || !isDue) return;
        tested = { n, at: performance.now(), state: round.state };
        if (!core.alarms()) core.findAlarms();
        await compareRounds();
      } catch (error) {
        if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
      }
    },
    /** Follow a change of the settings. */
    changed(what) {
      if (what === "targets") {
        panel.show();
        if (history) drawHistory().catch(suspects.fail);
      }
      askMethods(what);
    },
    /** Draw what the methods say, given the recoveries that the chart shows. */
    draw(recovered) {
      const { n } = core.estimates();
      alarms.show(core.alarms());
      const isLong = (name) => methods.some((each) => each.name === name && !isFast(each));
      notes.show([AUTO.name, ...settings.compared], known, (name) => (isLong(name) ? n : 0), {
        again: (name) => {
          if (name === AUTO.name) return core.again();
          known.forget(name);
          return askMethods("again");
        },
        cancel: known.cancel,
      });
      if (!truth.get()) return;
      const best = core.best();
      const columns = [
        collected(core.estimates()),
        ...(best ? [bestEstimate(best)] : []),
        ...others(recovered),
      ];
      truth.show(columns, settings.targets);
    },
  };
}
