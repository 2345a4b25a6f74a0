// The search of the survey's answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, matches } from "../example/combobox.js";

test("case, accents and spaces are folded", () => {
  const pairs = { "  Łódź ": "lodz", STRASSE: "straße", "Sao  Tome": "são tomé", ﬁve: "FIVE" };
  for (const [one, other] of Object.entries(pairs)) assert.equal(fold(one), fold(other));
  assert.notEqual(fold("कि"), fold("का")); // vowel signs are no accents
});

test("items that start with the text come first", () => {
  const items = ["wholemeal", "big meal", "Mealie", "bread", "meal"].map(fold);
  assert.deepEqual(matches(items, "méal"), [2, 4, 1, 0]);
  assert.deepEqual(matches(items, ""), [0, 1, 2, 3, 4]);
  assert.deepEqual(matches(items, "x"), []);
});
