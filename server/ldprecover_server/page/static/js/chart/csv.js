// Files made in the browser, for the viewer to keep.

// What a text begins with that spreadsheets run as a formula, the wide forms among it, as in the server's own CSV.
const RUN = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** A text that a spreadsheet does not run: one that it would is led by an apostrophe. */
export function guarded(text) {
  return RUN.test(text) ? `'${text}` : text;
}

/** Texts are quoted, as a program that takes semicolons for commas would split them; numbers stay numbers. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return `"${guarded(String(value)).replaceAll('"', '""')}"`;
}

/** CSV of columns `{title, value(row)}` and rows. */
export function csv(columns, rows) {
  const lines = [
    columns.map((column) => cell(column.title)),
    ...Array.from(rows, (row) => columns.map((column) => cell(column.value(row)))),
  ];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Hand a file to the browser. */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function downloadCsv(name, columns, rows) {
  download(`${name}.csv`, new Blob([csv(columns, rows)], { type: "text/csv;charset=utf-8" }));
}
