// "Methods and tests" of a round: other recoveries, what is proven, alarms and the truth.

import { get, isAbort, roundPath, sentenceOf } from "../api.js";
import { h, notice, fill } from "../dom.js";
import { controls } from "./controls.js";
import { bestEstimate, collected, others } from "./items.js";
import { alarmPanel, methodNotes } from "./panels.js";
import { AUTO, isFast } from "./recoveries.js";
import { question, reasonAgainst } from "./settings.js";
import { truthPanel } from "./truth.js";

const GROWTH = 1.1; // tests are repeated after a tenth more reports,
const SECONDS = 30; // and at least this time
const MOST_COMPARED = 20; // rounds whose items are compared with those of the round

/** Make the panels of a round; `core` and the panel of its certificate are the view's. */
export function testsPanel(core, certificate) {
  const { round, settings, labels, known, signal, changed } = core;
  const panel = controls(settings, labels, changed);
  const alarms = alarmPanel(core.findAlarms);
  const notes = methodNotes();
  const truth = truthPanel(round.items, core.later, signal);
  const said = h("div", {});
  let methods = [];
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

  return {
    root: h("div", {}, said, panel.root, notes.root, certificate.root, alarms.root, truth.root),
    truth: truth.get,
    setTruth: truth.set,
    /** Request what is due. */
    async update() {
      const { n } = core.estimates();
      if (n === 0) return;
      try {
        if (methods.length === 0) {
          methods = (await get(roundPath(round.id, "methods"), { signal })).methods;
          panel.setMethods(methods);
          panel.setEarlier(await sameItems(round, signal));
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
      } catch (error) {
        if (!isAbort(error)) fill(said, notice("bad", sentenceOf(error)));
      }
    },
    /** Follow a change of the settings. */
    changed(what) {
      if (what === "targets") panel.show();
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

/** Return the latest other closed rounds over the same items, which may serve as history. */
async function sameItems(round, signal) {
  const { rounds } = await get("rounds?limit=200", { signal });
  const likely = rounds.filter(
    (each) =>
      each.state === "closed" &&
      each.n > 0 &&
      each.id !== round.id &&
      each.domain_size === round.domain_size,
  );
  const items = JSON.stringify(round.items);
  const found = [];
  for (const each of likely.slice(0, MOST_COMPARED)) {
    const isEqual =
      each.digest === round.digest ||
      JSON.stringify((await get(roundPath(each.id, "parameters"), { signal })).items) === items;
    if (isEqual) found.push(each);
  }
  return found;
}
