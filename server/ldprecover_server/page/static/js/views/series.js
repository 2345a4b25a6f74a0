// A series: its rounds over time, and selected items.

import { get, poll, roundPath, sentenceOf } from "../api.js";
import { field, fill, h, notice } from "../dom.js";
import { count, isolated, plural } from "../format.js";
import { link, setQuery } from "../router.js";
import { overTime, roundsOf } from "../series.js";

const SECONDS = 15;
const MAX_FOLLOWED = 5; // items

export async function show({ main, path, query, signal }) {
  const [name] = path;
  const said = h("div", {}); // the request
  const heard = h("div", {}); // the response
  const list = h("ul", { class: "legend" });
  const charts = overTime(name, signal);
  const find = h("input", { list: "labels", name: "item", autocomplete: "off" });
  const names = h("datalist", { id: "labels" });
  const picked = h("ul", { class: "legend" });
  const asked = (query.get("items") ?? "").split(",").filter(Boolean).map(Number);
  let chosen = [...new Set(asked)]
    .filter((index) => Number.isInteger(index) && index >= 0)
    .slice(-MAX_FOLLOWED);
  let rounds = [];
  let labels = [];
  let drawn = false;

  const draw = async () => {
    drawn = false;
    try {
      await charts.draw(
        rounds,
        chosen.filter((index) => index < labels.length),
      );
      drawn = true;
    } catch (error) {
      if (!signal.aborted) fill(heard, notice("bad", sentenceOf(error)));
    }
  };
  const choose = (next) => {
    chosen = next;
    setQuery({ items: chosen.join(",") });
    showPicked();
    draw();
  };
  const showPicked = () =>
    fill(
      picked,
      chosen
        .filter((index) => index < labels.length)
        .map((index) =>
          h(
            "li",
            {},
            h(
              "button",
              {
                type: "button",
                class: "small",
                "aria-label": `Leave out ${isolated(labels[index])}`,
                onclick: () => choose(chosen.filter((each) => each !== index)),
              },
              `${isolated(labels[index])} ✕`,
            ),
          ),
        ),
    );
  const add = (event) => {
    event.preventDefault();
    const index = labels.indexOf(find.value);
    if (index < 0)
      return fill(said, notice("bad", `${find.value || "Nothing"} is no item of this series.`));
    fill(said);
    find.value = "";
    if (!chosen.includes(index)) choose([...chosen.slice(1 - MAX_FOLLOWED), index]);
  };
  fill(
    main,
    h("h1", {}, `Series ${name}`),
    heard,
    said,
    list,
    h(
      "form",
      { class: "controls", onsubmit: add },
      field("Follow an item", find),
      names,
      h("button", { type: "submit" }, "Follow it"),
      picked,
    ),
    charts.root,
  );

  poll(
    async () => {
      try {
        const before = rounds.map((round) => `${round.id} ${round.n}`).join();
        rounds = await roundsOf(name, signal);
        fill(heard, rounds.length === 0 && notice("", "No round of this series has reports."));
        if (
          rounds.length === 0 ||
          (drawn && rounds.map((round) => `${round.id} ${round.n}`).join() === before)
        )
          return undefined;
        if (labels.length === 0) {
          labels = (await get(roundPath(rounds.at(-1).id, "parameters"), { signal })).items;
          fill(
            names,
            labels.slice(0, 1000).map((label) => h("option", { value: label })),
          );
          showPicked();
        }
        fill(
          list,
          h("li", {}, `${plural(rounds.length, "round")} with reports: `),
          rounds.map((round) =>
            h(
              "li",
              {},
              h("a", { href: link(["rounds", round.name]) }, round.name),
              ` (${count(round.n)})`,
            ),
          ),
        );
        await draw();
      } catch (error) {
        if (!signal.aborted) fill(heard, notice("bad", sentenceOf(error)));
      }
      return undefined;
    },
    SECONDS,
    signal,
  );
}
