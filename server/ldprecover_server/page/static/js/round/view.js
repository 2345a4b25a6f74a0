// The live view of a round: the verdict, one chart, and folded below them methods and tests.

import { get, isAbort, needsKey, onKey, poll, roundPath, sentenceOf } from "../api.js";
import { action, announce, fill, h, notice } from "../dom.js";
import { count, isolated, number } from "../format.js";
import { help } from "../help.js";
import { header } from "./header.js";
import { errorBars, isBlurred, itemsChart } from "./items.js";
import { AUTO, recoveries } from "./recoveries.js";
import { asksForMethods, question, read, write } from "./settings.js";
import { strongest, verdictOf, verdictPanel, withoutNoise } from "./verdict.js";

const SECONDS = 3;
const CLOSED_SECONDS = 30; // between polls of a closed round
const STATE_EVERY = 5; // polls of the number of reports for each poll of the round, which has all labels
const RATE_SECONDS = 15; // of which the rate of reports is the mean
const GONE_SECONDS = 60; // between polls of a deleted round
const COUNTS_SECONDS = 6; // between two reads of all counts while reports arrive: many people may watch
const GROWTH = 1.1; // the best estimate is worked out again after a tenth more reports

// The tokens of the links of a demo and a class, until the page is left.
const tokens = {};

/** Reports up to which the best estimate is worked out unasked. */
const UNASKED = 2_000_000;
const STEPS = ["best estimate", "alarms", "certified band"]; // of a test, in their order
const HISTOGRAMS = ["grr", "hr", "llh"]; // whose tally has all that the reports say

export async function show(context) {
  const { main, signal } = context;
  const [id] = context.path;
  announce(""); // what was said of another round
  fill(main, h("p", { class: "quiet" }, "The round is being read."));
  const begin = async () => {
    try {
      const [round, estimates] = await Promise.all([
        get(roundPath(id), { signal }),
        get(roundPath(id, "frequencies"), { signal }), // fails early without read access
      ]);
      document.title = `${round.name} – LDPRecover`;
      live(context, round, estimates);
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      fill(
        main,
        h("h1", {}, id),
        needsKey(error)
          ? notice("", "This round's results need a key.")
          : notice("bad", sentenceOf(error)),
        needsKey(error) && action("Enter a key", enterKey, { class: "main" }),
        h("p", {}, h("a", { href: "#/rounds" }, "All rounds")),
      );
      return false;
    }
  };
  if (!(await begin())) onKey((has) => has && begin(), signal);
}

async function enterKey() {
  const { askForKey } = await import("../key.js");
  return askForKey();
}

function live({ main, query, signal }, round, estimates) {
  const settings = read(query, round.items.length);
  const head = header(round, signal);
  const said = h("div", {});
  const verdict = verdictPanel(help, () => estimate(true));
  const known = recoveries(round, () => later(), signal);
  const rate = growth();
  let fresh = null; // state of the round for which `freshPlace` says that there are no reports
  let tests = null; // methods and tests, once they are opened
  let truth = null; // the true frequencies, of a demo's round
  let frame = 0;
  let alarms = null; // {n, answer, error} of the last test; n is that of its request
  let alarmTests = 0; // requests of them that are not answered
  let step = { k: -1, at: 0 }; // the first of STEPS that is not answered, and since when

  let certificate = null; // loaded after the first chart
  const certified = import("./certificate.js").then(({ certificatePanel }) => {
    certificate = certificatePanel(round, settings, currentVerdict, changed, signal);
    later();
    return certificate;
  });
  let addresses = null;
  const addressesPlace = h("div", {});
  import("./addresses.js").then(({ addressesPanel }) => {
    addresses = addressesPanel(round);
    fill(addressesPlace, addresses.root);
    later();
  });
  const items = itemsChart(round, settings, signal, toggle, () => changed("shown"));
  const testsPlace = h("div", {});
  const methods = h(
    "details",
    { class: "tests" },
    h("summary", {}, "Methods and tests"),
    testsPlace,
  );
  const shown = h("div", {}, verdict.root, items.root, addressesPlace, methods);
  const freshPlace = h("div", {});
  const playPlace = h("div", {});
  for (const name of ["demo", "class"]) tokens[name] = query.get(name) ?? tokens[name];
  const isClass = Boolean(tokens.class) && round.name === "class"; // the server's name for it
  const results = isClass
    ? h("details", { class: "tests" }, h("summary", {}, "All results of the round"), shown)
    : shown;
  fill(main, head.root, said, playPlace, freshPlace, results);
  if (tokens.demo)
    import("./play.js").then(({ showPlay }) =>
      showPlay(playPlace, tokens.demo, round, setTruth, signal),
    );
  if (isClass)
    import("./class.js").then(({ showClass }) =>
      showClass(playPlace, tokens.class, round, setTruth, signal),
    );

  function setTruth(frequencies) {
    truth = frequencies;
    tests?.setTruth(truth);
    again();
  }

  const core = {
    round,
    settings,
    labels: items.labels,
    known,
    signal,
    changed,
    later,
    estimates: () => estimates,
    best: () => known.get(AUTO.name)?.answer ?? null,
    again: () => estimate(true),
    alarms: () => alarms,
    findAlarms,
  };

  methods.addEventListener("toggle", openTests);
  if (asksForMethods(settings)) methods.open = true;

  async function openTests() {
    if (tests || !methods.open) return;
    try {
      const [{ testsPanel }, panel] = await Promise.all([import("./tests.js"), certified]);
      if (signal.aborted || tests) return;
      tests = testsPanel(core, panel);
      if (truth) tests.setTruth(truth);
      fill(testsPlace, tests.root);
      later();
      tests.update();
    } catch (error) {
      fill(testsPlace, notice("bad", sentenceOf(error)));
    }
  }

  function later() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  }

  function toggle(index) {
    if (settings.targets.has(index)) settings.targets.delete(index);
    else settings.targets.add(index);
    const state = settings.targets.has(index) ? "a target" : "no target any more";
    announce(`${isolated(items.labels[index])} is ${state}.`);
    changed("targets");
  }

  /** Follow a change of the settings: "targets", "methods", "assumptions", or "shown", which asks for nothing. */
  function changed(what) {
    write(settings);
    if (what !== "shown") {
      if (what !== "methods") estimate(true);
      certificate?.ask(estimates.n);
      tests?.changed(what);
    }
    later();
  }

  /** Ask for the best estimate, unless the one there is will do. */
  function estimate(isWanted) {
    if (!estimates.n) return;
    const body = question(AUTO, settings);
    const last = known.get(AUTO.name);
    const isSame = last?.asked && JSON.stringify(last.asked) === JSON.stringify(body);
    if (
      isSame &&
      last.answer &&
      (last.n === estimates.n || (!isWanted && estimates.n < GROWTH * last.n))
    )
      return;
    if (!isWanted && (known.isPending(AUTO.name) || last?.error || !isUnasked())) return;
    known.ask(AUTO, body, Boolean(stored()) && Object.keys(body).length === 1);
  }

  /** Ask for the alarms, which may read every report. */
  async function findAlarms() {
    const request = { n: estimates.n, answer: null, error: null };
    alarms = { ...request, answer: alarms?.answer ?? null };
    alarmTests += 1;
    try {
      request.answer = await get(roundPath(round.id, "alarms"), { signal });
    } catch (error) {
      if (isAbort(error)) return;
      request.error = error;
    } finally {
      alarmTests -= 1;
    }
    alarms = request;
    later();
  }

  /** The verdict of all reports of a closed round, whose recovery the server has too. */
  const stored = () => (round.state === "closed" ? round.verdict : null);

  /** The verdict that is shown: of an open round, until an estimate of more reports is there or has failed. */
  const kept = () => {
    const { answer, error } = known.get(AUTO.name) ?? {};
    return stored() ?? (answer || error ? null : round.verdict);
  };

  const isUnasked = () =>
    Boolean(stored()) || HISTOGRAMS.includes(round.protocol) || estimates.n <= UNASKED;

  const isAlarmed = () => alarms?.answer?.alarms.some((alarm) => alarm.raised) ?? false;

  /** The verdict that is kept, else that of the best estimate. */
  function currentVerdict() {
    const least = certificate?.least() ?? null;
    if (kept()) return kept();
    const answer = known.get(AUTO.name)?.answer;
    if (answer) return verdictOf(answer, least, isAlarmed());
    const untested = known.isPending(AUTO.name) ? "testing" : "untested";
    return {
      attack: least > 0 ? "possible" : untested,
      attack_probability: null,
      malicious_share: null,
      least_malicious_share: least,
      raised: [],
    };
  }

  /** The step of the test that is being worked out, with its seconds; "" without one. */
  function currentStep() {
    const pending = [known.isPending(AUTO.name), alarmTests > 0, certificate?.isPending()];
    const k = kept() && isUnasked() ? -1 : pending.indexOf(true);
    if (k !== step.k) step = { k, at: performance.now() };
    const seconds = Math.floor((performance.now() - step.at) / 1000);
    if (k < 0 || (seconds < 1 && core.best())) return "";
    return `step ${k + 1} of ${STEPS.length}, ${STEPS[k]}: ${seconds} s`;
  }

  const clock = setInterval(() => verdict.setStep(currentStep()), 1000);
  signal.addEventListener("abort", () => clearInterval(clock));

  /** What the tiles and sentences need. */
  function facts(best) {
    const auto = known.get(AUTO.name);
    const speed = round.state === "open" ? rate(estimates.n) : null;
    const tested = best?.n ?? kept()?.reports;
    const more = [
      round.state,
      speed && `${number(speed)} a second`,
      tested < estimates.n && `tested at ${count(tested)}`,
    ];
    const verdict = currentVerdict();
    const isWaiting = !known.isPending(AUTO.name) && !best && !stored();
    const failed = auto?.error && `The test failed: ${sentenceOf(auto.error)}`;
    const tooMany =
      !isUnasked() && `More than ${count(UNASKED)} reports are tested only when you ask.`;
    const isOffered = isWaiting && Boolean(failed || tooMany);
    const [sentence, advice] = kept()?.sentences ??
      strongest(verdict, {
        proven: certificate?.proven(),
        conclusions: best?.conclusions,
        alarms: isAlarmed() ? alarms.answer.sentences : null,
      }) ?? [
        (isOffered && (failed || tooMany)) || "The reports are being tested.",
        "The chart shows them as collected.",
      ];
    const finding = withoutNoise(sentence); // the tile has it
    const bound = verdict.attack === "cannot_be_seen" && certificate?.get()?.sentences.bound;
    return {
      n: estimates.n,
      state: more.filter(Boolean).join(", "),
      verdict,
      step: currentStep(),
      ...errorBars(estimates, best),
      noise: isBlurred(estimates),
      offer: isOffered ? "Test the reports" : null,
      sentences: [bound ? `${finding} ${bound}` : finding, advice],
    };
  }

  function suspicion(index) {
    const named = core.best()?.conclusions?.suspects.find((each) => each.item === index);
    if (named) return 1e3 + named.probability;
    const estimated = core.best()?.recovered[index] ?? 0;
    return (estimates.frequencies[index] - estimated) / estimates.standard_errors[index];
  }

  function draw() {
    shown.hidden = !estimates.n;
    freshPlace.hidden = estimates.n > 0 || isClass;
    if (signal.aborted) return;
    if (!estimates.n) return;
    const best = core.best();
    if (best || !isUnasked() || known.get(AUTO.name)?.error || stored())
      certificate?.ask(estimates.n);
    const names = tests ? settings.compared : [];
    const recovered = names
      .map((name) => ({ name, answer: known.get(name)?.answer }))
      .filter((each) => each.answer);
    verdict.show(facts(best));
    items.draw({
      estimates,
      best,
      recovered,
      certified: certificate ? certificate.get() : null,
      pending:
        !certificate || certificate.isPending() || [AUTO.name, ...names].some(known.isPending),
      truth: tests ? tests.truth() : truth && { frequencies: truth },
      raised: currentVerdict().raised,
      suspicion,
      mayChoose: tests !== null,
    });
    const asked = recovered.map(({ name }) => known.get(name).asked);
    addresses?.show([question(AUTO, settings), ...asked]);
    tests?.draw(recovered);
    if (best && !stored() && !(alarms && best.n < GROWTH * alarms.n)) findAlarms();
  }

  async function showFresh() {
    if (round.state === "closed" || round.form) {
      const text =
        round.state === "closed"
          ? "This round was closed without reports."
          : "This question has no reports yet: people answer it through its form.";
      if (fresh !== round.state) fill(freshPlace, h("p", { class: "lead" }, text));
      fresh = round.state;
      return;
    }
    const { howToReport } = await import("./fresh.js");
    if (signal.aborted || fresh || round.state !== "open") return;
    fresh = round.state;
    fill(freshPlace, howToReport(round, signal));
  }

  let ticks = 0;
  let readAt = performance.now();
  let seen = estimates.n; // number of reports at the last poll

  async function look() {
    try {
      if (ticks++ > 0) {
        const stats = await get(roundPath(round.id, "stats"), { signal });
        if (ticks % STATE_EVERY === 0 || round.state === "closed") {
          Object.assign(round, await get(roundPath(round.id), { signal }));
          head.show();
        }
        fill(said);
        const rests = stats.reports === seen;
        round.n = seen = stats.reports;
        const isDue = rests || performance.now() - readAt > 1000 * COUNTS_SECONDS;
        if (estimates.n !== seen && (isDue || !estimates.n)) {
          const began = performance.now();
          estimates = await get(roundPath(round.id, "frequencies"), { signal });
          readAt = performance.now();
          if (readAt - began > 1000) ticks = 1;
        }
      }
      if (estimates.n === 0) await showFresh();
      estimate(false);
      draw();
      tests?.update();
      return round.state === "closed" ? CLOSED_SECONDS : SECONDS;
    } catch (error) {
      if (isAbort(error)) return SECONDS;
      fill(said, notice("bad", sentenceOf(error)));
      return error.status === 404 ? GONE_SECONDS : 2 * SECONDS;
    }
  }
  const again = poll(look, SECONDS, signal);
}

/** Return a function of the number of reports: how many a second came lately, or null at first. */
function growth() {
  let seen = [];
  return (n) => {
    const now = performance.now();
    seen = seen.filter(([at]) => now - at < 1000 * RATE_SECONDS);
    seen.push([now, n]);
    const [[then, before]] = seen;
    return now - then < 500 ? null : Math.max(0, (n - before) / ((now - then) / 1000));
  };
}
