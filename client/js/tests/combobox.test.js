// The search of the survey's answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, matches } from "../example/combobox.js";

// What an item has, and what people type for it.
const FOLDED = {
  "Latin accents": "  Łódź , lodz ; São  Tomé,sao tome;Đà Nẵng,da nang;Ðürüm,DURUM;Ħamrun,hamrun",
  "Latin letters": "Straße,STRASSE;Århus,arhus;Tromsø,tromso;Æther,aether;Cœur,coeur;Þing,thing",
  "Latin i": "İzmir,izmir;IĞDIR,iğdır;Diyarbakır,diyarbakir;Şəki,seki",
  ligatures: "ﬁve,FIVE;№ 5,no 5;Ⅳ,iv;²,2",
  "full-width": "ＡＢＣ１２,abc12;　ｆｏｏ　ｂａｒ,foo bar;ﾃﾞｰﾀ,データ",
  Greek: "Αθήνα,ΑΘΗΝΑ;οδός,ΟΔΟΣ;Ϊος,ιος",
  Cyrillic: "Ёлка,елка;Київ,киів;Ґанок,ганок;за́мок,замок",
  "Arabic hamza": "أحمد,احمد;إيران,ايران;آسيا,اسيا;ٱلله,الله;مؤتمر,موتمر;رئيس,رييس;شتاء,شتا",
  "Arabic endings": "مدرسة,مدرسه;مستشفى,مستشفي",
  "Arabic marks": "مُحَمَّد,محمد;كـــتاب,كتاب;هٰذا,هذا;ﻻ,لا",
  Persian: "کتابی,كتابي;می‌خواهم,میخواهم;۱۲,12;١٢,12",
  Hebrew: "שָׁלוֹם,שלום;תל־אביב,תל-אביב;שלום,שלומ;צה״ל,צה\"ל;ג׳ירפה,ג'ירפה",
  apostrophes: "L’Aquila,L'Aquila;Oʻahu,O`ahu;Сімʼя,сім'я;d‘Or,d´or;Côte d’Ivoire,cote divoire",
  dashes: "Nord–Süd,nord-sud;A‑B,a-b;−5,-5;—,-",
  quotes: '„Linde“,"linde";«Oui»,"oui"',
  kana: "ラーメン,らーめん;ヴィラ,ゔぃら;ｶﾞ,が",
  Hangul: "서울,서울".normalize("NFD") + ";서울," + "서울".normalize("NFD"),
  invisible: "so\u00adup,soup;\u200bte\u2060a\u200e,tea;a\u00a0b,a b",
};
// Signs without which a word is another word.
const KEPT = {
  Devanagari: "कि,का;कि,क",
  Bengali: "কি,কা",
  Tamil: "கி,க",
  Thai: "ใกล้,ไกล;มา,ม้า;กี,กิ",
  Khmer: "កា,កី",
  Myanmar: "ကာ,ကိ",
  kana: "か,が;は,ぱ",
  Hangul: "서,사",
};

const pairs = (table) =>
  Object.entries(table).flatMap(([kind, text]) =>
    text.split(";").map((pair) => [kind, ...pair.split(",")]),
  );

test("what people leave out or have no key for is folded", () => {
  for (const [kind, item, typed] of pairs(FOLDED)) assert.equal(fold(typed), fold(item), kind);
});

test("signs that make another word stay", () => {
  for (const [kind, one, other] of pairs(KEPT)) assert.notEqual(fold(one), fold(other), kind);
});

test("items that start with the text come first", () => {
  const items = ["wholemeal", "big meal", "Mealie", "bread", "meal"].map(fold);
  assert.deepEqual(matches(items, "méal"), [2, 4, 1, 0]);
  assert.deepEqual(matches(items, ""), [0, 1, 2, 3, 4]);
  assert.deepEqual(matches(items, "x"), []);
});
