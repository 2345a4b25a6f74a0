import { h } from "../dom.js";
export function howToReport() { return h("p", {class:"notice"}, "There are no reports yet. This page shows them as they come."); }
